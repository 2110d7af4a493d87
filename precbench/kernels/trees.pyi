from numpy import float64, floating, int32
from numpy.typing import NDArray

SOURCE: str

def add_trees(
    data: NDArray[floating],
    indices: NDArray[int32],
    indptr: NDArray[int32],
    feature: NDArray[int32],
    value: NDArray[float64],
    right: NDArray[int32],
    root: NDArray[int32],
    start: int,
    stop: int,
    row: NDArray[float64],
    scores: NDArray[float64],
) -> None: ...
