"""Findings about a board: how far its datasets agree, what failed on them, and what their intervals are over."""

import math
from collections.abc import Iterator
from dataclasses import replace

from reports.board.boards import Board, BoardDataset
from results.answer.values import Finding
from results.findings.origin import origin_findings
from results.wording import counted, joined, listed

MOST_CORRELATIONS = 10
"""Of more datasets no rank correlations are named."""


def of_failed(board: Board) -> Iterator[Finding]:
    """Name the searches that found no good setting and are set aside, by dataset."""
    for dataset in board.datasets:
        for key, failed in dataset.answer.failed.items():
            units = counted(dataset.answer.values[key].count, "search")
            text = (
                f"On {dataset.title}, {len(failed)} of {units} of {board.methods[key]} found no good setting "
                f"({listed([dataset.answer.scaling.score(value) for value in failed])}) and is set aside."
            )
            yield Finding("warning", text, "comparison")


def of_agreement(board: Board) -> Iterator[Finding]:
    """Give the rank correlations, and what they mean for a reader with another dataset."""
    named = [
        f"{listed(titles)} {'none, as all methods of one are tied' if math.isnan(found) else f'{found:.2f}'}"
        for titles, found in board.correlations.items()
    ]
    correlation = f"Rank correlation: {'; '.join(named)}. " if len(board.datasets) <= MOST_CORRELATIONS else ""
    text = (
        f"{correlation}Of two methods, the one ahead on one of these datasets is also ahead on another in "
        f"{100 * board.same_order:.0f} % of cases. A coin has 50 %."
    )
    yield Finding("limit", text, "comparison")


def of_units(board: Board) -> Iterator[Finding]:
    """Say what the intervals of each dataset are made from, and which methods are missing."""
    units: dict[str, list[str]] = {}
    for one in board.datasets:
        units.setdefault(_unit_words(one), []).append(one.title)
    for words, titles in units.items():
        yield Finding("note", f"On {listed(titles)}, {words}", "comparison")
    for one in board.datasets:
        for finding in origin_findings(one.source.measured) if one.source else ():
            yield replace(finding, text=f"On {one.title}: {finding.text}")
    if board.left_out:
        code = " with the same code" if board.conditions else ""
        text = f"Not on all datasets{code}, so not on the board: {joined(list(board.left_out.values()))}."
        yield Finding("note", text, "comparison")


def _unit_words(dataset: BoardDataset) -> str:
    sample = dataset.answer.sample
    if sample.test != "assumed":
        return f"the intervals are over {sample.over}."
    if dataset.answer.question.assumed is None:
        return "one search of each method, and how far two differ is not known, so there are no intervals."
    words = dataset.answer.question.assumed_words
    return f"one search of each method; the intervals take {words} as the deviation between searches."
