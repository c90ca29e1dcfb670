"""How long tests take: `tests/durations.json` lists those above half a second, and they are marked `slow`.

`make durations` measures all tests in one process and writes the file; it loads this module as a plugin of pytest. A
fixture that tests of a module or session share counts for each of them, so that no test is fast only because another
one came first.
"""

import json
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[1] / "durations.json"
SLOW_SECONDS = 0.5
SHARED_RUNS = ("tiny_run", "glyph_run")
"""Fixtures of the session that are whole runs."""


def function_of(item: pytest.Item) -> tuple[str, str]:
    """File and function of a test; its cases have the same function."""
    file, _, name = item.nodeid.partition("::")
    return file, name.partition("[")[0]


def mark_and_order(items: list[pytest.Item]) -> None:
    """Mark the slow tests, and put those that share a run or a module into one process, the longest groups first."""
    listed = json.loads(FILE.read_text(encoding="utf-8"))
    seconds: dict[str, float] = defaultdict(float)
    groups = {}
    for item in items:
        file, function = function_of(item)
        groups[item] = next((run for run in SHARED_RUNS if run in getattr(item, "fixturenames", ())), file)
        item.add_marker(pytest.mark.xdist_group(groups[item]))
        if found := listed.get(file, {}).get(function):
            item.add_marker(pytest.mark.slow)
            seconds[groups[item]] += found
    items.sort(key=lambda item: -seconds[groups[item]])


class Measured:
    """Adds up the time of each test and of the shared fixtures that it uses."""

    def __init__(self) -> None:
        self.fixtures: dict[tuple[str, str], float] = {}
        self.slow: dict[str, dict[str, float]] = defaultdict(dict)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        started = perf_counter()
        value = yield
        if fixturedef.scope != "function":
            self.fixtures[fixturedef.baseid, fixturedef.argname] = perf_counter() - started
        return value

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        before, started = dict(self.fixtures), perf_counter()
        value = yield
        made = sum(cost for key, cost in self.fixtures.items() if key not in before)
        used = sum(cost for key, cost in self.fixtures.items() if _uses(item, *key))
        seconds, (file, function) = round(perf_counter() - started - made + used, 1), function_of(item)
        if seconds > SLOW_SECONDS:
            self.slow[file][function] = max(seconds, self.slow[file].get(function, 0.0))
        return value

    def pytest_sessionfinish(self) -> None:
        FILE.write_text(json.dumps(self.slow, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _uses(item: pytest.Item, place: str, fixture: str) -> bool:
    names: Iterable[str] = getattr(item, "fixturenames", ())
    return fixture in names and item.nodeid.startswith(place)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Measured(), "durations of tests")
