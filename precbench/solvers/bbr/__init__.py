"""BBR and LCBR: bipartite ranking by the pairwise squared loss, in closed form.

Gultekin and Paisley, "Risk bounds for low cost bipartite ranking": BBR is Algorithm 1,
LCBR Algorithm 2. That BBR needs no loop over pairs, errata and choices:
docs/papers/gultekin.md.

To change

- the moments or the minimiser, as the paper writes them: reference.py
- sums of differences and their products, entry by entry: kernel.pyx
- the minimiser over a ball: ball.py
- parameters, moments by blocks of rows, drawn pairs, `partial_fit`: estimator.py

tests/test_bbr.py holds reference and solvers equal.
"""
