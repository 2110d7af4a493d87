from numpy import float64, int8
from numpy.typing import NDArray

SOURCE: str

def project(point: NDArray[float64], labels: NDArray[int8], out: NDArray[float64]) -> None: ...
def project_capped(
    point: NDArray[float64],
    labels: NDArray[int8],
    k: int,
    kth: float,
    after: float,
    out: NDArray[float64],
) -> None: ...
