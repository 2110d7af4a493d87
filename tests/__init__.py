"""One thread of OpenMP for each process of the tests, which is read where a library is loaded."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
