"""How long tests take: `tests/durations.json` lists those above half a second, and they are marked `slow`.

`make durations` measures all tests and writes the file; it loads this module as a plugin of pytest. A fixture that
several tests share counts for each of them, so that no test is fast only because another one came first.
"""

import json
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[1] / "durations.json"
SLOW_SECONDS = 0.5


def function_of(node_id: str) -> tuple[str, str]:
    """File and function of a test; its cases have the same function."""
    file, _, name = node_id.partition("::")
    return file, name.partition("[")[0]


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that the file lists."""
    listed = json.loads(FILE.read_text(encoding="utf-8"))
    for item in items:
        file, function = function_of(item.nodeid)
        if function in listed.get(file, {}):
            item.add_marker(pytest.mark.slow)


class Measured:
    """Collects durations from the reports of all tests, also of those that ran in processes of pytest-xdist."""

    def __init__(self) -> None:
        self.own: dict[str, float] = defaultdict(float)
        self.shared: dict[tuple[str, str], float] = {}
        self.fixtures: dict[str, list[str]] = {}
        self.running: pytest.Item | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        """In the process of the test: note what a shared fixture took in the properties that go with the report."""
        started = time.perf_counter()
        value = yield
        if fixturedef.scope != "function" and self.running is not None:
            seconds = time.perf_counter() - started
            self.running.user_properties.append(("shared fixture", (fixturedef.baseid, fixturedef.argname, seconds)))
        return value

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.running = item
        item.user_properties.append(("fixtures", list(getattr(item, "fixturenames", ()))))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In the process that collects: `setup` has the time of shared fixtures too, which is counted apart."""
        self.own[report.nodeid] += report.duration
        if report.when != "setup":
            return
        for name, value in report.user_properties:
            if name == "fixtures":
                self.fixtures[report.nodeid] = list(value)
            elif name == "shared fixture":
                place, fixture, seconds = value
                self.shared[place, fixture] = max(seconds, self.shared.get((place, fixture), 0.0))
                self.own[report.nodeid] -= seconds

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            return
        slow: dict[str, dict[str, float]] = defaultdict(dict)
        for node_id, own in self.own.items():
            file, function = function_of(node_id)
            names = self.fixtures.get(node_id, ())
            shared = (cost for (place, name), cost in self.shared.items() if name in names and file.startswith(place))
            seconds = round(max(own, 0.0) + sum(shared), 1)
            if seconds > SLOW_SECONDS:
                slow[file][function] = max(seconds, slow[file].get(function, 0.0))
        FILE.write_text(json.dumps(slow, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Measured(), "durations of tests")
