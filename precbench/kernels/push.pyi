from numpy import float64, floating, int8, int32
from numpy.typing import NDArray

SOURCE: str

def class_sums(
    data: NDArray[floating],
    indices: NDArray[int32],
    indptr: NDArray[int32],
    labels: NDArray[int8],
    w: NDArray[float64],
    rate_pos: float,
    rate_neg: float,
    start: int,
    stop: int,
    scores: NDArray[float64],
    peaks: NDArray[float64],
    totals: NDArray[float64],
    sums: NDArray[float64],
) -> None: ...
def class_ranges(
    values: NDArray[float64], labels: NDArray[int8], ranges: NDArray[float64]
) -> None: ...
def line_search(
    scores: NDArray[float64],
    labels: NDArray[int8],
    direction: NDArray[float64],
    terms: NDArray[float64],
    power: float,
    reach: float,
    noise: float,
    state: NDArray[float64],
    max_evaluations: int,
) -> bool: ...
def pair_heights(
    scores: NDArray[float64],
    upper: NDArray[int32],
    lower: NDArray[int32],
    starts: NDArray[int32],
    stops: NDArray[int32],
    logistic: bool,
    first: int,
    last: int,
    log_heights: NDArray[float64],
) -> None: ...
def pair_gradient(
    scores: NDArray[float64],
    upper: NDArray[int32],
    lower: NDArray[int32],
    starts: NDArray[int32],
    stops: NDArray[int32],
    logistic: bool,
    first: int,
    last: int,
    log_heights: NDArray[float64],
    weights: NDArray[float64],
    gradient: NDArray[float64],
) -> None: ...
