"""What the methods share.

To change

- what every solver checks, `fit`, `predict`, `score`, the trace: base.py
- epochs, orders of visits, slices, fitting together, `partial_fit`: driver.py
- which values a parameter may take: parameters.py
- rows as the kernels take them, ``X @ w`` and ``X.T @ c``: rows.py
- weights of rows: weights.py
- random Fourier features: random_features.py

What the kernels include (``dense.h``, ``rows.pxd``, ``select.pxd``) is in
``precbench/core/kernels``, since ``precbench/ranking`` needs it, too.
"""
