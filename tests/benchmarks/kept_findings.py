"""The README's table of findings: what kept records say, in a row each."""

from collections.abc import Callable, Mapping
from operator import attrgetter

import numpy as np

from results.experiment_results import MeasuredExperiment
from results.records import RunRecord

_FROM_COMPONENTS = "mlrc_frozen_cub200_subset"
_FROM_RANDOM = "mlrc_frozen_cub200_random_start_subset"
_ONE_LOSS = "same_method_frozen_cub200_subset"
_WITHOUT_LOSS = {
    "untrained": "nothing: the 1280 features",
    "pretrained_pca": "nothing: 128 principal components",
}


def findings_markdown() -> str:
    """Return the table in Markdown: separated MAP@R in percent, as one mean or from the lowest to the highest."""
    first, second = (MeasuredExperiment.kept(name) for name in (_FROM_COMPONENTS, _FROM_RANDOM))
    one = MeasuredExperiment.kept(_ONE_LOSS)
    means, of_random = (_means(measured, attrgetter("method")) for measured in (first, second))
    of_searches = _means(one, attrgetter("search"))
    losses = {method: mean for method, mean in means.items() if method not in _WITHOUT_LOSS}
    compared, (loss,) = " and ".join(second.summary.methods.values()), one.summary.methods.values()
    rows = [
        *((words, _range({method: means[method]}), _FROM_COMPONENTS) for method, words in _WITHOUT_LOSS.items()),
        (f"{len(losses)} losses, start at the principal components", _range(losses), _FROM_COMPONENTS),
        (f"{compared}, random start", _range(of_random), _FROM_RANDOM),
        (
            f"{loss} alone, {len(of_searches)} independent searches of {one.summary.trials} trials",
            _range(of_searches),
            _ONE_LOSS,
        ),
    ]
    head = ("| what was trained | separated MAP@R | record |", "|---|--:|---|")
    return "\n".join(
        [*head, *(f"| {words} | {value} | [record](results/measured/{name}.json) |" for words, value, name in rows)]
    )


def _means(measured: MeasuredExperiment, group: Callable[[RunRecord], str | int]) -> dict[str | int, float]:
    """Mean over runs of separated MAP@R in percent, by group, in the order of the experiment's runs."""
    values: dict[str | int, list[float]] = {}
    for run in measured.records:
        values.setdefault(group(run), []).append(100 * run.separated.map_at_r)
    return {key: float(np.mean(of_group)) for key, of_group in values.items()}


def _range(means: Mapping[str | int, float]) -> str:
    low, high = min(means.values()), max(means.values())
    return f"{low:.1f} %" if len(means) == 1 else f"{low:.1f} to {high:.1f} %"
