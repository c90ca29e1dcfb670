"""The command line, experiment files, method cards, planning and executors."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_PACKAGES = ("losses", "protocols", "reports", "results")


class _OwnPackages:
    """Finds the suite's packages beside this one, whatever has their names in the current folder or on PYTHONPATH."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _PACKAGES:
            return None
        return PathFinder.find_spec(name, [str(Path(__file__).resolve().parent.parent)])


sys.meta_path.insert(0, _OwnPackages)
