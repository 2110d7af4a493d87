from numpy import float64, int32, intp, uint8, uint64
from numpy.typing import NDArray

SOURCE: str

def top_rows(
    scores: NDArray[float64],
    rows: NDArray[intp] | None,
    member: NDArray[uint8] | None,
    candidates: NDArray[intp],
    values: NDArray[float64],
    first: NDArray[intp],
) -> None: ...
def rows_down_to(
    scores: NDArray[float64],
    count: int,
    with_ties: bool,
    rows: NDArray[intp],
    values: NDArray[float64],
) -> int: ...
def count_pairs(
    few: NDArray[float64],
    ascending: NDArray[float64],
    many: NDArray[float64],
    starts: NDArray[int32],
    of_few: NDArray[float64],
    of_many: NDArray[float64],
    heads: NDArray[float64],
) -> None: ...
def sort_bits(bits: NDArray[uint64], spare: NDArray[uint64]) -> None: ...
def count_down(
    pos: NDArray[float64],
    neg: NDArray[float64],
    true_pos: NDArray[intp],
    false_pos: NDArray[intp],
    thresholds: NDArray[float64],
) -> int: ...
