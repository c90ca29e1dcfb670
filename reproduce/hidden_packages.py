"""Finds a user's file, such as `losses.py` in the current folder, that hides a package of the suite."""

from importlib.util import find_spec
from pathlib import Path

_PACKAGES = ("losses", "results", "protocols", "reports")


def hidden_package() -> str | None:
    """Return one line about a package of the suite that Python would take from elsewhere; None if there is none.

    `python -m` puts the current folder before all others, and half of all repositories have a module called `losses`.
    """
    suite = Path(__file__).resolve().parent.parent
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is None:
            continue
        taken = spec.origin or next(iter(spec.submodule_search_locations or []), "another place")
        if Path(taken).resolve() != suite / name / "__init__.py":
            return (
                f"{taken} hides the suite's package {name}; rename it, or run the command from another folder"
                " (`reproduce` instead of `python -m reproduce` does not look into the current folder)"
            )
    return None
