"""Names and cells of a table of scores: what a column's name says of it, and its texts and numbers."""

import re
import unicodedata
from typing import Any

import numpy as np
import pandas as pd

from results.reading.scores_table import Reading, ScoresError
from results.wording import some, things

_NUMBERED = r"(_(id|idx|index|no|nr|num|number|name))?"
ROLES = {
    "method": (
        ("method", "model", "loss", "name", "algorithm", "classifier", "learner", "approach"),
        rf"(.*_)?(method|model|algorithm|algo|classifier|learner|framework|approach|estimator|agent|policy|technique|"
        rf"system|arch|architecture|strategy|variant|solver|pipeline|detector|network|loss|optimi[sz]er){_NUMBERED}",
    ),
    "dataset": (
        ("dataset", "benchmark", "task"),
        rf"(.*_)?(dataset|data_set|benchmark|task|env|environment|problem|corpus|target|scenario|city|country|region|"
        rf"site|station){_NUMBERED}",
    ),
    "search": (("search", "study"), ""),
    "paired": (("split", "block", "subject", "case", "patient"), ""),
    "fold": (("fold",), rf"(cv|k|outer|test)?_?fold{_NUMBERED}|fold_year"),
    "run": (
        ("run", "seed", "rep", "trial_seed", "random_seed", "replicate", "repeat", "repetition"),
        rf"(?!(n|num|number)_)((.*_)?(seed|random_state)|(run|rep|repeat|repetition|replicate))s?{_NUMBERED}|"
        r"exp(eriment)?_(no|nr|num|number)",
    ),
    "state": (("state", "status"), ""),
}
"""What columns are by their names, the first that is there, else by a pattern of the name's words."""

RUN = ROLES["run"][0]
SWEEP, ROW = "sweep", "row name"
"""W&B's column of searches, and what a column of words without a name is called."""

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
PARTS_OF_DATA = {"train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval", "evaluation"}
_SETTINGS = {
    *("lr", "learning_rate", "wd", "weight_decay", "momentum", "batch_size", "bs", "dropout", "temperature", "margin"),
    *("optimizer", "dim", "dims", "dimension", "dimensions", "embedding_size", "hidden", "width", "depth", "layers"),
    *("k", "shots"),
    *("hparams_seed", "fraction", "noise", "backbone", "trunk", "alpha", "beta", "gamma", "lambda", "params"),
    *("threshold", "bits"),
}
_SIZE = re.compile(r"(n|num|number|size|samples|support|count)_.*|.*_(size|samples|count)|size|support|samples")
_OF_SETTINGS = re.compile(r"(params?|hparams?|hp|config|args)[_./].*", re.IGNORECASE)
NOTES = re.compile(
    r"_?(commit|git_?commit|sha|hash|host(name)?|server|machine|node|gpu|device|user(name)?|created(_?at)?|date|tags?|"
    r"((run|job|experiment)_?)?id|timestamp|notes?|comments?|info|messages?|reason|traceback|uuid|path|file(name)?|"
    r"checkpoint.*|.*_checkpoint|.*_(idx|index)|url|version|(start|end|begin|stop|complete)(ed)?_?(time|date|at)?|datetime.*|index)",
    re.IGNORECASE,
)
_TIMES = {
    *("time", "runtime", "duration", "wall", "walltime", "elapsed", "seconds", "secs", "sec", "ms", "hours", "minutes"),
    *("latency", "memory", "mb", "gb", "flops", "gflops", "fps", "throughput", "parameters"),
}
_OF_TIMES = {"s", "h", "total", "cpu", "gpu", "peak", "fit", "predict", "inference", "infer", "search", "epoch", "step"}
_ERROR_RATES = {"error", "err", "errors", "fpr", "fnr", "eer", "ece", "wer", "cer", "misclassification"}
_LOWER = {
    *("loss", "nll", "ppl", "perplexity", "rmse", "mae", "mse", "mape", "cost", "brier", "regret", "logloss", "bpc"),
    *("bpb", "crossentropy", "entropy", "fid", "lpips", "igd", "nmse", "nrmse", "rmsle", "mase", "smape", "crps"),
    *("wql", "hd", *_ERROR_RATES, *_TIMES),
} - {"fps", "throughput"}
_UNSURE = {"distance", "length", "makespan", "energy", "fitness", "objective", "bias"}
"""Words of scores of which some are better when lower."""

