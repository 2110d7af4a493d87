#!/bin/sh
# Uses an installed precbench in an empty folder as a newcomer would; needs no network and no compiler.
set -eu
precbench run letter --smoke
precbench plot results
python -c '
import random
draw = random.Random(0)
print("calls,bill,churned")
for _ in range(600):
    calls, bill = draw.gauss(0, 1), draw.gauss(0, 1)
    churned = "yes" if calls - bill + draw.gauss(0, 1) > 2 else "no"
    print(f"{calls:.3f},{bill:.3f},{churned}")' > customers.csv
precbench compare customers.csv --label churned --positive yes --k 20 --splits 2 \
    --solver sgd-avg --solver logistic-regression --save top.npz
precbench score top.npz customers.csv --top 5 --explain 1
