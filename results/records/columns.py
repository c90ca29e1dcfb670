"""Names and cells of a table of scores: what a column's name says of it, and its texts and numbers."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from results.wording import some

ScoreScale = Literal["fractions", "percent", "points"]


class ScoresError(ValueError):
    """A table of scores cannot be used. The message is one line that says where and what to do."""


@dataclass(frozen=True)
class Reading:
    """How to read a table of scores. Empty names leave it to the names of the columns (docs/audit.md).

    Attributes:
        method: Column of the methods; likewise `dataset`, `run` (what numbers independent runs) and `search`.
        score: Column (or metric) that is compared; empty for the only one, or for MAP@R.
        paired: Column of what all methods share, such as splits: the methods are compared within it.
        where: Columns with the value that rows must have.
        last: Column of which the last value of each run is taken, such as the epoch.
        best_of: Column of a validation score that chooses one trial of each search.
        wide: Whether each column of numbers is a method.
        scale: What the scores are; None to tell it from their range. `points` are no percentages.
        lower_is_better: Whether a lower score is better. None for no, where the name says nothing else.
        plus_minus: What stands behind ± in a summary: a standard deviation, or a standard error.
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
    wide: bool = False
    scale: ScoreScale | None = None
    lower_is_better: bool | None = None
    plus_minus: Literal["sd", "se"] = "sd"


METHOD = (
    *("method", "model", "loss", "name", "algorithm", "classifier", "learner", "approach"),
    *("method_name", "model_name", "loss_name", "algorithm_name", "classifier_name"),
)
_ROWS_ARE_METHODS = ("method", "method_name", "loss", "loss_name", "algorithm", "classifier")
"""Names of columns beside which no other column is a method. The rest of `METHOD` can name datasets in wide tables."""
DATASET, SEARCH, SWEEP = ("dataset", "benchmark", "task", "dataset_name"), ("search", "study"), "sweep"
RUN = ("run", "seed", "rep", "trial_seed", "random_seed", "replicate")
FOLD, REPEAT, BLOCK = ("fold",), ("repeat", "repetition"), ("split", "block", "subject")
STATE = ("state", "status")
_NUMBERS_OF_RUNS = ("n", "#", "count", "runs", "seeds", "n_runs", "num_runs", "n_seeds", "num_seeds", "num_samples")
LONG = ("metric", "value")
ROW = "row name"
"""What a column of words without a name is called."""

LOWER, SCALE = "reproduce_lower_is_better", "reproduce_scale"
"""Columns in which records of Every Eval Ever say what their scores are."""

DONE = {"finished", "complete", "completed", "success", "succeeded", "ok", "done"}
FAILED = {
    *("crashed", "failed", "fail", "failure", "killed", "error", "pruned", "preempted", "aborted", "timeout"),
    *("canceled", "cancelled", "running", "waiting", "pending", "queued"),
}
COUNTERS = {
    *("epoch", "epochs", "step", "steps", "_step", "global_step", "iteration", "iterations", "iter", "iters", "round"),
    *("trial", "trial_id", "trial_number", "number", "budget"),
}
_SETTINGS = {
    *("lr", "learning_rate", "wd", "weight_decay", "momentum", "batch_size", "bs", "dropout", "temperature", "margin"),
    *("optimizer", "dim", "dims", "dimensions", "embedding_size", "hidden", "width", "depth", "layers", "k", "shots"),
    *("hparams_seed", "n_train", "train_size", "size", "fraction", "noise", "backbone", "trunk"),
}
_OF_SETTINGS = re.compile(r"^(params?|hparams?|hp|config|args)[_./]", re.IGNORECASE)
NOTES = re.compile(
    r"^_?(commit|git_?commit|sha|hash|host(name)?|machine|node|gpu|device|user(name)?|created(_?at)?|date|tags?|id|"
    r"timestamp|notes?|comments?|info|messages?|reason|traceback|run_?id|uuid|path|file(name)?|checkpoint.*|"
    r".*_checkpoint|url|job_?id|runtime|duration|wall_?time|elapsed|version|"
    r"(start|end|begin|stop|complete)(ed)?_?(time|date|at)?|datetime.*|index)$",
    re.IGNORECASE,
)
PARTS_OF_DATA = {"train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval", "evaluation"}
_MISSING = ("", "nan", "na", "n/a", "null", "none", "-")
_NO_WIDTH = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_DASHES = re.compile(r"[_\u2010-\u2015\u2212]")
_LOWER = re.compile(
    r"(^|[^a-z])(loss|error|err|nll|ppl|perplexity|fpr|fnr|eer|ece|rmse|mae|mse|time|latency|cost|wer|cer|brier|regret|"
    r"log_?loss|cross_?entropy|bpc|bpb|runtime|seconds)([^a-z]|$)"
)
_ERROR_RATE = re.compile(r"(^|[^a-z])(error|err|fpr|fnr|eer|ece|wer|cer)([^a-z]|$)")


def plain(text: str) -> str:
    """Return a text in one line and one Unicode form, without marks of no width and without blanks around it."""
    text = re.sub(r"\s*[\r\n]+\s*", " ", text)
    return unicodedata.normalize("NFC", _NO_WIDTH.sub("", text).replace("\u00a0", " ")).strip()


