from numpy import float64
from numpy.typing import NDArray

SOURCE: str

def worst_table(pos: NDArray[float64], neg: NDArray[float64], k: int) -> tuple[int, int]: ...
def solve_master(
    K: NDArray[float64],
    b: NDArray[float64],
    alpha: NDArray[float64],
    gradient: NDArray[float64],
    tol: float,
    max_steps: int,
) -> int: ...
def dual(K: NDArray[float64], b: NDArray[float64], alpha: NDArray[float64]) -> float: ...
def solve_positive(A: NDArray[float64], B: NDArray[float64]) -> bool: ...
