"""The command ``precbench``, and ``python -m precbench``."""

from precbench import interrupts


def main() -> None:
    """Import and run the command line."""
    interrupts.leave_at_once()
    from precbench.cli import main

    main()


if __name__ == "__main__":
    main()