_BOUNDED = {
    *("acc", "accuracy", "auc", "auroc", "auprc", "roc", "ap", "map", "f1", "fscore", "precision", "recall", "pre"),
    *("sensitivity", "specificity", "sen", "spe", "sens", "spec", "iou", "miou", "dice", "ndcg", "mrr", "hit", "hits"),
    *("em", "nmi", "top", "p", "r", "success", "prauc", "rocauc", "jaccard", "winrate"),
}
_SCORES = {
    *("score", "value", "result", "metric", "performance", "mcc", "kappa", "ari", "bleu", "rouge", "meteor", "psnr"),
    *("ssim", "reward", "return", "elo", "hypervolume", "hv", "corr", "pearson", "spearman", "rsq", "gmean"),
    *(*_BOUNDED, *_LOWER),
} - _TIMES
_MODIFIERS = {
    *("macro", "micro", "weighted", "mean", "avg", "average", "best", "final", "last", "balanced", "bal", "at", "rate"),
    *("std", "sd", "se", "sem", "stddev", "stdev", "deviation", "standard", "min", "max", "median", "overall", "class"),
    *("cv", "metric", "metrics", "ood", "id", "all", "n", "l", "of", "per", "log", "cross", "percent", "pct", "px"),
    *("pred", "predicted", "prediction"),
    *("absolute", "square", "squared", "percentage", "root", "relative", "pr", "clean", "subset"),
    *PARTS_OF_DATA,
}
_SUMMARIES = {"average", "avg", "overall", "total", "std", "stddev", "stdev", "rank", "ranks", "wins", "win", "ties"}
_DIFFERENCES = {
    *(
        "delta",
        "diff",
        "difference",
        "gain",
        "improvement",
        "speedup",
        "pval",
        "pvalue",
        "stat",
        "gap",
        "lo",
        "hi",
        "ci",
    )
}
_STATISTICS = {"mean", "median", "min", "max", "minimum", "maximum", "sum", "all", "losses", "count"}
MISSING = ("", "nan", "na", "n/a", "null", "none", "-")
_NO_WIDTH = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_DASHES = re.compile(r"[_\u2010-\u2015\u2212]")


def plain(text: str) -> str:
    """Return a text in one line and one Unicode form, without marks of no width and without blanks around it."""
    text = re.sub(r"\s*[\r\n]+\s*", " ", text)
    return unicodedata.normalize("NFC", _NO_WIDTH.sub("", text).replace("\u00a0", " ")).strip()


def spelling(name: str) -> str:
    """Return what names that differ in blanks, dashes, case or the form of letters only have in common."""
    return _DASHES.sub("-", "".join(unicodedata.normalize("NFKC", plain(name)).split())).casefold()


def spelled_alike(names: pd.Series) -> list[tuple[str, str]]:
    """Return the names whose spelling another one has, each with the first that has it."""
    first: dict[str, str] = {}
    pairs = [(first.setdefault(spelling(name), name), name) for name in names.unique()]
    return [pair for pair in pairs if pair[0] != pair[1]]


def words_of(name: str) -> list[str]:
    """Return the words of a name, without numbers: `top1Error` has top and error."""
    named = _in_small_letters(name)
    for text, word in (("f1", "fscore"), ("r2", "rsq"), ("win[ _-]rate", "winrate")):
        named = re.sub(text, word, named)
    return list(filter(None, re.split(r"[^a-zµ]+", named)))


