"""Errors with a cause outside the code, each with its exit code, and a hint for misspelt names."""

from collections.abc import Iterable


class PrecbenchError(Exception):
    """One sentence for the user: what was found, where, and what to do."""

    exit_code = 1


class InputError(PrecbenchError, ValueError):
    """A wrong option, config, file or array."""

    exit_code = 2


class DataUnavailableError(PrecbenchError):
    """A data set that is neither in the cache, nor in a mirror, nor can be downloaded."""

    exit_code = 3


def did_you_mean(name: object, valid: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the nearest valid name, or nothing.

    Parameters
    ----------
    name : object
        As found.
    valid : iterable of str

    Returns
    -------
    str
    """
    import difflib

    spelt = {other.lower(): other for other in valid}
    near = difflib.get_close_matches(str(name).lower(), spelt, n=1)
    return f" (did you mean {spelt[near[0]]!r}?)" if near else ""
