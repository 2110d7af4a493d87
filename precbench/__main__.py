"""``python -m precbench``."""

from precbench.cli import main

main()
