"""The cutting-plane method, the batch baseline of the papers.

Joachims, "A support vector method for multivariate performance measures", ICML 2005;
Joachims, Finley, Yu, "Cutting-plane training of structural SVMs", Machine Learning
2009: its 1-slack Algorithm 3. The search along the line is that of Franc and
Sonnenburg, ICML 2008. Where ours differs from SVMperf: `CuttingPlane`, and
docs/papers/kar2015.md.

To change

- the algorithm as the paper writes it: reference.py
- parameters, the risks of the objectives, the search along the line: estimator.py
- the planes, and which are dropped: bundle.py
- the best weights of the planes (the dual), the worst labelling: kernel.pyx

tests/test_cutting_plane.py holds reference and solver equal.
"""
