"""PSG: projected subgradient descent on the risk of all training rows.

Narasimhan, Agarwal, "SVM pAUC tight", KDD 2013, as kar2014 compares with it in section
5; the steps are a choice (docs/papers/kar2014.md). The risk is that of `CuttingPlane`.

To change

- the descent as a paper would write it: reference.py
- parameters, steps, the ball: estimator.py
- the risk and its subgradient: ``cutting_plane/estimator.py``, ``ranking/losses.py``

tests/test_twins.py holds reference and solver equal.
"""
