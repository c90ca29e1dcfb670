"""How a table of scores is to be read, what was read of it, and what is asked where that is not sure."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pandas as pd

from results.records.frame import EMBEDDING_KINDS

ScoreScale = Literal["fractions", "percent", "points", "times"]

Repeats = Literal["run", "search", "block", "fold", "dataset", "summary", "uncounted summary"]
"""What a row repeats: a run, a search, a block that all methods share, a fold, a dataset; or it sums runs up.

Of how many runs an uncounted summary is, nothing says.
"""

SdOrSe = Literal["sd", "se"]
"""What stands behind a mean: a standard deviation of the runs, or a standard error of the mean."""

PLACES = ("experiment", "question", "planned", "dataset", "method", "search", "run")

COLUMNS, EACH_ROW = "columns", "row"
"""In place of a column's name: each column of numbers is a method (or a dataset), and each row is a run of its own."""

ANOTHER_SCORE = "another score"
"""Why a column of scores was not read."""

FEWEST_DATASETS = 6
"""With one score on each of fewer no difference can be shown at 5 %: of five equal signs the two-sided p is 1 / 16."""

_EMBEDDINGS = (*EMBEDDING_KINDS, "last_epoch")


class ScoresError(ValueError):
    """A table of scores cannot be used. The message is one line that says where and what to do."""


@dataclass(frozen=True)
class Reading:
    """How to read a table of scores. Empty names leave it to the table (docs/audit.md).

    Attributes:
        method: Column of the methods, several joined by `+`, or `columns` if each column of numbers is one.
        dataset: Column of the datasets, likewise.
        score: Column (or metric) that is compared; empty for the only one, MAP@R, or the first of a known name. The
            command takes several, joined by commas.
        run: What numbers independent runs; `row` if every row is one.
        search: Column of the searches, whose runs count as one value.
        paired: Column of what all methods share, such as splits: the methods are compared within it.
        where: Columns with the value that rows must have.
        last: Column of which the last value of each run is taken, such as the epoch.
        best_of: Column of a validation score that chooses one trial of each search.
        n: Number of runs behind each mean of a summary, such as `5`; `folds`, or `5-folds`, if they are folds.
        scale: What the scores are; None to tell it from their range. `points` are no percentages; `times` are positive
            and compared by their ratios.
        lower_is_better: Whether a lower score is better. None to tell it from the name.
        plus_minus: What stands behind ± in a summary. None is not known, and taken as a standard deviation.
    """

    method: str = ""
    dataset: str = ""
    score: str = ""
    run: str = ""
    search: str = ""
    paired: str = ""
    where: tuple[tuple[str, str], ...] = ()
    last: str = ""
    best_of: str = ""
    n: str = ""
    scale: ScoreScale | None = None
    lower_is_better: bool | None = None
    plus_minus: SdOrSe | None = None

    def options(self) -> list[str]:
        """Return the options of `reproduce audit` that say the same."""
        words: list[str] = []
        for name, value in vars(self).items():
            option = f"--{name.replace('_', '-')}"
            if name == "lower_is_better":
                words += [] if value is None else [option if value else "--higher-is-better"]
            elif name == "where":
                words += [word for column, cell in value for word in (option, f"{column}={cell}")]
            elif value:
                words += [option, str(value)]
        return words


class AskedError(ScoresError):
    """Something about a table is not said.

    Attributes:
        likely: The fields of the reading that would most likely answer; `where` has the further conditions.
        sure: Whether the answer is sure, so that nobody is asked.
    """

    def __init__(self, text: str, *, sure: bool = False, **likely: Any) -> None:
        """Ask; `likely` are the fields of the reading that would answer."""
        super().__init__(text)
        self.sure, self.likely = sure, likely

    @property
    def taken(self) -> str:
        """The options that say the most likely answer."""
        return shlex.join(Reading(**self.likely).options())

    def guess(self, reading: Reading) -> Reading:
        """Return a reading that takes the most likely answer too."""
        return replace(reading, **{**self.likely, "where": (*reading.where, *self.likely.get("where", ()))})


class OpenQuestionsError(ScoresError):
    """All that is not sure about a table.

    Attributes:
        questions: A sentence for each, with the option that is its most likely answer.
        guess: The reading that takes these answers.
        read: What was read by it; None if that fails for another reason, which is the last question.
    """

    def __init__(self, questions: Sequence[tuple[str, str]], guess: Reading, read: "ReadScores | None") -> None:
        """Ask all of it; a question has its text and the option that answers it."""
        super().__init__(" Also: ".join(text for text, _ in questions))
        self.questions = tuple(questions)
        self.guess, self.read = guess, read


@dataclass(frozen=True)
class ReadScores:
    """A table of scores that was read.

    Attributes:
        frame: One row per run and score, with the columns of `results.records.frame.scores` and those in which
            `reproduce export runs` writes what an experiment asks: experiment, question, planned. They are empty in
            other tables, as is `search` where none is given. `run` is what rows are paired by, where they are.
            Summaries have the columns deviation and n. Of uncounted ones n is 0, and the deviation can be a standard
            error (`plus_minus`). Records that say what held a method up have it in `held_up`. Percentages are fractions
            of 1, others as they are.
        score: The compared score's name in the table; `metric` and `embeddings` as in the frame.
        scale: What its values were taken for.
        scores: Names of all scores.
        repeats: What a row repeats.
        column: The column that says so, such as the one of the blocks.
        folds: Number of folds of each repeat; of a summary over folds, their number, -1 if nothing says it.
        plus_minus: What stands behind a mean of a summary; None if nothing says it.
        lower_is_better: Whether a lower score is better.
        exported: Whether `reproduce export runs` wrote the table.
        roles: The columns that were read, by what they are.
        unread: Why each of the other columns was not read.
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
    plus_minus: SdOrSe | None = None
    lower_is_better: bool = False
    exported: bool = False
    roles: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
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


def option(name: str, value: str) -> str:
    """Return an option as it is typed, such as `--method 'Model Type'`."""
    return shlex.join([f"--{name}", value])


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
