import numpy as np
from numpy.typing import NDArray

def count_pairs(
    few: NDArray[np.float64],
    ascending: NDArray[np.float64],
    many: NDArray[np.float64],
    starts: NDArray[np.int32],
    of_few: NDArray[np.float64],
    of_many: NDArray[np.float64],
    heads: NDArray[np.float64],
) -> None: ...
