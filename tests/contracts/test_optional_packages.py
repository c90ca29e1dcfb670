"""A search gives the same numbers whether packages beside those of the runtime are installed or not."""

from importlib import metadata

import pytest
from packaging.utils import canonicalize_name

from tests.support.command_line import ROOT, environment
from tests.support.pinned_digits import trainings_of_a_search

OURS = {"losses", "results", "protocols", "reports", "reproduce"}

# Read by Python when it starts, in the workers too. A package that is not there has no specification.
WITHOUT = """\
import sys
from importlib.machinery import PathFinder


class Few(PathFinder):
    @classmethod
    def find_spec(cls, name, *others):
        return None if name.partition(".")[0] in {packages} else super().find_spec(name, *others)


sys.meta_path[sys.meta_path.index(PathFinder)] = Few
"""


def modules_beside_the_runtime() -> tuple[str, ...]:
    """What can be imported here and is of no distribution in the lock of the runtime."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    runtime = {canonicalize_name(line.partition("==")[0]) for line in lines if "==" in line}
    modules = metadata.packages_distributions().items()
    return tuple(
        name for name, of in modules if not {canonicalize_name(one) for one in of} & runtime and name not in OURS
    )


@pytest.mark.late
def test_a_search_is_the_same_without_every_optional_package(tmp_path, monkeypatch):
    """Optuna, for one, optimises in another order where `greenlet` is installed."""
    packages = modules_beside_the_runtime()
    assert {"greenlet", "pytest"} <= set(packages)
    for folder in ("all", "few", "without"):
        (tmp_path / folder).mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text(WITHOUT.format(packages=packages))
    installed = trainings_of_a_search(tmp_path / "all")
    few = environment() | {"PYTHONPATH": f"{tmp_path / 'without'}:{ROOT}"}
    monkeypatch.setattr("tests.support.command_line.environment", lambda: few)
    assert trainings_of_a_search(tmp_path / "few") == installed
