"""The README's table of findings: what kept records say, in a row each."""

from collections.abc import Collection
from operator import attrgetter
from typing import Literal

import numpy as np

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
