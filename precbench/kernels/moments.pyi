from numpy import float64, floating, int8, int32, int64, intp
from numpy.typing import NDArray

SOURCE: str

def add_pairs(
    data: NDArray[floating],
    indices: NDArray[int32],
    indptr: NDArray[int32],
    pos: NDArray[int32],
    neg: NDArray[int32],
    numbers: NDArray[int64],
    start: int,
    stop: int,
    z: NDArray[float64],
    columns: NDArray[int32],
    places: NDArray[int32],
    sums: NDArray[float64],
    products: NDArray[float64],
) -> None: ...
def add_sparse_rows(
    data: NDArray[floating],
    indices: NDArray[int32],
    indptr: NDArray[int32],
    labels: NDArray[int8],
    start: int,
    stop: int,
    z: NDArray[float64],
    columns: NDArray[int32],
    places: NDArray[int32],
    sums: NDArray[float64],
    products: NDArray[float64],
) -> None: ...
def fill_blocks(
    data: NDArray[floating],
    labels: NDArray[int8],
    start: int,
    shift: NDArray[float64],
    blocks: NDArray[float64],
    filled: NDArray[intp],
    sums: NDArray[float64],
) -> int: ...
