"""`python -m reproduce`, and the command `reproduce`."""

import sys

from reproduce import interrupts
from reproduce.hidden_packages import hidden_package


def main() -> None:
    """Start the command line. What must come before the long imports: the handler of Ctrl-C, and the check of names."""
    interrupts.install()
    if (problem := hidden_package()) is not None:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
    from reproduce.cli import main as run_command

    interrupts.imports_done()
    run_command()


if __name__ == "__main__":
    main()
