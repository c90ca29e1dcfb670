"""`python -m reproduce`, and the command `reproduce`."""

import sys

from reproduce.hidden_packages import hidden_package


def main() -> None:
    """Start the command line. A file that hides a package of the suite is one line, before anything is imported."""
    if (problem := hidden_package()) is not None:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
    from reproduce.cli import main as run_command

    run_command()


if __name__ == "__main__":
    main()