def _in_small_letters(name: str) -> str:
    """Write a name in small letters, with `_` where a capital began a word."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", "_", name).casefold()


def is_role(name: str, role: str) -> bool:
    """Tell whether the name of a column is one of a role, such as `fold`."""
    names, pattern = ROLES[role]
    low = re.sub(r"[^a-z0-9]+", "_", _in_small_letters(name)).strip("_")
    return low in names or bool(pattern and re.fullmatch(pattern, low))


def means_lower(name: str) -> bool | None:
    """Tell whether the name of a score says that lower is better, such as `val_loss`; None if it may say so."""
    words = words_of(name)
    core = [word for word in words if word not in _MODIFIERS and word != "score"]
    if not {*words} & (_LOWER | _UNSURE) or {*words} & {"neg", "negative"}:
        return False
    return True if core and core[-1] in _LOWER else None


def is_error_rate(name: str) -> bool:
    """Tell whether the name of a score is that of errors counted, which can be fractions or percent."""
    words = {*words_of(name)}
    return bool(words & _ERROR_RATES) and not words & {"absolute", "square", "squared", "percentage"}


def is_bounded(name: str) -> bool:
    """Tell whether a score of this name is a percentage or a fraction, such as `accuracy`."""
    return bool({*words_of(name)} & _BOUNDED)


def is_score(name: str) -> bool:
    """Tell whether a column has the name of a score, such as `test_acc` or `R@1`, and no other word in it."""
    words = {*words_of(name)}
    return bool(words & _SCORES) and words <= _SCORES | _MODIFIERS and name.casefold() not in SPREADS


def metric_in(name: str) -> str:
    """Return the score at an end of a name of something else: `rmse` of `rmse_lstm` or `LSTM_RMSE`; else empty."""
    words = words_of(name)
    if not words[1:] or is_score(name) or is_difference(name):
        return ""
    parts = list(filter(None, re.split(r"[^a-z0-9]", name.casefold())))
    return next((parts[at] for at in (0, -1) if words[at] in _SCORES), "")


def is_difference(name: str) -> bool:
    """Tell whether a column has the name of a difference, a test or an interval, such as `delta_r2`."""
    return bool({*words_of(name)} & _DIFFERENCES)


def is_time(name: str) -> bool:
    """Tell whether a column has a name of a time or of another cost of computing."""
    return bool({*words_of(name)} & _TIMES)


def is_only_time(name: str) -> bool:
    """Tell whether a column has the name of a time and of nothing else, as `training_time_s`, and not `Time-CNN`."""
    words = words_of(re.sub(r"[ _(]+(s|h|ms)\)?$", "", name))
    return is_time(name) and (words[-1] in _TIMES or {*words} <= _TIMES | _MODIFIERS | _OF_TIMES)


def is_known(name: str) -> bool:
    """Tell whether a name has a known word of a score, so that its direction is known."""
    return bool({*words_of(name)} & (_SCORES | _TIMES | _UNSURE))


def is_summary(name: str, *, of_columns: bool = True) -> bool:
    """Tell whether a name sums others up: Average, Rank; in the head of a column or of a dataset also Mean, Min."""
    every = {*words_of(name)}
    words = every - {"the", *_SCORES}
    known = _SUMMARIES | (_STATISTICS if of_columns else set())
    return (bool(every & known) and words <= known) or (of_columns and every in ({"score"}, {"scores"}))


def is_number_of_runs(name: str) -> bool:
    """Tell whether a column is named as the number of runs behind a mean, such as `n` or `accuracy count`."""
    low = re.sub(r"[ .-]", "_", name.casefold())
    runs = r"(runs|seeds|folds|replicates|repeats|reps|repetitions)"
    known = rf"(n|num|number)(_of)?_({runs}|samples|trials)|{runs}|n|#|count|.*_(n|count)"
    return bool(re.fullmatch(known, low))


def is_setting(name: str) -> bool:
    """Tell whether a column is named as one that is planned or counted, not measured, such as `lr` or `epoch`."""
    low, words = name.casefold(), words_of(name)
    last = bool(words) and words[-1] in {"dim", "dims", "layers", "heads", "width", "depth", "lr", "bits"}
    last = last and not name.endswith("LR")  # A logistic regression.
    return last or low in COUNTERS or re.split(r"[./]", low)[-1] in _SETTINGS or bool(_OF_SETTINGS.fullmatch(name))


def is_size(name: str) -> bool:
    """Tell whether a column is named as a size of data, such as `n_train`."""
    return bool(_SIZE.fullmatch(name.casefold()))


def texts_of(column: pd.Series) -> pd.Series:
    """Return the cells as plain texts; empty where there is nothing."""
    texts = column.astype("string").fillna("").tolist()
    found = {text: plain(text) for text in set(texts)}
    return pd.Series([found[text] for text in texts], column.index, object, column.name)


def as_written(column: pd.Series) -> pd.Series:
    """Return the cells as texts without blanks around them, in the Unicode form that they have."""
    return column.astype("string").fillna("").str.strip().astype(object)


def numbers_of(given: pd.Series) -> dict[str, Any]:
    """Return the numbers, NaN where there is none, and whether text stands there instead."""
    if pd.api.types.is_numeric_dtype(given) and not pd.api.types.is_bool_dtype(given):
        return {"value": given.astype(float), "text": False if given.empty else np.zeros(len(given), dtype=bool)}
    texts = texts_of(given)
    missing = texts.str.lower().isin(MISSING)
    numbers = pd.to_numeric(texts.mask(missing), errors="coerce").astype(float)
    return {"value": numbers, "text": (numbers.isna() & ~missing).to_numpy()}


def numbered(column: pd.Series) -> pd.Series:
    """Return the names of repeats; `1`, `1.0` and `01` are one."""
    texts = texts_of(column)
    found = {text: one_number(text) for text in set(texts)}
    return pd.Series([found[text] for text in texts], column.index, object, column.name)


def one_number(text: str) -> str:
    """Return a whole number in one form, and other texts as they are."""
    return str(int(float(text))) if re.fullmatch(r"[+-]?\d{1,15}(\.0+)?", text) else text


def rows_words(index: pd.Index) -> str:
    """Write numbers of rows, such as `rows 2, 3, 4 and 5 more`."""
    return f"{things(len(index), 'row')} {some([str(row) for row in index], 3)}"


def column_named(table: pd.DataFrame, given: str) -> str:
    """Return the column of a name, in capital or small letters.

    Raises:
        ScoresError: There is none.
    """
    by_name = {name.casefold(): name for name in table.columns}
    if (column := by_name.get(plain(given).casefold())) is None:
        raise ScoresError(f"there is no column {given!r}; the columns are {some(list(table.columns))}")
    return column


def rows_where(table: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """Return the rows that have the values that `--where` names."""
    for name, value in reading.where:
        column = column_named(table, name)
        cells = numbered(table[column])
        kept = cells.str.casefold() == one_number(plain(value)).casefold()
        if not kept.any():
            raise ScoresError(f"no row has {column} {value!r}; there are {some(list(dict.fromkeys(cells)))}")
        table = table[kept]
    return table


def is_number(column: pd.Series) -> bool:
    """Tell whether a column holds numbers and no text."""
    own = numbers_of(column)
    return bool(own["value"].notna().any() and not np.any(own["text"]))


def is_shared(cells: pd.Series, methods: pd.Series) -> bool:
    """Tell whether several methods have the same cells, and more than one of them."""
    sets = {frozenset(own) for _, own in cells.groupby(methods, sort=False)}
    return len(sets) == 1 and methods.nunique() > 1 and len(next(iter(sets))) > 1


def tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with one level of plain names, and with the named levels of its index as columns."""
    table = table.copy(deep=False)
    if isinstance(table.columns, pd.MultiIndex):
        own = [name for name in table.columns.names if any(is_role(str(name), role) for role in ROLES)]
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
        what = "have no name" if twice[0] == ROW else f"are called {twice[0]!r}"
        raise ScoresError(f"two columns {what}; rename one, and write one line of names if there are two")
    return _split_cells(table)


