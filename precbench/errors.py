"""What can go wrong outside the code, each with the exit code of the command line."""


class PrecbenchError(Exception):
    """One sentence for the user: what was found, where, and what to do."""

    exit_code = 1


class InputError(PrecbenchError, ValueError):
    """A wrong option, config, file or array."""

    exit_code = 2


class DataUnavailableError(PrecbenchError):
    """A data set that is neither in the cache, nor in a mirror, nor to be downloaded."""

    exit_code = 3
