from typing import Any

from numpy import float64, int8, int32, int64
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

def minibatch_pass(
    rule: int,
    data: NDArray[float64],
    indices: NDArray[int32],
    indptr: NDArray[int32],
    y: NDArray[int8],
    order: NDArray[int32],
    start: int,
    stop: int,
    batch_size: int,
    k_of: NDArray[int32],
    eta: NDArray[Any],
    radius: float,
    w: NDArray[float64],
    w_sum: NDArray[float64],
    real_scratch: NDArray[float64],
    int_scratch: NDArray[int32],
    counts: NDArray[int64],
) -> int: ...
