"""A fitted ranking for rows of the user: fit, save, load, score and rank."""

import os
import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from precbench.core.errors import InputError, did_you_mean, nearest_or_all
from precbench.core.kinds import Scaling
from precbench.data.dataset import Imputed
from precbench.data.preprocess import ROWS_AT_ONCE, Scaler
from precbench.model import archive
from precbench.model.calibration import Calibration
from precbench.model.drift import Drift, Profile
from precbench.model.fitted_classifier import FittedClassifier
from precbench.model.shapley import Contributions
from precbench.model.training_rows import TrainingRows
from precbench.ranking.topk import HeldOut
from precbench.solvers import SOLVERS, LinearRanker, Ranker
from precbench.solvers.common.base import untraced
from precbench.solvers.common.random_features import RandomFeatures
from precbench.solvers.common.rows import as_rows, linear_scores
from precbench.solvers.others.members import Member, weighted_scores
from precbench.solvers.others.trees import Trees
from precbench.tables.encoding import Column, Encoding, Gaps
from precbench.tables.own_table import is_frame, table_of
from precbench.tables.reading import Categorical, Label, Missing
from precbench.tables.roles import require_same_rows, signs_of_rows

_VALUES_AT_ONCE = 2**22  # random features of a block of rows: 32 MiB
_ENOUGH = 10  # training rows per weight, with which their scores are hardly too extreme


def make_solver(name: str, params: Mapping[str, Any]) -> Ranker:
    """Return an unfitted solver whose weights, trees or members a model can keep.

    Raise an `InputError` for any other solver or an unknown parameter; `fit` checks the
    values.
    """
    if name not in SOLVERS:
        raise InputError(
            f"unknown solver {name!r}{nearest_or_all(name, SOLVERS, 'solvers')}"
        )
    solver = SOLVERS[name]()
    if not _can_be_kept(solver):
        others = ", ".join(other for other in SOLVERS if _can_be_kept(SOLVERS[other]()))
        raise InputError(
            f"solver {name} has neither weights nor trees to save; compare {name} in a"
            f" config of precbench run, or choose from {others}"
        )
    known = solver.get_params()
    for param, value in params.items():
        if param not in known:
            raise InputError(
                f"{name} has no parameter {param!r}{did_you_mean(param, known)}; choose"
                f" from {', '.join(known)}"
            )
        # True would count as 1.
        if isinstance(value, bool) and not isinstance(known[param], bool):
            raise InputError(f"{name}: {param} must be a number or text, found {value}")
    return solver.set_params(**params)


def _can_be_kept(solver: Ranker) -> bool:
    has_weights = isinstance(solver, LinearRanker)
    return has_weights or hasattr(solver, "to_trees") or hasattr(solver, "to_members")


