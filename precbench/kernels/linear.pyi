from numpy import float64, floating, int32
from numpy.typing import NDArray

SOURCE: str

def dot(a: NDArray[float64], b: NDArray[float64]) -> float: ...
def linear_scores(
    data: NDArray[floating],
    indices: NDArray[int32],
    indptr: NDArray[int32],
    w: NDArray[float64],
    start: int,
    stop: int,
    scores: NDArray[float64],
) -> None: ...
def add_rows(
    data: NDArray[floating],
    indices: NDArray[int32],
    indptr: NDArray[int32],
    coef: NDArray[float64],
    start: int,
    stop: int,
    out: NDArray[float64],
) -> None: ...
