"""Follow the regularised leader, for losses that are not sums over the rows.

kar2014: Kar, Narasimhan, Jain, "Online and stochastic gradient methods for
non-decomposable loss functions", NIPS 2014, section 3, Theorem 1 and appendices A to E.
Errata and choices: docs/papers/kar2014.md.

To change

- a loss, or the leader, by definition: reference.py
- parameters, penalties, constants, `leader`: estimator.py
- the losses of the first n rows, and planes below them that grow with n: planes.py

tests/test_ftrl.py holds reference and solver equal.
"""
