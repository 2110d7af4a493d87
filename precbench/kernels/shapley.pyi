from numpy import float64, int8, int32
from numpy.typing import NDArray

SOURCE: str

def outline(
    feature: NDArray[int32],
    right: NDArray[int32],
    share: NDArray[float64],
    column: NDArray[int32],
    parent: NDArray[int32],
    above: NDArray[int32],
    zero: NDArray[float64],
    reach: NDArray[float64],
) -> int: ...
def add_contributions(
    X: NDArray[float64],
    feature: NDArray[int32],
    value: NDArray[float64],
    share: NDArray[float64],
    column: NDArray[int32],
    parent: NDArray[int32],
    above: NDArray[int32],
    factors: NDArray[float64],
    product: NDArray[float64],
    state: NDArray[int8],
    phi: NDArray[float64],
) -> None: ...
