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
    except ImportError as error:
        if hiding := _users_module(error):
            print(f"error: {hiding} hides the package of its name; rename it, or leave PYTHONPATH out", file=sys.stderr)
        elif isinstance(error, ModuleNotFoundError):
            remedy = "activate the environment that has it: source .venv/bin/activate (`make quickstart` makes it)"
            print(f"error: this Python, {sys.executable}, has no package {error.name}; {remedy}", file=sys.stderr)
        else:
            raise
        sys.exit(2)


def _users_module(error: ImportError) -> str:
    """The file on PYTHONPATH that was imported in place of an installed package; empty if there is none."""
    module = sys.modules.get((error.name or "").partition(".")[0])
    file = getattr(module, "__file__", None) or ""
    places = map(os.path.abspath, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    suite = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return file if any(file.startswith(f"{place}{os.sep}") for place in places if place != suite) else ""


if __name__ == "__main__":
    main()
