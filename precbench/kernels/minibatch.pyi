from typing import Any

from numpy import float64, floating, int8, int32
from numpy.typing import NDArray

SOURCE: str

PERCEPTRON_AVG: int
PERCEPTRON_MAX: int
AVG: int
MAX: int
RAMP: int
STRUCT: int
PAUC: int
F1: int
MOST_CANDIDATES: int

def minibatch_pass(
    data: NDArray[floating],
    indices: NDArray[int32],
    indptr: NDArray[int32],
    n_features: int,
    y: NDArray[int8],
    order: NDArray[int32],
    start: int,
    stop: int,
    batch_size: int,
    candidates: tuple[tuple[Any, ...], ...],
    real_scratch: NDArray[float64],
    int_scratch: NDArray[int32],
    mixed: NDArray[float64],
) -> int: ...