def _are_row_numbers(column: pd.Series) -> bool:
    """Tell whether a column without a name counts rows, also those of several files one after the other."""
    texts = texts_of(column)
    if not texts.any():
        return True
    numbers = pd.to_numeric(texts, errors="coerce")
    steps = numbers.diff().fillna(1)
    first = numbers.iloc[0] <= 2  # Years are none.
    return bool(first and numbers.notna().all() and ((steps == 1) | numbers.isin([0, 1])).all())


_PLUS_MINUS = re.compile(
    r"^(?P<mean>-?[\d.]+(e-?\d+)?)\s*(?:(?:±|\+/?-|\$\\pm\$|\\pm)\s*(?P<spread>[\d.]+(e-?\d+)?)|\((?P<inner>[\d.]+)\))$"
)


def _split_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Split columns of `71.5 ± 0.4`, or `71.5 (0.4)`, in two, of which the second has a name that ends in ±.

    Columns of `71.5 %` become fractions.
    """
    for name in list(table.columns):
        if pd.api.types.is_numeric_dtype(table[name]):
            continue
        texts = texts_of(table[name])
        percent = texts.str.fullmatch(r"-?\d+(\.\d+)? ?%")
        if percent.any() and (percent | (texts == "")).all():
            table = table.assign(**{name: [f"{float(text[:-1]) / 100:.12g}" if text else "" for text in texts]})
            continue
        parts = texts.str.extract(_PLUS_MINUS)
        parts["spread"] = parts["spread"].fillna(parts["inner"])
        found = parts["mean"].notna()
        if 2 * found.sum() > (texts != "").sum():  # Others are rows of ranks, say, or are refused where they are read.
            table = table.assign(**{name: parts["mean"].fillna(texts), f"{name} ±": parts["spread"].fillna("")})
    return table


SPREADS = {
    **dict.fromkeys(("sd", "std", "stdev", "stddev", "deviation", "standard_deviation", "standard deviation"), "sd"),
    **dict.fromkeys(("se", "sem", "stderr", "standard_error", "standard error"), "se"),
}
"""Names of what stands behind a mean: a standard deviation, or a standard error."""


def spread_of(by_name: dict[str, str], score: str) -> tuple[str, str]:
    """Return the column of the spread of a score, and its kind: `sd`, `se` or `±`; both empty if there is none.

    It has the score's name, or stands right of the score and has no other name than `std`.

    Args:
        by_name: The columns by their names in small letters.
        score: The column of the score.
    """
    low = score.casefold()
    if f"{low} ±" in by_name:
        return by_name[f"{low} ±"], "±"
    middle = r"(^|[ _/.-])(mean|avg|average)($|[ _/.-])"
    stem = re.sub(middle, lambda m: m[1] and m[3], low).strip(" _/.-")
    for suffix, kind in SPREADS.items():
        inside = re.sub(middle, rf"\g<1>{suffix}\g<3>", low)
        ends = (f"{stem}{sign}{suffix}" for sign in (" ", "_", "/", ".", "-", "") if stem or not sign)
        starts = (f"{suffix}{sign}{stem}" for sign in (" ", "_", "/", ".", "-") if stem)
        for name in (inside, *ends, *starts):
            if name in by_name and name != low:
                return by_name[name], kind
    names = [*by_name, ""]
    beside = names[names.index(low) + 1] if low in by_name else ""
    kind = re.sub(rf"^{re.escape(re.sub('[^ _/.-]+$', '', low))}(?=.)", "", beside)  # Of `retain_acc` `retain_std`.
    return (by_name[beside], SPREADS[kind]) if kind in SPREADS else ("", "")
