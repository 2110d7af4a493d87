"""What compiled inner loops share, and products of rows with a vector.

A kernel stands beside the code that calls it, such as ``solvers/push/kernel.pyx``:
arrays in, arrays out; no random numbers, classes, metrics or clocks. Here is what
kernels of several rooms need.
"""

from typing import TYPE_CHECKING, Any

from precbench.core.errors import PrecbenchError

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


try:
    import precbench.core.kernels.linear  # noqa: F401 (whether anything is compiled)
except ImportError as error:
    raise PrecbenchError(
        "the compiled modules of precbench are missing: run `pip install -e .` (or"
        " `make build`) in its source folder"
    ) from error
