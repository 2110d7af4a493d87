"""Errors with a cause outside the code and exit codes, and hints at misspelt names."""

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
    """A data set that is neither in cache or mirror, nor can be downloaded."""

    exit_code = 3


def did_you_mean(name: object, valid: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the nearest valid name, "" without one."""
    import difflib

    given = str(name).lower()
    spellings = {valid_name.lower(): valid_name for valid_name in valid}
    one_off = [lower for lower in spellings if _is_one_letter_off(given, lower)]
    if one_off:  # near enough in a name of any length, so no `cutoff`
        near = difflib.get_close_matches(given, one_off, n=1, cutoff=0)
    else:
        near = difflib.get_close_matches(given, spellings, n=1, cutoff=0.6)
    if not near:
        return ""
    [nearest] = near
    return f" (did you mean {spellings[nearest]!r}?)"


def nearest_or_all(name: object, valid: Collection[str], listed: str = "") -> str:
    """Return the end of a message: the nearest valid name, else all names.

    `listed` is the word after ``precbench list`` that shows all names, as "solvers".
    """
    hint = did_you_mean(name, valid)
    if not hint:
        return f"; choose from {', '.join(valid)}"
    if listed:
        return f"{hint}; precbench list {listed} shows all"
    return hint


def _is_one_letter_off(given: str, valid: str) -> bool:
    """Return whether one letter is added, missing or wrong, or two are swapped."""
    start = len(os.path.commonprefix([given, valid]))  # noqa: RUF071 (letters, not folders)
    rest = given[start:]
    valid_rest = valid[start:]
    if rest[1:] == valid_rest:  # a letter too many
        return True
    if rest == valid_rest[1:]:  # a missing letter
        return True
    if rest[1:] == valid_rest[1:]:  # a wrong letter, or no difference
        return True
    swapped = rest[1:2] + rest[:1] + rest[2:]  # the first two letters
    return swapped == valid_rest
