"""Presets: solvers with a name of their own that are a class with other defaults."""

import inspect
from typing import Any

from precbench.solvers.base import Ranker

__all__ = ["Preset"]


class Preset:
    """A class of solvers with some of its defaults changed; called like the class.

    Its signature and its docstring, which ``help`` shows, are those of the class with the change.

    Parameters
    ----------
    solver : type
    **changed
        New defaults.

    Attributes
    ----------
    keywords : dict
        The new defaults, as of `functools.partial`.
    """

    def __init__(self, solver: type[Ranker], /, **changed: Any):
        self._solver = solver
        self.keywords = changed
        known = inspect.signature(solver)
        self.__signature__ = known.replace(
            parameters=[
                p.replace(default=changed.get(name, p.default), kind=p.KEYWORD_ONLY)
                for name, p in known.parameters.items()
            ]
        )
        shown = (f"{name}={p.default!r}" for name, p in self.__signature__.parameters.items())
        self.__doc__ = f"{solver.__name__}({', '.join(shown)})\n\n{inspect.getdoc(solver)}"

    def __call__(self, **params: Any) -> Ranker:
        """Return an unfitted solver."""
        return self._solver(**{**self.keywords, **params})

    def __repr__(self) -> str:
        changed = (f", {name}={value!r}" for name, value in self.keywords.items())
        return f"Preset({self._solver.__name__}{''.join(changed)})"
