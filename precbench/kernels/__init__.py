"""Compiled inner loops: arrays in, arrays out; no random numbers, classes, metrics or clocks."""

from precbench.errors import PrecbenchError

try:
    from precbench.kernels import minibatch  # noqa: F401 (to see whether anything is compiled)
except ImportError as error:
    raise PrecbenchError(
        "the compiled part of precbench is missing here: run `pip install -e .` (or `make build`) "
        "in the folder of its sources"
    ) from error
