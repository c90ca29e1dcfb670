"""`python -m reproduce`, and the command `reproduce`."""

import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from types import ModuleType

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
    except (Exception, SystemExit) as error:
        if hiding := _hiding_file(error):
            print(f"error: {hiding} hides the package of its name; rename it, or leave PYTHONPATH out", file=sys.stderr)
        elif isinstance(error, ModuleNotFoundError):
            remedy = "activate the environment that has it: source .venv/bin/activate (`make quickstart` makes it)"
            print(f"error: this Python, {sys.executable}, has no package {error.name}; {remedy}", file=sys.stderr)
        else:
            raise
        sys.exit(2)


def _hiding_file(error: BaseException) -> str:
    """The file on PYTHONPATH whose import failed, or lacks something, in place of an installed package; else empty."""
    suite = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    given = map(os.path.abspath, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    places = {place for place in given if place != suite}
    others = [folder for folder in sys.path if os.path.abspath(folder) not in places]
    for file in _files_of(error):
        for place in places:
            if file.startswith(f"{place}{os.sep}"):
                name = os.path.relpath(file, place).partition(os.sep)[0].removesuffix(".py")
                if PathFinder.find_spec(name, others) is not None:
                    return file
    return ""


def _files_of(error: BaseException) -> Iterator[str]:
    """Yield the file of the module that lacks something, and those that were being imported."""
    lacking = getattr(error, "obj", None)
    if not isinstance(lacking, ModuleType):
        lacking = sys.modules.get(str(getattr(error, "name", "")).partition(".")[0])
    yield getattr(lacking, "__file__", None) or ""
    position = error.__traceback__
    while position is not None:
        code = position.tb_frame.f_code
        if code.co_name == "<module>":
            yield code.co_filename
        position = position.tb_next


if __name__ == "__main__":
    main()
