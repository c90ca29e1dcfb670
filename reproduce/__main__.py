"""`python -m reproduce`, and the command `reproduce`."""

import sys
from importlib.util import find_spec
from pathlib import Path

from reproduce import interrupts

_PACKAGES = ("losses", "results", "protocols", "reports")


def hidden_package() -> str | None:
    """Return one line about a package of the suite that Python would take from elsewhere; None if there is none.

    `python -m` puts the current folder before all others, and half of all repositories have a module called `losses`.
    """
    suite = Path(__file__).resolve().parent.parent
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is not None and Path(spec.origin or "").resolve() != suite / name / "__init__.py":
            return (
                f"{spec.origin or name} hides the suite's package {name}; rename it, or run the command from another "
                "folder (`reproduce` instead of `python -m reproduce` does not look into the current folder)"
            )
    return None


def main() -> None:
    """Start the command line. What must come before the long imports: the handler of Ctrl-C, and the check of names."""
    if sys.platform == "win32":
        print("error: the suite runs on Linux and macOS; on Windows use WSL, its subsystem for Linux", file=sys.stderr)
        sys.exit(2)
    interrupts.install()
    if (problem := hidden_package()) is not None:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
    from reproduce.cli import main as run_command

    interrupts.imports_done()
    run_command()


if __name__ == "__main__":
    main()
