"""Surroundings of the tests that libraries read when they are imported."""

import os

# One thread of OpenMP for each process of the tests.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What a terminal, a service or make sets and what changes the output of a command.
for name in (
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "LINES",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "NO_COLOR",
    "PY_COLORS",
    "TERMINAL_WIDTH",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
):
    os.environ.pop(name, None)
os.environ["COLUMNS"] = "80"
