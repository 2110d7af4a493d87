"""The P-Norm Push, RankBoost and the IR Push: convex risks for the top of the list.

Rudin, "The P-Norm Push: a simple convex ranking algorithm that concentrates at the top
of the list", JMLR 10, 2009: the risk of section 2, the algorithm of Fig. 2, the IR Push
(2), and of section 7 the logistic loss, the push at the bottom and crucial pairs.
Errata and choices: docs/papers/rudin2009.md.

To change

- a risk, or the algorithm of Fig. 2, as the paper writes it: reference.py
- a risk, its gradient, its Hessian, its line search: risks.py, and kernel.pyx for the
  sums over rows or pairs
- parameters, Newton's method, the descent by coordinates: estimator.py

tests/test_push.py holds reference and solvers equal.
"""
