"""Mini-batch methods: Perceptron@k, SGD@k, 1PMB and 2PMB.

- kar2015: Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the
  top", ICML 2015. Perceptron@k is Algorithms 1 and 2, SGD@k Algorithms 3 and 4 with
  the surrogates (3) "struct", (4) "ramp", (6) "max" and (7) "avg". Errata and choices:
  docs/papers/kar2015.md.
- kar2014: Kar, Narasimhan, Jain, "Online and stochastic gradient methods for
  non-decomposable loss functions", NIPS 2014. 1PMB is Algorithm 1, 2PMB Algorithm 2,
  their subgradients appendix H. Errata and choices: docs/papers/kar2014.md.

To change

- the step of a batch, as the papers write it: reference.py, for a surrogate also
  ``ranking/losses.py``
- the step of a batch, as it is computed: kernel.pyx, a function ``…_coef`` for each
  rule; then `make build`
- parameters, step lengths, which w is kept, 2PMB's buffer: estimator.py

tests/test_twins.py holds reference and kernel equal.
"""
