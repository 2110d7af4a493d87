"""TopPush: the positives above the highest negatives, by descent in the dual.

Li, Jin, Zhou, "Top rank optimization in linear time", NIPS 2014: problem (4), Theorem 1
and Algorithm 1; for the K highest negatives Zhang et al. (tau-FPL), AAAI 2018, and Adam
et al. (TopPushK), 2020. Choices: the notes of `TopPush`, and docs/papers/outside.md.

To change

- the problem, its dual and the descent by definition: reference.py
- parameters, steps, momentum, when a fit ends: estimator.py
- the projections of the dual variables in linear time: kernel.pyx

tests/test_push.py holds reference and solver equal.
"""