def spelling(name: str) -> str:
    """Return what names that differ in blanks, dashes, case or the form of letters only have in common."""
    return _DASHES.sub("-", "".join(unicodedata.normalize("NFKC", plain(name)).split())).casefold()


def means_lower(name: str) -> bool:
    """Tell whether the name of a score says that lower is better, such as `val_loss`, `rmse` or `top1Error`."""
    return bool(_LOWER.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()))


def is_error_rate(name: str) -> bool:
    """Tell whether the name of a score is that of errors counted, which can be fractions or percent."""
    return bool(_ERROR_RATE.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()))


def texts_of(column: pd.Series) -> pd.Series:
    """Return the cells as plain texts; empty where there is nothing."""
    texts = column.astype("string").fillna("").astype(object)
    found = {text: plain(text) for text in texts.unique()}
    return texts.map(found).astype(object)


def as_written(column: pd.Series) -> pd.Series:
    """Return the cells as texts without blanks around them, in the Unicode form that they have."""
    return column.astype("string").fillna("").str.strip().astype(object)


def numbers_of(given: pd.Series) -> dict[str, Any]:
    """Return the numbers, NaN where there is none, and whether text stands there instead."""
    if pd.api.types.is_numeric_dtype(given) and not pd.api.types.is_bool_dtype(given):
        return {"value": given.astype(float), "text": False if given.empty else np.zeros(len(given), dtype=bool)}
    texts = texts_of(given)
    missing = texts.str.lower().isin(_MISSING)
    numbers = pd.to_numeric(texts.mask(missing), errors="coerce").astype(float)
    return {"value": numbers, "text": (numbers.isna() & ~missing).to_numpy()}


def numbered(column: pd.Series) -> pd.Series:
    """Return the names of repeats; `1`, `1.0` and `01` are one."""
    texts = texts_of(column)
    return texts.map({text: one_number(text) for text in texts.unique()}).astype(object)


def one_number(text: str) -> str:
    """Return a whole number in one form, and other texts as they are."""
    return str(int(float(text))) if re.fullmatch(r"[+-]?\d{1,15}(\.0+)?", text) else text


def is_number(column: pd.Series) -> bool:
    """Tell whether a column holds numbers and no text."""
    own = numbers_of(column)
    return bool(own["value"].notna().any() and not np.any(own["text"]))


def is_number_of_runs(name: str) -> bool:
    """Tell whether a column is named as the number of runs behind a mean, such as `n` or `accuracy count`."""
    low = name.casefold()
    return low in _NUMBERS_OF_RUNS or re.split(r"[ _/.-]", low)[-1] in ("n", "count")


def is_setting(name: str) -> bool:
    """Tell whether a column is named as one that is planned or counted, not measured, such as `lr` or `epoch`."""
    low = name.casefold()
    return low in COUNTERS or re.split(r"[./]", low)[-1] in _SETTINGS or bool(_OF_SETTINGS.match(name))


def _are_row_numbers(column: pd.Series) -> bool:
    """Tell whether a column without a name counts rows, also those of several files one after the other."""
    texts = texts_of(column)
    if not texts.any():
        return True
    numbers = pd.to_numeric(texts, errors="coerce")
    steps = numbers.diff().fillna(1)
    return bool(numbers.notna().all() and ((steps == 1) | numbers.isin([0, 1])).all())


def tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with one level of plain names, and with the named levels of its index as columns."""
    table = table.copy(deep=False)
    if isinstance(table.columns, pd.MultiIndex):
        roles = {*METHOD, *DATASET, *RUN, *SEARCH, *FOLD, *BLOCK}
        own = [name for name in table.columns.names if str(name).casefold() in roles]
        if own:  # A pivoted frame, whose upper levels say what a column is of.
            stacked = table.stack(own, future_stack=True)
            table = stacked.to_frame("score") if isinstance(stacked, pd.Series) else stacked
    if isinstance(table.columns, pd.MultiIndex):
        parts = ([plain(str(part)) for part in name] for name in table.columns)
        table.columns = pd.Index([" ".join(part for part in own if part) for own in parts])
    index = table.index
    if any(name is not None for name in index.names):
        table = table.reset_index()
    elif not pd.api.types.is_numeric_dtype(index.dtype) and not isinstance(index, pd.MultiIndex):
        if "method" not in {str(name).casefold() for name in table.columns}:
            table.insert(0, "method", index)  # Rows that are named by words are named by their methods.
        table = table.reset_index(drop=True)
    if not table.index.is_unique:
        table = table.reset_index(drop=True)
    table.columns = pd.Index([plain(str(name)) for name in table.columns])
    # A file that pandas wrote has a column of row numbers without a name; one of words has the names of the rows.
    nameless = [at for at, name in enumerate(table.columns) if re.fullmatch(r"(Unnamed: \d+)?", name)]
    numbers = [at for at in nameless if _are_row_numbers(table.iloc[:, at])]
    table = table.iloc[:, [at for at in range(len(table.columns)) if at not in numbers]]
    if nameless != numbers and ROW not in table.columns:
        table = table.rename(columns={name: ROW for name in table.columns if re.fullmatch(r"(Unnamed: \d+)?", name)})
    if table.empty:
        raise ScoresError("there are no rows; give one to every run, below a line with the names of the columns")
    if twice := sorted(set(table.columns[table.columns.duplicated()])):
        raise ScoresError(f"two columns are called {twice[0]!r}; rename one")
    return table


def melted(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which each column of numbers (or of `71.5 ± 0.4`) is a method with a row for each score."""
    spreads = {name: f"{name} ±" for name in table.columns if f"{name} ±" in table.columns}
    roles = {*DATASET, *SEARCH, *RUN, *FOLD, *REPEAT, *BLOCK, "metric"}
    own = [name for name in table.columns if name.casefold() not in roles and name not in (ROW, *spreads.values())]
    methods = [name for name in own if is_number(table[name]) and not is_number_of_runs(name)]
    if named := [name for name in own if name.casefold() in _ROWS_ARE_METHODS and name not in methods]:
        raise ScoresError(
            f"--wide: the rows are methods, by the column {named[0]!r}; turn the table around, so that each column of "
            f"numbers is a method: in pandas, table.set_index({named[0]!r}).T.rename_axis('seed')"
        )
    if settings := [name for name in methods if is_setting(name)]:
        raise ScoresError(
            f"--wide: each column of numbers is a method, and {settings[0]!r} looks like a setting; leave it out, or "
            "rename it if it is a method"
        )
    for name in set(own) - {*methods}:
        texts = numbers_of(table[name])["text"]
        if not is_number_of_runs(name) and 0 < np.mean(texts) <= 0.5:
            row = table.index[texts][0]
            raise ScoresError(
                f"--wide: row {row}: {plain(str(table.loc[row, name]))!r} in {name!r} is no number; leave the row or "
                "the column out"
            )
    if len(methods) < 2:
        raise ScoresError(f"--wide: fewer than two columns of numbers are methods: {some(list(table.columns))}")
    if all(re.fullmatch(r"\d+", name) for name in methods):
        raise ScoresError(f"--wide: the columns {some(methods, 3)} are numbered; write the names of the methods")
    if ROW in table.columns and not {*DATASET} & {name.casefold() for name in table.columns}:
        table = table.rename(columns={ROW: "dataset"})
    kept = [name for name in table.columns if name not in methods and name not in spreads.values()]
    parts = []
    for name in methods:
        scores = {"score": table[name], **({"score ±": table[spreads[name]]} if name in spreads else {})}
        rows = [f"{row} ({name})" for row in table.index]
        parts.append(table[kept].assign(method=name, **scores).set_axis(rows))
    return pd.concat(parts)


SPREADS = {
    **dict.fromkeys(("sd", "std", "stdev", "stddev", "deviation", "standard_deviation", "standard deviation"), "sd"),
    **dict.fromkeys(("se", "sem", "stderr", "standard_error", "standard error"), "se"),
}
"""Names of what stands behind a mean: a standard deviation, or a standard error."""

_PLUS_MINUS = re.compile(
    r"^(?P<mean>-?[\d.]+(e-?\d+)?)\s*(?:(?:±|\+/?-|\$\\pm\$|\\pm)\s*(?P<spread>[\d.]+(e-?\d+)?)|\((?P<inner>[\d.]+)\))$"
)


def with_spreads(table: pd.DataFrame) -> pd.DataFrame:
    """Split columns of `71.5 ± 0.4`, or `71.5 (0.4)`, in two, of which the second has a name that ends in ±."""
    for name in list(table.columns):
        if pd.api.types.is_numeric_dtype(table[name]):
            continue
        texts = texts_of(table[name])
        parts = texts.str.extract(_PLUS_MINUS)
        parts["spread"] = parts["spread"].fillna(parts["inner"])
        found = parts["mean"].notna()
        if 0.5 < found.mean() < 1 and (other := texts[~found & (texts != "")]).any():
            raise ScoresError(
                f"row {other.index[0]}: {other.iloc[0]!r} in {name!r} is no mean with its deviation, as the other rows "
                "have; leave the row out"
            )
        if (found | (texts == "")).all() and found.any():
            table = table.assign(**{name: parts["mean"].fillna(""), f"{name} ±": parts["spread"].fillna("")})
    return table


def spread_of(columns: Iterable[str], score: str) -> tuple[str, str]:
    """Return the column of the spread of a score, and its kind: `sd`, `se` or `±`; both empty if there is none."""
    by_name = {name.casefold(): name for name in columns}
    low = score.casefold()
    if f"{low} ±" in by_name:
        return by_name[f"{low} ±"], "±"
    stem = re.sub(r"(^|[ _/.-])(mean|avg|average)$", "", low)
    for suffix, kind in SPREADS.items():
        for name in (f"{stem}{sign}{suffix}" for sign in (" ", "_", "/", ".", "-", "") if stem or not sign):
            if name in by_name and name != low:
                return by_name[name], kind
    return "", ""
