"""What the process imports from which those of the trials are forked: what every trial needs."""

from precbench.runner.worker import warm_up

warm_up("perceptron-avg")
