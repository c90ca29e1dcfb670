"""The tables of `results/measured/calibration.json` as Markdown, which `kept_tables` puts into docs/comparisons.md."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.calibration import METHODS, TABLES
from results.store.experiment_results import FOLDER

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


def _numbers(cells: Cells) -> str:
    rows = []
    for numbers in dict.fromkeys(tuple(cell["numbers"]) for cell in cells):
        own, (first, others, scale) = [cell for cell in cells if tuple(cell["numbers"]) == numbers], numbers
        shares = (
            _by_methods(own, lambda cell: max(cell["wrong"].values())),
            _by_methods(own, lambda cell: float(cell["coverage of the first"])),
        )
        rows.append([f"{first} at x{scale:g}, {others} of each other", *shares])
    of = " / ".join(map(str, METHODS))
    return _markdown([f"searches of the first; {of} methods", "wrong", "its interval holds"], rows)


MOST = 0.05 + 2 * (0.05 * 0.95 / TABLES) ** 0.5
"""A share of wrong tables above this is more than 5 %: by two standard errors."""
LEAST = 0.95 - 2 * (0.05 * 0.95 / TABLES) ** 0.5


def exceptions(found: dict[str, Cells]) -> dict[str, list[tuple[float, bool]]]:
    """Return the worst cells of each kind of which any is an exception, and whether each is one."""
    kinds: dict[str, list[tuple[float, bool]]] = {}
    for kind in dict.fromkeys(cell["kind"] for cell in found["repeated"]):
        own = [cell for cell in found["repeated"] if cell["kind"] == kind]
        wrong = [
            max(max(cell["wrong"]["all"], cell["wrong"]["best"]) for cell in own),
            max(cell["wrong"]["named"] for cell in own),
            max(cell["wrong at the margin"] for cell in own),
            max(cell["wrong ranks"] for cell in own),
            max(cell["wrong"] for cell in found["until_decided"] if cell["kind"] == kind),
        ]
        covered = min(cell["coverage of the first"] for cell in own)
        row = [*((share, share > MOST) for share in wrong), (covered, covered < LEAST)]
        if any(is_one for _, is_one in row):
            kinds[kind] = row
    return kinds


def _exceptions(found: dict[str, Cells]) -> str:
    rows = [
        [kind, *(f"**{_percent(share)}**" if is_one else _percent(share) for share, is_one in row)]
        for kind, row in exceptions(found).items()
    ]
    head = ("searches", "all pairs, or the best", "named", "at the margin", "ranks", "looks", "interval holds")
    return _markdown(head, rows)


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


def _over_classes(cells: Cells) -> str:
    rows = [
        [
            f"{cell['classes']}",
            f"{cell['directions']}",
            *(_percent(cell[of]) for of in ("map_at_r", "single", "difference")),
        ]
        for cell in cells
    ]
    return _markdown(["classes", "directions", "MAP@R", "holds a single score", "holds a difference"], rows)


def _board(cells: Cells) -> str:
    rows = [
        [cell["kind"], f"{cell['spread']:g}", *map(_percent, cell["wrong"].values())]
        for cell in sorted(cells, key=lambda cell: list(dict.fromkeys(c["kind"] for c in cells)).index(cell["kind"]))
    ]
    questions = cells[0]["wrong"]
    return _markdown(["searches", "methods differ between datasets by", *questions], rows)


_TABLES: dict[str, Callable[[dict[str, Cells]], str]] = {
    "wrong": lambda found: _repeated(found["repeated"], lambda cell: max(cell["wrong"].values())),
    "unequal numbers": lambda found: _numbers(found["unequal_numbers"]),
    "exceptions": _exceptions,
    "seen": lambda found: _repeated(found["repeated"], lambda cell: float(cell["seen"])),
    "coverage": lambda found: _repeated(found["repeated"], lambda cell: float(cell["coverage of the first"])),
    "looks": lambda found: _looks(found["until_decided"]),
    "gains": lambda found: _gains(found["tuning"]),
    "one search": lambda found: _one_search(found["one_search"]),
    "over classes": lambda found: _over_classes(found["over_classes"]),
    "board": lambda found: _board(found["board"]),
}


def calibration_table(name: str) -> str:
    """Return a table by its name."""
    return _TABLES[name](json.loads((FOLDER / "calibration.json").read_text(encoding="utf-8")))
