"""The tables of `results/measured/calibration.json` as Markdown, which `kept_tables` puts into docs/comparisons.md."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from results.store.experiment_results import FOLDER
from tests.benchmarks.calibration import METHODS

Cells = list[dict[str, Any]]


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.1f}"


def _by_methods(cells: Cells, value: Callable[[dict[str, Any]], float]) -> str:
    """The values of cells that differ in their numbers of methods alone, such as `2 / 5 / 14`."""
    ordered = sorted(cells, key=lambda cell: int(cell["methods"]))
    return " / ".join(_percent(value(cell)) for cell in ordered)


def _repeated(cells: Cells, value: Callable[[dict[str, Any]], float]) -> str:
    kinds = dict.fromkeys(cell["kind"] for cell in cells)
    searches = sorted({cell["searches"] for cell in cells})
    rows = [
        [kind, *(_by_methods([c for c in cells if (c["kind"], c["searches"]) == (kind, s)], value) for s in searches)]
        for kind in kinds
    ]
    of = " / ".join(map(str, METHODS))
    return _markdown([f"searches; {of} methods", *(f"{count} of each" for count in searches)], rows)


def _looks(cells: Cells) -> str:
    kinds = dict.fromkeys(cell["kind"] for cell in cells)
    rows = []
    for kind in kinds:
        own = [cell for cell in cells if cell["kind"] == kind]
        searches = " / ".join(f"{cell['searches']:.1f}" for cell in own)
        rows.append([kind, *(_by_methods(own, lambda cell, of=of: cell[of]) for of in ("wrong", "decided")), searches])
    return _markdown(
        ["searches; 2 / 5 / 14 methods", "wrong at any look", "all pairs decided", "searches of each"], rows
    )


def _gains(cells: Cells) -> str:
    kinds = dict.fromkeys((cell["kind"], cell["searches"]) for cell in cells)
    rows = []
    for kind, searches in kinds:
        own = [cell for cell in cells if (cell["kind"], cell["searches"]) == (kind, searches)]
        rows.append(
            [kind, str(searches), *(_by_methods(own, lambda cell, of=of: cell[of]) for of in ("wrong", "seen"))]
        )
    return _markdown(["searches; 2 / 8 methods", "of each", "wrong", "a gain of 4 deviations seen"], rows)


def _one_search(cells: Cells) -> str:
    rows = []
    for unequal in (False, True):
        for ratio in dict.fromkeys(cell["ratio"] for cell in cells):
            own = [cell for cell in cells if (cell["ratio"], cell["unequal"]) == (ratio, unequal)]
            rows.append(["unequal" if unequal else "equal", f"{ratio:g}", _by_methods(own, lambda cell: cell["wrong"])])
    return _markdown(["deviations of methods", "true deviation in the record's", "wrong, 2 / 5 / 14 methods"], rows)


def _board(cells: Cells) -> str:
    rows = [
        [cell["kind"], f"{cell['spread']:g}", *map(_percent, cell["wrong"].values())]
        for cell in sorted(cells, key=lambda cell: list(dict.fromkeys(c["kind"] for c in cells)).index(cell["kind"]))
    ]
    questions = cells[0]["wrong"]
    return _markdown(["searches", "methods differ between datasets by", *questions], rows)


_TABLES: dict[str, Callable[[dict[str, Cells]], str]] = {
    "wrong": lambda found: _repeated(found["repeated"], lambda cell: max(cell["wrong"].values())),
    "margin": lambda found: _repeated(found["repeated"], lambda cell: float(cell["wrong at the margin"])),
    "seen": lambda found: _repeated(found["repeated"], lambda cell: float(cell["seen"])),
    "ranks": lambda found: _repeated(found["repeated"], lambda cell: float(cell["wrong ranks"])),
    "coverage": lambda found: _repeated(found["repeated"], lambda cell: float(cell["coverage of the first"])),
    "looks": lambda found: _looks(found["until_decided"]),
    "gains": lambda found: _gains(found["tuning"]),
    "one search": lambda found: _one_search(found["one_search"]),
    "board": lambda found: _board(found["board"]),
}


def calibration_table(name: str) -> str:
    """Return a table by its name."""
    return _TABLES[name](json.loads((FOLDER / "calibration.json").read_text(encoding="utf-8")))
