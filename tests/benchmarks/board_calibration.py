"""`python -m tests.benchmarks.board_calibration`: how often a board over datasets is wrong, by simulation.

One pair of methods on 3 to 6 datasets. What is random for users is random here: the true difference of each dataset,
the measured one, and the standard error that a comparison estimates with ten degrees of freedom. The numbers go through
the functions of the board. Beside them stands what a plain average of the scores claims on two kept records.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from reports.board.board_table import board_table, sorted_pairs
from reports.board.boards import Board, boards_of
from reports.board.sources import Source
from reports.tables.formats import to_markdown
from results.records.provenance import provenance
from results.statistics.across_datasets import consistent, over_datasets, rank_correlation
from results.statistics.pair_tests import Numbers
from results.store.experiment_results import FOLDER, MeasuredExperiment
from results.whole_files import write_whole
from results.wording import listed

FILE = FOLDER / "board_calibration.json"
TABLES = 20_000
DATASETS = (3, 4, 5, 6)
SPREADS = (0.0, 1.0, 2.0, 4.0)
"""Standard deviation of the true differences between datasets, in standard errors of a measured one."""
RATIOS = (1.0, 3.0)
"""Largest standard error of a dataset in the smallest."""
MEANS = (4.0, 8.0)
"""True mean differences, in standard errors."""
DEGREES = 10
RECORDS = ("mlrc_frozen_cub200_subset", "all_methods_glyphs")


def simulate(number: int, datasets: int, spread: float, ratio: float, tables: int) -> dict[str, Any]:
    """Simulate one kind of table; `number` is its seed."""
    generator = np.random.default_rng([13, number])
    errors = np.geomspace(1, ratio, datasets)
    errors /= np.sqrt(np.mean(errors**2))
    differences, estimated = _measured(generator, spread, np.broadcast_to(errors, (tables, datasets)))
    found = over_datasets(differences, estimated)
    # Another dataset is measured as precisely as one of these, whichever it is.
    another, _ = _measured(generator, spread, generator.choice(errors, tables))
    return {
        "datasets": datasets,
        "spread": spread,
        "ratio": ratio,
        "wrong": float(consistent(differences, estimated, DEGREES).mean()),
        "mean covered": float((np.abs(found.mean) <= found.half_width).mean()),
        "prediction covered": float((np.abs(another - found.mean) <= found.prediction).mean()),
        "seen": {str(mean): float(consistent(differences + mean, estimated, DEGREES).mean()) for mean in MEANS},
    }


def _measured(generator: np.random.Generator, spread: float, errors: Numbers) -> tuple[Numbers, Numbers]:
    """Draw differences around zero, and the standard errors that are estimated for them."""
    differences = spread * generator.standard_normal(errors.shape) + errors * generator.standard_normal(errors.shape)
    return differences, errors * np.sqrt(generator.chisquare(DEGREES, errors.shape) / DEGREES)


def cells(tables: int) -> Iterator[dict[str, Any]]:
    """Simulate all kinds of tables."""
    for number, (datasets, spread, ratio) in enumerate(product(DATASETS, SPREADS, RATIOS)):
        yield simulate(number, datasets, spread, ratio, tables)


def kept_board(records: Sequence[str] = RECORDS) -> Board:
    """The board of kept records, by default of two that differ in their trunks."""
    sources = [Source(name, f"{name}.json", MeasuredExperiment.kept(name)) for name in records]
    return boards_of(sources, mixed=True).boards[0]


def plain_average(board: Board) -> dict[str, Any]:
    """Rank the methods by the plain average of their scores, as papers do, and compare that with each dataset."""
    means = {one.name: [one.values[key].mean for key in board.methods] for one in board.datasets}
    average = np.mean(list(means.values()), axis=0).tolist()
    return {
        "methods": len(board.methods),
        "highest": list(board.methods.values())[int(np.argmax(average))],
        "correlations": {name: rank_correlation(average, of_one) for name, of_one in means.items()},
    }


def board_calibration_markdown() -> str:
    """Return the recorded figures as a table in Markdown, with a sentence on the plain average."""
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    lines = [
        "| datasets | true spread | wrong “consistent” | mean covered | prediction covered | seen: 4 / 8 errors |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for datasets, spread in product(DATASETS, SPREADS):
        alike = [cell for cell in recorded["cells"] if (cell["datasets"], cell["spread"]) == (datasets, spread)]
        columns = [_percent([cell[key] for cell in alike]) for key in ("wrong", "mean covered", "prediction covered")]
        seen = " / ".join(f"{100 * alike[0]['seen'][str(mean)]:.0f}" for mean in MEANS)
        lines.append(f"| {datasets} | {spread:g} | {' | '.join(columns)} | {seen} |")
    average = recorded["plain average"]
    with_each = " and ".join(f"{value:.2f} with {name}" for name, value in average["correlations"].items())
    return "\n".join(
        [
            *lines,
            "",
            f"All in percent, of {recorded['tables']:,} simulated tables a cell. Two numbers are for equal errors, and "
            "for errors of which the largest is three times the smallest. Seen: equal errors.",
            "",
            f"A plain average of the scores of the {average['methods']} methods of {listed(RECORDS)} has a rank "
            f"correlation of {with_each}. It would call {average['highest']} the best.",
        ]
    )


def board_markdown(records: str) -> str:
    """Return the pairs that the board of these kept records tells apart as a table in Markdown."""
    board = kept_board(records.split(", "))
    table = board_table(board)
    told = [
        row for row, pair in zip(table.rows, sorted_pairs(board.pairs()), strict=True) if pair.verdict != "cannot tell"
    ]
    return to_markdown(replace(table, rows=tuple(told))).strip()


def _percent(shares: list[float]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares)


def main() -> None:
    """Simulate, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tables", type=int, default=TABLES, help="simulated tables of a cell (default: %(default)s)")
    tables = parser.parse_args().tables
    content = {
        "tables": tables,
        "degrees": DEGREES,
        "cells": list(cells(tables)),
        "plain average": plain_average(kept_board()),
        "provenance": provenance("cpu", 1).model_dump(),
    }
    write_whole(FILE, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
