"""A table of scores that was read, and what is checked of any."""

from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from results.records.columns import ScoreScale, ScoresError
from results.records.frame import EMBEDDING_KINDS

Repeats = Literal["run", "search", "block", "fold", "dataset", "summary"]
"""What a row repeats: a run, a search, a block that all methods share, a fold, a dataset; or it sums runs up."""

PLACES = ("experiment", "question", "planned", "dataset", "method", "search", "run")

_EMBEDDINGS = (*EMBEDDING_KINDS, "last_epoch")


@dataclass(frozen=True)
class ReadScores:
    """A table of scores that was read.

    Attributes:
        frame: One row per run and score, with the columns of `results.records.frame.scores` and those in which
            `reproduce export runs` writes what an experiment asks: experiment, question, planned. They are empty in
            other tables, as is `search` where none is given. `run` is what rows are paired by, where they are.
            Summaries have the columns deviation and n. Percentages are fractions of 1, points as they are.
        score: The compared score's name in the table; `metric` and `embeddings` as in the frame.
        scale: What its values were taken for.
        scores: Names of all scores.
        repeats: What a row repeats.
        column: The column that says so, such as the one of the blocks.
        folds: Number of folds of each repeat.
        lower_is_better: Whether a lower score is better.
        exported: Whether `reproduce export runs` wrote the table.
        unread: Columns that were not read.
        said: What was left out or merged, in sentences.
        left_out: Numbers of the rows without the compared score, by dataset and method.
    """

    frame: pd.DataFrame
    score: str
    scale: ScoreScale
    scores: tuple[str, ...]
    repeats: Repeats = "run"
    column: str = ""
    folds: int = 0
    lower_is_better: bool = False
    exported: bool = False
    unread: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    left_out: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    @property
    def metric(self) -> str:
        """The compared metric."""
        return split(self.score)[1] if self.exported else self.score

    @property
    def embeddings(self) -> str:
        """The compared kind of embeddings."""
        return split(self.score)[0] if self.exported else ""


def split(name: str) -> tuple[str, str]:
    """Return embeddings and metric of a column of an export, such as `separated_map_at_r`."""
    kind = next((kind for kind in _EMBEDDINGS if name.startswith(f"{kind}_")), "")
    return kind, name.removeprefix(f"{kind}_") if kind else name


def check_filled(places: pd.DataFrame, role: str, column: str) -> None:
    """Refuse rows in which a column of a role is empty."""
    empty = places.loc[places[role] == "", "row"]
    if len(empty):
        remedy = "" if role == "method" else ", or leave the column out"
        raise ScoresError(f"row {empty.iloc[0]}: there is no {role} in {column!r}; fill it in{remedy}")


def left_out_rows(long: pd.DataFrame, score: str) -> dict[tuple[str, str], list[int]]:
    """Return the numbers of the rows without the compared score, by dataset and method."""
    empty = long[(long["name"] == score) & long["value"].isna() & ~long["text"]]
    return {(str(of[0]), str(of[1])): [*own["row"]] for of, own in empty.groupby(["dataset", "method"], sort=False)}


def check_texts(long: pd.DataFrame, score: str) -> None:
    """Refuse text where the compared score stands."""
    texts = long[(long["name"] == score) & long["text"]]
    if len(texts):
        row, text = texts[["row", "given"]].iloc[0]
        remedy = "write a point in place of the comma" if "," in str(text) else "write the number alone"
        raise ScoresError(f"row {row}: {str(text).strip()!r} in {score!r} is no number; {remedy}")
