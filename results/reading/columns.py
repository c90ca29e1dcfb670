"""What the name of a column says of it."""

import re
import unicodedata

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

METRICS, VALUES = ("metric", "metric_name", "measure"), ("value", "metric_value", "score", "result")
"""Columns of the metric of a row, and of its value."""

LOWER, SCALE, HELD_UP = "reproduce_lower_is_better", "reproduce_scale", "reproduce_held_up"
"""Columns in which records of Every Eval Ever say what their scores are, and what held the method up."""

DONE = {"finished", "complete", "completed", "success", "succeeded", "ok", "done"}
FAILED = {
    *("crashed", "failed", "fail", "failure", "killed", "error", "pruned", "preempted", "aborted", "timeout"),
    *("canceled", "cancelled", "running", "waiting", "pending", "queued"),
}
COUNTERS = {
    *("epoch", "epochs", "step", "steps", "_step", "global_step", "iteration", "iterations", "iter", "iters", "round"),
    *("trial", "trial_id", "trial_number", "number", "budget"),
}
TRAINED_ON, VALIDATED_ON = frozenset({"train", "training"}), frozenset({"val", "valid", "validation", "dev"})
TESTED_ON = frozenset({"test", "testing", "eval", "evaluation"})
PARTS_OF_DATA = TRAINED_ON | VALIDATED_ON | TESTED_ON
_SETTINGS = {
    *("lr", "learning_rate", "wd", "weight_decay", "momentum", "batch_size", "bs", "dropout", "temperature", "margin"),
    *("optimizer", "dim", "dims", "dimension", "dimensions", "embedding_size", "hidden", "width", "depth", "layers"),
    *("k", "shots", "hparams_seed", "fraction", "noise", "backbone", "trunk", "alpha", "beta", "gamma", "lambda"),
    *("params", "threshold", "bits"),
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
_UNBOUNDED = {
    *("reward", "return", "elo", "psnr", "mcc", "kappa", "rsq", "corr", "pearson", "spearman", "hypervolume", "hv"),
    "ari",
}
"""Words of scores that can be negative, or above 100."""

_OF_NO_METRIC = {"score", "value", "result", "metric", "performance"}
_SCORES = {"bleu", "rouge", "meteor", "ssim", "gmean", *_OF_NO_METRIC, *_UNBOUNDED, *_BOUNDED, *_LOWER} - _TIMES
SPREADS = {
    **dict.fromkeys(("sd", "std", "stdev", "stddev", "deviation", "standard_deviation", "standard deviation"), "sd"),
    **dict.fromkeys(("se", "sem", "stderr", "standard_error", "standard error"), "se"),
}
"""Names of what stands behind a mean: a standard deviation, or a standard error."""

_MODIFIERS = {
    *("macro", "micro", "weighted", "mean", "avg", "average", "best", "final", "last", "balanced", "bal", "at", "rate"),
    *("std", "sd", "se", "sem", "stddev", "stdev", "deviation", "standard", "min", "max", "median", "overall", "class"),
    *("cv", "metric", "metrics", "ood", "id", "all", "n", "l", "of", "per", "log", "cross", "percent", "pct", "px"),
    *("pred", "predicted", "prediction", "absolute", "square", "squared", "percentage", "root", "relative", "pr"),
    *("clean", "subset", *PARTS_OF_DATA),
}
RIVALS = frozenset({"rank", "ranks", "wins", "win", "ties"})
"""Rows with these names sum up columns that were compared."""

_SUMMARIES = {"average", "avg", "overall", "total", "std", "stddev", "stdev", *RIVALS}
_STATISTICS = {"mean", "median", "min", "max", "minimum", "maximum", "sum", "all", "losses", "count"}
_DIFFERENCES = {
    *("delta", "diff", "difference", "gain", "improvement", "speedup", "pval", "pvalue", "stat", "gap", "lo", "hi"),
    "ci",
}
_NO_WIDTH = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")


def plain(text: str) -> str:
    """Return a text in one line and one Unicode form, without marks of no width and without blanks around it."""
    text = re.sub(r"\s*[\r\n]+\s*", " ", text)
    return unicodedata.normalize("NFC", _NO_WIDTH.sub("", text).replace("\u00a0", " ")).strip()


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


def is_unbounded(name: str) -> bool:
    """Tell whether a score of this name can be negative or above 100, such as `reward`."""
    return bool({*words_of(name)} & _UNBOUNDED)


def names_no_metric(name: str) -> bool:
    """Tell whether a score's name leaves open which metric it is, such as `test_error`."""
    return {*words_of(name)} <= {"error", *_OF_NO_METRIC, *PARTS_OF_DATA}


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
