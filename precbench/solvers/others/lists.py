"""Learning from lists of rows, whose top counts: what LambdaRank and XGBoost share."""

import sys
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from precbench.ranking.topk import TopK
from precbench.solvers.common.base import top_of_training
from precbench.solvers.others.wrapper import ScoringClassifier

LONGEST_LIST = 10_000  # LightGBM refuses longer ones


class Lists(NamedTuple):
    """A division of the training rows into lists."""

    order: Any  # index that puts the rows list after list: an array, or a slice of all
    lengths: NDArray[np.intp]  # rows of each list
    n_top: int  # rows that are the top of a list


class ListRanker(ScoringClassifier):
    """Base of the solvers that may learn from pairs of rows at the top of lists."""

    k: TopK
    beyond_k: int  # rows by which the top of each list is longer
    list_length: int

    def _lists(
        self,
        labels: NDArray[np.int8],
        rng: np.random.Generator,
        longest: int = sys.maxsize,
    ) -> Lists:
        """Divide the rows at random into few lists of almost equal lengths.

        No list is longer than `list_length` or `longest`.
        """
        n_rows = len(labels)
        n_lists = ceil(n_rows / min(self.list_length, longest))
        lengths = np.diff(np.linspace(0, n_rows, n_lists + 1).astype(int))
        share_of_k = ceil(top_of_training(self.k, labels) / n_lists)
        n_top = share_of_k + self.beyond_k
        # A single list keeps the order of its rows.
        order = slice(None) if n_lists == 1 else rng.permutation(n_rows)
        return Lists(order, lengths, n_top)
