"""Errors with a cause outside the code, with exit codes, and hints for misspelt names."""

import os
from collections.abc import Iterable


class PrecbenchError(Exception):
    """A one-line message for the user: what was found, where, and what to do."""

    exit_code = 1


class InputError(PrecbenchError, ValueError):
    """A wrong option, config, file or array."""

    exit_code = 2


class MissingPackageError(PrecbenchError):
    """A solver whose package is not installed."""

    exit_code = 2


class DataUnavailableError(PrecbenchError):
    """A data set that is neither in the cache, nor in a mirror, nor can be downloaded."""

    exit_code = 3


def did_you_mean(name: object, valid: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the nearest valid name, or "".

    A name that differs by one letter too many, missing, wrong or swapped is always near.
    """
    import difflib

    spellings = {other.lower(): other for other in valid}
    lower = str(name).lower()
    slips = [other for other in spellings if _is_one_letter_off(lower, other)]
    near = difflib.get_close_matches(lower, slips or spellings, n=1, cutoff=0.0 if slips else 0.6)
    return f" (did you mean {spellings[near[0]]!r}?)" if near else ""


def _is_one_letter_off(one: str, other: str) -> bool:
    """Compare what follows the common beginning, but for one letter or two swapped ones."""
    start = len(os.path.commonprefix([one, other]))  # noqa: RUF071 (of letters, as meant)
    rest, others = one[start:], other[start:]
    are_swapped = rest[1::-1] == others[:2]
    return (
        rest[1:] == others  # a letter too many
        or rest == others[1:]  # a missing one
        or rest[1:] == others[1:]  # a wrong one
        or (are_swapped and rest[2:] == others[2:])
    )
