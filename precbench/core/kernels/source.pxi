# The hash of the source that the module was compiled from, which setup.py computes.
cdef extern from *:
    const char* PRECBENCH_SOURCE

SOURCE = PRECBENCH_SOURCE.decode("ascii")
