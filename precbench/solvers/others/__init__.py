"""Methods of other libraries, and a stack of methods.

To change

- logistic regression, the linear support vector machine: linear.py
- boosted trees: hist_gradient_boosting.py, lightgbm.py, xgboost.py, catboost.py
- lists of rows, whose top counts: lists.py
- forests: forests.py
- the neural network, the same score for all: mlp.py, no_skill.py
- any other classifier of scikit-learn, what all of these share: wrapper.py
- the stack of methods, and its members: ensemble.py, members.py
- trees as plain arrays, and their scores: trees.py, trees_kernel.pyx

LightGBM, XGBoost and CatBoost are optional packages, imported by the first fit.
"""