@dataclass(frozen=True, eq=False, repr=False)
class Model(FittedClassifier):
    """A fitted ranking that scores new rows.

    It has weights, trees or members, and a scaling and an encoding of the rows.

    Attributes
    ----------
    solver : str
        Name in the registry.
    params : dict
        Parameters of the solver.
    coef : ndarray or None
        Weights of the scaled, or of the random features; None for trees and ensembles.
    scaler : Scaler
    encoding : Encoding or None
        How rows of a file become features; None for a model of bare arrays.
    about : dict
        Further facts, as values of JSON: of `fit` the numbers of rows, features and
        positives, the day, and the versions of the software.
    intercept : float
        Added to all scores: of ensembles, and of solvers fitted to the objective "f1";
        else 0.
    trees : Trees or None
        The trees, in place of weights.
    random_features : RandomFeatures or None
        What the scaled features are mapped to.
    members : tuple of Member
        The members of an ensemble, in place of weights and trees; else empty.
    calibration : Calibration or None
        How scores become probabilities, see `calibrated`.
    profile : Profile or None
        What the training rows looked like, see `profiled`.
    training_rows : TrainingRows or None
        Hashes by which training rows are recognised in a list, see `profiled`.
    mean : ndarray of shape (n_features,) or None
        Mean of the scaled training rows, for `explain`; None if it is 0 by scaling, and
        for trees.

    Examples
    --------
    >>> import numpy as np
    >>> from precbench import Model
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 3))
    >>> y = X[:, 0] + rng.standard_normal(500) > 1.5
    >>> model = Model.fit(X, y, "sgd-avg", k=50, scaling="standardise", random_state=0)
    >>> model.rank(X, top=3).shape
    (3, 3)
    >>> int(abs(model.explain(X[:1]).to_numpy()).argmax())  # the column that matters
    0
    """

    solver: str
    params: dict[str, Any]
    coef: NDArray[np.float64] | None
    scaler: Scaler
    encoding: Encoding | None = None
    about: dict[str, Any] = field(default_factory=dict)
    intercept: float = 0.0
    trees: Trees | None = None
    random_features: RandomFeatures | None = None
    members: tuple[Member, ...] = ()
    calibration: Calibration | None = None
    profile: Profile | None = None
    training_rows: TrainingRows | None = None
    mean: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        return f"Model({self.solver!r}, {self.n_features} features)"

    @classmethod
    def fit(
        cls,
        X: Any,
        y: Any,
        solver: str = "sgd-avg",
        *,
        positive: Label | Sequence[Label] | None = None,
        scaling: Scaling = "none",
        encoding: Encoding | None = None,
        categorical: Categorical = "error",
        missing: Missing = "error",
        fourier: int | Mapping[str, Any] | None = None,
        sample_weight: Any = None,
        **params: Any,
    ) -> Self:
        """Fit a solver to rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Not changed. From a frame with named columns the model learns the encoding,
            as ``precbench fit`` does from a file: dates are converted to days, and the
            model scores frames and files by the names of their columns.
        y : array-like of shape (n_samples,)
            0 and 1, -1 and 1, truth values, or other labels of which `positive` names
            the hits.
        solver : str, default="sgd-avg"
            Name in the registry.
        positive : str or number, or a list of these, optional
            The labels of the positive class; not needed for 0 and 1, or -1 and 1.
        scaling : {"standardise", "unit", "unit-norm", "standardise-unit-norm", "none"}
            See `precbench.data.preprocess.Scaler`; default "none".
        encoding : Encoding, optional
            How X was made of the rows of a file.
        categorical : {"error", "one-hot"} or sequence of str
            Treatment of text in a frame, or the columns of categories, whether text or
            numbers.
        missing : {"error", "mean", "median", "most-frequent"}
            Treatment of missing values in a frame.
        fourier : int or mapping, optional
            Number of random Fourier features to take in place of the scaled features,
            or a mapping with this ``n_components`` and, as in configs, ``gamma`` or
            ``bandwidth``. They are drawn with the ``random_state`` of the mapping or
            else of the solver, if there is one.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, for solvers that take weights; scaling and random
            features do not.
        **params
            Parameters of the solver.

        Raises
        ------
        InputError
            If the solver does not accept X, y or a parameter, or the weights overflow.
        """
        require_same_rows(X, y=y, sample_weight=sample_weight)
        y = signs_of_rows(y, positive)
        unfitted = make_solver(solver, params)
        if encoding is None and is_frame(X):
            table = table_of(X, "X")
            encoding = Encoding.learn(table, categorical=categorical, missing=missing)
            X = encoding.encode(table.frame, "X")
        matrix = _matrix(X)
        # Before the scaler, whose vectors need memory, too.
        unfitted.require_memory(matrix.shape[1])
        scaler = Scaler(scaling).fit(matrix)
        features = matrix
        if scaling != "none":
            features = scaler.transform_in_place(matrix.copy())
        mean = None  # of standardised features it is 0; trees need none
        if scaler.kind != "standardise" and not hasattr(unfitted, "to_trees"):
            mean = np.asarray(features.mean(axis=0), dtype=np.float64).ravel()
        random_features = None
        if fourier is not None:
            random_features = _random_features(
                features, fourier, params.get("random_state")
            )
            features = random_features.transform(features)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        try:
            fitted = unfitted.fit(features, y, trace=untraced, **weights)
        except InputError:
            raise  # also a `ValueError`, but says what to do
        except ValueError as error:  # of scikit-learn's checks
            raise InputError(
                f"{solver} cannot be fitted: {str(error).rstrip('.')}; change the rows,"
                " the labels or a parameter"
            ) from error
        fitted_params = fitted.get_params()
        fitted_params.pop("random_state", None)
        return cls(
            solver=solver,
            params=fitted_params,
            coef=getattr(fitted, "coef_", None),
            scaler=scaler,
            encoding=encoding,
            about=_circumstances(fitted, matrix, y),
            intercept=float(getattr(fitted, "intercept_", 0.0)),
            trees=fitted.to_trees() if hasattr(fitted, "to_trees") else None,
            random_features=random_features,
            members=tuple(fitted.to_members()) if hasattr(fitted, "to_members") else (),
            mean=mean,
        )

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return self._parts[0].n_features  # all parts have as many

    @property
    def _parts(self) -> tuple[Member, ...]:
        """The members, or the model itself as one member."""
        if self.members:
            return self.members
        own = Member(
            name="",
            coef=self.coef,
            trees=self.trees,
            random_features=self.random_features,
        )
        return (own,)

    @property
    def spans(self) -> list[tuple[Column, slice]]:
        """The columns and their features; of bare arrays each feature is a column."""
        encoding = self.encoding or Encoding("npz", self.n_features, dense=True)
        return encoding.spans()

    def decision_function(
        self, X: Any, *, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Score rows; larger is more likely positive.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Unscaled; not changed. A frame may have further columns, in any order.
        n_jobs : int, optional
            Number of threads for trees and random features, as in scikit-learn: None
            for 1, -1 for one per core. Weights of the features themselves always take
            one thread.

        Returns
        -------
        ndarray of shape (n_samples,)
            Equal rows of one matrix have equal scores, with any `n_jobs`.

        Raises
        ------
        InputError
            If X has another number of features or a value that is not finite, or a
            score overflows.

        Warns
        -----
        UserWarning
            Counts what a frame lacks, see `precbench.tables.own_file.read_new_rows`.
        """
        X = self._encoded(X)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._scores(X, n_jobs)
        _check_finite(scores)
        return scores

    def _encoded(self, X: Any) -> Any:
        """Return rows as a matrix of the model's features; a frame is encoded."""
        values = X
        if self.encoding is not None and self.encoding.columns and is_frame(X):
            gaps = Gaps()
            values = self.encoding.encode(table_of(X, "X").frame, "X", gaps)
            for sentence in gaps.sentences():  # such as "3 values filled in age"
                warnings.warn(f"X: check the rows to score: {sentence}", stacklevel=3)
        matrix = _matrix(values)
        if matrix.shape[1] != self.n_features:
            raise InputError(
                f"X has {matrix.shape[1]} features, and the model {self.n_features};"
                " give rows with the features that the model was fitted to"
            )
        return matrix

    def _scores(self, X: Any, n_jobs: int | None) -> NDArray[np.float64]:
        """Return the scores of encoded rows."""
        has_weights_of_features = self.coef is not None and self.random_features is None
        if has_weights_of_features and not self.scaler.scales_rows:
            return self._scores_by_scaled_weights(X)
        n_random = (
            1 if self.random_features is None else len(self.random_features.offset)
        )
        n_rows = max(1, min(ROWS_AT_ONCE, _VALUES_AT_ONCE // n_random))  # of a block

        def score_block(start: int) -> NDArray[np.float64]:
            return self._scores_of_block(X[start : start + n_rows])

        # Weights of the features themselves take one thread.
        n_threads = 1 if has_weights_of_features else effective_n_jobs(n_jobs)
        starts = range(0, X.shape[0], n_rows)
        if n_threads == 1:
            return np.concatenate([score_block(start) for start in starts])
        with _threads(n_threads) as pool:
            return np.concatenate(list(pool.map(score_block, starts)))

    def _scores_by_scaled_weights(self, X: Any) -> NDArray[np.float64]:
        """Return scores by weights that absorb the scaling of columns.

        They can, since w (x - shift) / scale is linear in x.
        """
        assert self.coef is not None
        weights = self.coef
        constant = self.intercept
        if self.scaler.shift is not None and self.scaler.scale is not None:
            weights = weights / self.scaler.scale
            constant -= float(self.scaler.shift @ weights)
        return linear_scores(as_rows(X), weights) + constant

    def _scores_of_block(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of a scaled copy of some rows."""
        rows = self._scaled(X)
        if self.random_features is not None:
            rows = self.random_features.transform(rows)
        if self.members:
            return weighted_scores(self.members, rows) + self.intercept
        if self.trees is not None:
            return self.trees.scores(rows)
        assert self.coef is not None
        return linear_scores(as_rows(rows), self.coef) + self.intercept

    def _scaled(self, rows: Any) -> Any:
        """Return a scaled copy of rows, dense if columns are shifted.

        Without scaling, return the rows themselves.
        """
        if self.scaler.kind == "none":
            return rows
        shift = self.scaler.shift
        if shift is not None and shift.any() and not isinstance(rows, np.ndarray):
            rows = rows.toarray()
        return self.scaler.transform_in_place(rows.copy())

    def explain(self, X: Any, *, n_jobs: int | None = None) -> pd.DataFrame:
        """Say what each column of a row adds to its score, against the training rows.

        The contribution of a column is its Shapley value: by how much the score changes
        when the column becomes known, as the mean over all orders of columns. For
        weights this is exactly the weight times the difference of the scaled value to
        its mean over the training rows, also where a scaling divides rows by their
        norms. At the splits of trees an unknown column takes the mean of both sides, by
        their shares of the training rows; for random features it takes its mean. In an
        ensemble the log odds of a forest are divided among columns in proportion to
        what these add to the probability. The features of a column of categories count
        as one.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            See `decision_function`. Forests take some milliseconds a row.
        n_jobs : int, optional
            Number of threads, see `decision_function`.

        Returns
        -------
        pandas.DataFrame
            A row for each row of X, a column for each column of the model, named
            ``feature 1`` and so on if the model knows no names. A row and
            ``attrs["base"]``, the score of a row of which nothing is known, add up to
            the score.

        Raises
        ------
        InputError
            See `decision_function`, and if the model has trees of random features.
        """
        names = []
        n_features = []
        for column, features in self.spans:
            names.append(column.name)
            n_features.append(features.stop - features.start)
        column_of_feature = np.repeat(np.arange(len(names), dtype=np.int32), n_features)
        explain_rows = partial(
            Contributions.of,
            self._parts,
            mean=np.zeros(self.n_features) if self.mean is None else self.mean,
            column=column_of_feature,
            is_stacked=bool(self.members),
        )
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = self._scaled(self._encoded(X))
            rows = scaled if isinstance(scaled, np.ndarray) else scaled.toarray()
            n_threads = max(1, min(effective_n_jobs(n_jobs), len(rows)))
            with _threads(n_threads) as pool:
                parts = list(pool.map(explain_rows, np.array_split(rows, n_threads)))
        values = np.concatenate([part.values for part in parts])
        _check_finite(values)
        explained = pd.DataFrame(values, columns=names)
        base = parts[0].base  # that of all parts
        explained.attrs["base"] = base + self.intercept
        return explained

    def calibrated(
        self, lists: Sequence[HeldOut], test_share: float, X: Any = None
    ) -> Self:
        """Return the model with probabilities, learnt from held-out rows.

        Parameters
        ----------
        lists : sequence of HeldOut
            Labels, and scores of models fitted like this model to other rows, as
            ``precbench fit`` and ``precbench compare --save`` make them; each list with
            both classes.
        test_share : float
            Share of all rows that each list holds out, in (0, 1).
        X : {array-like, sparse matrix} of shape (n_samples, n_features), optional
            The training rows. If they are ten times as many as the weights, the curves
            are moved from the quartiles of the lists' scores to the quartiles of the
            training rows' scores: the scale of some solvers depends on how many rows
            they have seen.
        """
        calibration = Calibration.fit(lists, test_share)
        training_scores = None if X is None else self._training_scores(X)
        if training_scores is not None:
            of_lists = np.concatenate([held.scores for held in lists])
            calibration = calibration.matched(of_lists, training_scores)
        return replace(self, calibration=calibration)

    def _training_scores(self, X: Any) -> NDArray[np.float64] | None:
        """Return scores of the training rows X.

        None if they may be too extreme: of a model without weights, or with few rows
        for each weight.
        """
        if self.coef is None or X.shape[0] < _ENOUGH * len(self.coef):
            return None
        return self.decision_function(X)

    def profiled(
        self, X: Any, lists: Sequence[HeldOut], imputed: Imputed | None = None
    ) -> Self:
        """Return the model with the distribution and hashes of its training rows.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_samples, n_features)
            The training rows, as the model's `encoding` encodes them.
        lists : sequence of HeldOut
            See `calibrated`. The scores of the lists are used, as scores of training
            rows are too extreme; but the latter, if training rows are ten times as many
            as the model's weights.
        imputed : Imputed, optional
            Which values of X are filled in.
        """
        assert self.encoding is not None
        training_scores = self._training_scores(X)
        scores = [held.scores for held in lists]
        if training_scores is not None:
            scores = [training_scores]
        profile = Profile.learn(X, self.encoding, imputed, scores)
        return replace(self, profile=profile, training_rows=TrainingRows.learn(X))

    def drift(self) -> Drift:
        """Return an empty `Drift`, which compares new rows with the training rows.

        Raises
        ------
        InputError
            If the model does not know its training rows.
        """
        if self.profile is None or self.encoding is None:
            raise InputError(
                "the model has no profile of its training rows; fit the model again,"
                " with `precbench fit` or `precbench compare --save`, or to a DataFrame"
            )
        return Drift(self.profile, self.encoding)

    def predict_proba(
        self, X: Any, *, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return calibrated probabilities, which add up to the expected hits of a list.

        Parameters
        ----------
        X, n_jobs
            See `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Of the negative and of the positive class.

        Raises
        ------
        InputError
            If the model is not calibrated, and as `decision_function`.
        """
        positive = self.probabilities(self.decision_function(X, n_jobs=n_jobs))
        return np.column_stack([1 - positive, positive])

    def probabilities(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of a hit at each score of this model.

        Raises
        ------
        InputError
            If the model is not calibrated.
        """
        if self.calibration is None:
            raise InputError(
                "the model has no probabilities; fit the model again, with `precbench"
                " fit` or `precbench compare --save`, or use Model.calibrated"
            )
        return self.calibration.probabilities(np.asarray(scores, dtype=np.float64))

    def rank(
        self, X: Any, top: int | None = None, *, n_jobs: int | None = None
    ) -> pd.DataFrame:
        """List rows from the highest score down.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        top : int, optional
            Number of rows to list; default all.
        n_jobs : int, optional
            See `decision_function`.

        Returns
        -------
        pandas.DataFrame
            Columns ``rank`` (from 1), ``row`` (from 1, in the order of X) and
            ``score``. Of equal scores the earlier row comes first.
        """
        blocks = [(X, pd.DataFrame())]
        ranking, _n_rows = self.rank_blocks(blocks, top, n_jobs=n_jobs)
        return ranking

    def rank_blocks(
        self,
        blocks: Iterable[tuple[Any, pd.DataFrame]],
        top: int | None = None,
        *,
        n_jobs: int | None = None,
        watch: Callable[[Any, NDArray[np.float64]], None] | None = None,
        listed: dict[int, Any] | None = None,
    ) -> tuple[pd.DataFrame, int]:
        """Return the ranking, or its top, of rows that come in blocks.

        Parameters
        ----------
        blocks : iterable of (X, kept)
            Rows as `rank` takes them, and columns to list beside their scores.
        top : int, optional
            Number of rows to list; default all.
        n_jobs : int, optional
            See `decision_function`.
        watch : callable, optional
            Called with each X and its scores.
        listed : dict, optional
            Changed in place: after each block, the encoded rows in the top so far, by
            row number.

        Returns
        -------
        ranking : pandas.DataFrame
            As from `rank`, with the kept columns after ``row``.
        n_rows : int
            Number of rows in all.
        """
        if top is not None and top < 1:
            raise InputError(f"top must be at least 1, found {top}")
        ranked: list[pd.DataFrame] = []
        n_rows = 0  # of the blocks so far
        for block, other_columns in blocks:
            # Listed rows are stored encoded, as `explain` takes them.
            X = block if listed is None else self._encoded(block)
            scores = self.decision_function(X, n_jobs=n_jobs)
            if watch is not None:
                watch(X, scores)
            n_before = n_rows
            n_rows += len(scores)
            numbers = np.arange(n_before + 1, n_rows + 1)  # of the rows, from 1
            ranked.append(_columns_of_ranking(numbers, other_columns, scores))
            if top is not None:
                ranked = [_best(ranked, top)]  # only the top so far
            if listed is not None:
                in_top = {int(number) for part in ranked for number in part["row"]}
                _replace_displaced(listed, in_top, X, n_before)
        ranking = _best(ranked, top)
        ranking.insert(0, "rank", np.arange(1, len(ranking) + 1))
        return ranking, n_rows

    def save(self, path: str | os.PathLike[str], *, row_hashes: bool = True) -> None:
        """Write the model as one npz file of plain arrays, whole or not at all.

        Parameters
        ----------
        path : path-like
            An existing file is replaced; through a symbolic link, the file that it
            leads to.
        row_hashes : bool, default=True
            Whether to write hashes of training rows, by which ``precbench score``
            recognises them in a list. Whoever has the file can test whether a row was
            among them.

        Raises
        ------
        InputError
            If the file cannot be written.
        PrecbenchError
            If the disk is full.
        """
        archive.write(self if row_hashes else replace(self, training_rows=None), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model; no pickle is ever read.

        Raises
        ------
        InputError
            If the file does not exist, cannot be read, is not a model or is from a
            newer precbench.
        """
        return cls(**archive.read(path))


def _columns_of_ranking(
    numbers: NDArray[np.intp], other_columns: pd.DataFrame, scores: NDArray[np.float64]
) -> pd.DataFrame:
    """Return row number, other columns and score of some rows, in their order."""
    clashes = {"rank", "row", "score", "probability"} & set(other_columns)
    if clashes:
        raise InputError(
            f"the ranking has a column {min(clashes)!r} of its own; rename the column"
            " of the file, or keep other columns"
        )
    columns = {name: column.to_numpy() for name, column in other_columns.items()}
    return pd.DataFrame({"row": numbers, **columns, "score": scores})


def _best(blocks: Sequence[pd.DataFrame], top: int | None) -> pd.DataFrame:
    """Return the `top` rows with the highest scores, None for all rows, in order.

    Of equal scores the earlier row comes first.
    """
    rows = pd.concat(blocks)
    order = np.argsort(-rows["score"].to_numpy(), kind="stable")[:top]
    return rows.iloc[order].reset_index(drop=True)


def _replace_displaced(
    listed: dict[int, Any], in_top: set[int], X: Any, n_before: int
) -> None:
    """Replace rows that have left the top by rows of a block, by row number from 1.

    `in_top` has the numbers of the rows in the top so far, `X` the block after
    `n_before` rows.
    """
    for row in listed.keys() - in_top:
        del listed[row]
    for row in in_top:
        if row > n_before:
            listed[row] = X[row - n_before - 1].copy()


def _threads(n: int) -> ThreadPoolExecutor:
    """Return a pool of threads with the caller's treatment of floating-point errors."""
    return ThreadPoolExecutor(n, initializer=partial(np.seterr, **np.geterr()))


def _check_finite(scores: NDArray[np.float64]) -> None:
    if not np.isfinite(scores).all():
        raise InputError(
            "scores overflow: products of features and weights of the model are too"
            " large; scale the features"
        )


def _matrix(X: Any) -> Any:
    """Return rows of finite numbers as a float64 array in C order or a CSR matrix."""
    try:
        return check_array(
            X, accept_sparse="csr", dtype=np.float64, order="C", input_name="X"
        )
    except ValueError as error:
        first_line, _newline, _advice = str(error).partition("\n")
        raise InputError(first_line) from error


def _circumstances(fitted: Ranker, X: Any, y: Any) -> dict[str, Any]:
    """Return sizes, day and versions for `Model.about`.

    Nothing is stated about the user, the machine or a folder.
    """
    from precbench import __version__

    versions = {
        "precbench": __version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
    }
    # A solver that wraps a library has a version such as "1, lightgbm 4.6".
    _number, _, library_and_version = str(fitted.algorithm_version).partition(", ")
    library, _, version = library_and_version.rpartition(" ")
    if library:
        versions[library] = version
    return {
        "rows": X.shape[0],
        "features": X.shape[1],
        "positives": int(np.count_nonzero(np.asarray(y) == fitted.classes_[1])),
        "fitted": datetime.now(UTC).date().isoformat(),
        "versions": versions,
    }


def _random_features(
    X: Any, fourier: int | Mapping[str, Any], seed_of_solver: Any
) -> RandomFeatures:
    """Draw random Fourier features for scaled rows; check the names of the options."""
    options: dict[str, Any] = {"n_components": fourier}
    if isinstance(fourier, Mapping):
        options = dict(fourier)
    known = {"n_components", "gamma", "bandwidth", "random_state"}
    for name in options:
        if name not in known:
            raise InputError(
                f"fourier has no option {name!r}{did_you_mean(name, known)}; choose"
                f" from {', '.join(sorted(known))}"
            )
    if "n_components" not in options:
        raise InputError(
            "fourier lacks n_components; give the number of random features"
        )
    seed = options.pop("random_state", seed_of_solver)
    return RandomFeatures.fit(X, **options, seed=seed)
