"""`python -m reproduce`, and the command `reproduce`."""

import os
import sys

from protocols.machine.kernels import pin_kernels
from reproduce import interrupts


def main() -> None:
    """Start the command line. What the environment and Ctrl-C do to the long imports is settled before them."""
    if sys.platform == "win32":
        print("error: the suite runs on Linux and macOS; on Windows use WSL, its subsystem for Linux", file=sys.stderr)
        sys.exit(2)
    pin_kernels()
    os.environ["MPLBACKEND"] = "agg"  # A notebook's is inherited, and matplotlib refuses one that is not installed.
    interrupts.install()
    if sys.path[:1] == [os.getcwd()]:
        # `python -m` puts the current folder first, and scripts there are called as libraries are.
        sys.path.append(sys.path.pop(0))
    try:
        from reproduce.commands.cli import main as run_command

        interrupts.imports_done()
        run_command()
    except ModuleNotFoundError as error:
        remedy = "activate the environment that has it: source .venv/bin/activate (`make quickstart` makes it)"
        print(f"error: this Python, {sys.executable}, has no package {error.name}; {remedy}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
