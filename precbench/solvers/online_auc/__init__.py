"""OAM, PGD, AdaOAM and SPAM: online methods for the AUC, with a step at every row.

- OAM: Zhao, Hoi, Jin, Yang, "Online AUC maximization", ICML 2011, Algorithms 1 to 4.
- PGD: Boissier, Lyu, Ying, Zhou, "Fast convergence of online pairwise learning
  algorithms", AISTATS 2016.
- AdaOAM: Ding, Zhao, Hoi, Ong, "An adaptive gradient method for online AUC
  maximization", AAAI 2015, Algorithm 1.
- SPAM: Natole, Ying, Lyu, "Stochastic proximal algorithms for AUC maximization",
  ICML 2018, Algorithm 1.

Where ours differ from the texts is said under References of each.

To change

- the step of a row, as a paper writes it: reference.py
- the step of a row, as it is computed: kernel.pyx, and for sums over features
  online_auc.h
- parameters, the state, the reservoirs of OAM: estimator.py

tests/test_twins.py holds reference and kernel equal.
"""
