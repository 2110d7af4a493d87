"""A fitted ranking of one's own rows: from a file, to a file, and to the top of a list."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from precbench.data.own import Encoding
from precbench.data.preprocess import Scaler, Scaling
from precbench.errors import InputError
from precbench.solvers import SOLVERS

__all__ = ["Model"]

_SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Model:
    """Weights with all that is needed to score new rows as the training rows were scored.

    Attributes
    ----------
    solver : str
        Name in the registry.
    params : dict
        Parameters of the solver.
    coef : ndarray of shape (n_features,)
        Of the scaled features.
    scaler : Scaler
    encoding : Encoding or None
        How rows of a file become features; None for a model of bare arrays.
    about : dict
        Whatever else is worth keeping, as JSON can hold it.
    """

    solver: str
    params: dict[str, Any]
    coef: NDArray[np.float64]
    scaler: Scaler
    encoding: Encoding | None = None
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        X: Any,
        y: Any,
        solver: str = "sgd-avg",
        *,
        scaling: Scaling = "none",
        encoding: Encoding | None = None,
        **params: Any,
    ) -> Self:
        """Fit a solver to rows.

        Parameters
        ----------
        X : {ndarray, csr_matrix} of shape (n_samples, n_features)
            Not changed.
        y : array-like of shape (n_samples,)
        solver : str, default="sgd-avg"
            Name in the registry.
        scaling : {"standardise", "unit", "none"}, default="none"
        encoding : Encoding, optional
        **params
            Of the solver.

        Returns
        -------
        Model

        Raises
        ------
        InputError
            If X, y or a parameter is not what the solver takes.
        """
        scaler = Scaler(scaling).fit(X)
        scaled = X if scaling == "none" else scaler.transform_in_place(X.copy())
        fitted = SOLVERS[solver](**params).fit(scaled, y)
        kept = {n: v for n, v in fitted.get_params().items() if n != "random_state"}
        return cls(solver, kept, fitted.coef_, scaler, encoding)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows; larger is more likely positive.

        Parameters
        ----------
        X : {ndarray, csr_matrix} of shape (n_samples, n_features)
            Unscaled; not changed.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if X.shape[1] != len(self.coef):
            raise InputError(
                f"the rows have {X.shape[1]} features and the model {len(self.coef)}: score rows "
                "of the kind that it was fitted to"
            )
        if self.scaler.kind == "none":
            return np.asarray(X @ self.coef)
        assert self.scaler.shift is not None and self.scaler.scale is not None
        weights = self.coef / self.scaler.scale
        return np.asarray(X @ weights) - float(self.scaler.shift @ weights)

    def rank(self, X: Any, top: int | None = None) -> pd.DataFrame:
        """List rows from the highest score down.

        Parameters
        ----------
        X : {ndarray, csr_matrix} of shape (n_samples, n_features)
        top : int, optional
            How many; default all.

        Returns
        -------
        pandas.DataFrame
            Columns ``rank`` (from 1), ``row`` (from 1, in the order of X) and ``score``. Of equal
            scores the earlier row comes first.
        """
        if top is not None and top < 1:
            raise InputError(f"a list of the top {top} rows is no list: ask for at least 1")
        scores = self.decision_function(X)
        order = np.argsort(-scores, kind="stable")[:top]
        return pd.DataFrame(
            {"rank": np.arange(1, len(order) + 1), "row": order + 1, "score": scores[order]}
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one npz file of plain arrays, whole or not at all.

        Parameters
        ----------
        path : path-like
            Replaced if it exists.
        """
        described = {
            "schema": _SCHEMA,
            "solver": self.solver,
            "params": self.params,
            "scaling": self.scaler.kind,
            "encoding": None if self.encoding is None else self.encoding.to_dict(),
            "about": self.about,
        }
        target = Path(path)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with unfinished.open("wb") as stream:
                np.savez(
                    stream,
                    allow_pickle=False,
                    description=np.array(json.dumps(described)),
                    coef=self.coef,
                    **{f"scaler_{n}": a for n, a in self.scaler.to_arrays().items()},
                )
            unfinished.replace(target)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise InputError(
                f"the model cannot be written to {target}: {error.strerror}; choose another place"
            ) from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model; no pickle is ever read.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        Model

        Raises
        ------
        InputError
            If there is no such file, it is no model, or a newer precbench wrote it.
        """
        try:
            with np.load(path, allow_pickle=False) as arrays:
                described = json.loads(str(arrays["description"]))
                scaler = {n[7:]: arrays[n] for n in arrays.files if n.startswith("scaler_")}
                coef = arrays["coef"]
            newer = described["schema"] > _SCHEMA
        except FileNotFoundError:
            raise InputError(
                f"no model {path}: precbench fit FILE --save {path} makes one"
            ) from None
        except (OSError, KeyError, ValueError, TypeError, AttributeError, BadZipFile) as error:
            raise InputError(
                f"{path} is not a model: expected a file that precbench fit has saved"
            ) from error
        if newer:
            raise InputError(
                f"{path} was saved by a newer precbench (schema {described['schema']}, this one "
                f"knows {_SCHEMA}): update precbench"
            )
        encoding = described["encoding"]
        return cls(
            solver=described["solver"],
            params=described["params"],
            coef=coef,
            scaler=Scaler.from_arrays(described["scaling"], scaler),
            encoding=None if encoding is None else Encoding.from_dict(encoding),
            about=described["about"],
        )
