"""Errors with a cause outside the code, with exit codes, and hints for misspelt names."""

import os
from collections.abc import Collection, Iterable


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
    """Return ``" (did you mean 'x'?)"`` for the nearest valid name, "" if none is near."""
    import difflib

    spellings = {other.lower(): other for other in valid}  # valid names by lower case
    lower = str(name).lower()
    one_off = [other for other in spellings if _is_one_letter_off(lower, other)]
    # Names one letter off go first, however short (cutoff 0); without them, similar
    # names count.
    near = difflib.get_close_matches(
        lower, one_off or spellings, n=1, cutoff=0 if one_off else 0.6
    )
    return f" (did you mean {spellings[near[0]]!r}?)" if near else ""


def nearest_or_all(name: object, valid: Collection[str], listed: str = "") -> str:
    """Return the end of a message about an unknown name.

    The nearest valid name, else all names.
    """
    # `listed` is the word after ``precbench list`` that shows all names, such as
    # "solvers".
    near = did_you_mean(name, valid)
    if not near:
        return f"; choose from {', '.join(valid)}"
    return f"{near}; precbench list {listed} shows all" if listed else near


def _is_one_letter_off(given: str, valid: str) -> bool:
    """Return whether `given` is `valid` with a letter added, missing or wrong, or two swapped."""
    start = len(os.path.commonprefix([given, valid]))  # noqa: RUF071 (letters, not folders)
    rest, valid_rest = given[start:], valid[start:]
    return (
        rest[1:] == valid_rest  # a letter too many
        or rest == valid_rest[1:]  # a missing letter
        or rest[1:] == valid_rest[1:]  # a wrong letter, or no difference
        # two swapped letters
        or (rest[1::-1] == valid_rest[:2] and rest[2:] == valid_rest[2:])
    )
