"""What scikit-learn's tools ask of a classifier that has been fitted."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from precbench.ranking.scorers import precision_at_k_scorer
from precbench.ranking.topk import TopK
from precbench.tables.encoding import Encoding

if TYPE_CHECKING:
    from sklearn.utils import Tags


class FittedClassifier:
    """Mixin by which scikit-learn's displays, importances and pipelines take a model.

    Their labels are truth values, 0 and 1, or -1 and 1; the model itself is not fitted
    again by them.
    """

    about: dict[str, Any]
    params: dict[str, Any]
    encoding: Encoding | None

    if TYPE_CHECKING:  # of the model

        @property
        def n_features(self) -> int: ...

        def predict_proba(self, X: Any) -> NDArray[np.float64]: ...

    @property
    def classes_(self) -> NDArray[np.bool_]:
        """Whether a row is a hit: False and True."""
        return np.array([False, True])

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the table, or of features."""
        if self.encoding is None or not self.encoding.columns:
            return self.n_features
        return len(self.encoding.columns)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns; only of a model that was fitted to a table."""
        if self.encoding is None or not self.encoding.columns:
            raise AttributeError("a model of bare arrays has no names of features")
        names = [column.name for column in self.encoding.columns]
        return np.array(names, dtype=object)

    def predict(self, X: Any) -> NDArray[np.bool_]:
        """Say of each row whether it is more likely a hit than not.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool of shape (n_samples,)

        Raises
        ------
        InputError
            If the model is not calibrated.
        """
        return self.predict_proba(X)[:, 1] > 0.5

    def score(self, X: Any, y: ArrayLike) -> float:
        """Return precision at the `k` that the model was fitted for.

        Without a k, it is the precision among as many rows as there are positives.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        float
        """
        k_of_solver = self.params.get("k", 1.0)  # 1.0: as many as there are positives
        k: TopK = self.about.get("k", k_of_solver)
        return float(precision_at_k_scorer(k)(self, X, y))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> "Tags":
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            transformer_tags=None,
            classifier_tags=ClassifierTags(multi_class=False),
            regressor_tags=None,
            input_tags=InputTags(sparse=True, allow_nan=True, string=True),
        )
