"""What kept records say: the README's table of findings, and what the start of the embedder is worth."""

from collections.abc import Collection
from operator import attrgetter
from typing import Literal

import numpy as np
from scipy import stats

from results.store.experiment_results import MeasuredExperiment


def findings_markdown() -> str:
    """Return the table in Markdown: separated MAP@R in percent, as one mean or from the lowest to the highest."""
    rows = [*_from_components(), _from_random(), _one_loss(), *_fine_tuned()]
    return "\n".join(["| what was trained | separated MAP@R | record |", "|---|--:|---|", *rows])


def _from_components() -> list[str]:
    record = "mlrc_frozen_cub200_subset"
    means = _means(record)
    untrained, components = (means.pop(method) for method in ("untrained", "pretrained_pca"))
    return [
        _row("nothing: the 1280 features", [untrained], record),
        _row("nothing: 128 principal components", [components], record),
        _row(f"{len(means)} losses, start at the principal components", means.values(), record),
    ]


def _from_random() -> str:
    record = "mlrc_frozen_cub200_random_start_subset"
    names = MeasuredExperiment.kept(record).summary.methods.values()
    return _row(f"{' and '.join(names)}, random start", _means(record).values(), record)


def _one_loss() -> str:
    record = "same_method_frozen_cub200_subset"
    summary = MeasuredExperiment.kept(record).summary
    (loss,) = summary.methods.values()
    searches = _means(record, "search").values()
    what = f"{loss} alone, {len(searches)} independent searches of {summary.trials} trials"
    return _row(what, searches, record)


def _fine_tuned() -> list[str]:
    record = "cub200_small_subset"
    means = _means(record)
    untrained = means.pop("untrained")
    return [
        _row("at 96 pixels, nothing: the 1280 features", [untrained], record),
        _row(f"at 96 pixels, the trunk too: {len(means)} losses", means.values(), record),
    ]


def _means(record: str, group: Literal["method", "search"] = "method") -> dict[str | int, float]:
    """Mean over runs of separated MAP@R in percent, by group, in the order of the experiment's runs."""
    values: dict[str | int, list[float]] = {}
    for run in MeasuredExperiment.kept(record).records:
        values.setdefault(attrgetter(group)(run), []).append(100 * run.separated.map_at_r)
    return {key: float(np.mean(of_group)) for key, of_group in values.items()}


def _row(what: str, means: Collection[float], record: str) -> str:
    low, high = min(means), max(means)
    value = f"{low:.1f} %" if len(means) == 1 else f"{low:.1f} to {high:.1f} %"
    return f"| {what} | {value} | [record](results/measured/{record}.json) |"


def starts_markdown() -> str:
    """Return P@1 from torch's start and from that of Proxy-Anchor's code, by loss and size of the embedding."""
    records = [f"embedder_start_{start}_frozen_cub200_subset" for start in ("torch", "kaiming")]
    torch_start, kaiming_start = map(_runs, records)
    titles = MeasuredExperiment.kept(records[0]).summary.methods
    rows = ["| loss | dimensions | torch's start | n | Kaiming, fan-out | n | difference |"]
    rows.append("|---|--:|--:|--:|--:|--:|--:|")
    for (method, size), before in sorted(torch_start.items()):
        after = kaiming_start[method, size]
        interval = stats.ttest_ind(after, before, equal_var=False).confidence_interval()
        difference, half = np.mean(after) - np.mean(before), (interval.high - interval.low) / 2
        cells = [titles[method], f"{size}", f"{np.mean(before):.2f}", f"{len(before)}"]
        cells += [f"{np.mean(after):.2f}", f"{len(after)}", f"{difference:+.2f} ± {half:.2f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _runs(record: str) -> dict[tuple[str, int], list[float]]:
    """Separated P@1 of all runs in percent, by loss and dimensions."""
    runs: dict[tuple[str, int], list[float]] = {}
    for run in MeasuredExperiment.kept(record).records:
        loss = run.method.partition("__")[0]
        runs.setdefault((loss, run.dimensions), []).append(100 * run.separated.precision_at_1)
    return runs
