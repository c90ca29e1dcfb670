"""The README's table of findings: what kept records say, in a row each."""

from collections.abc import Mapping

import numpy as np

from results.experiment_results import MeasuredExperiment

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
    means = _means(first)
    losses = {method: mean for method, mean in means.items() if method not in _WITHOUT_LOSS}
    of_random, (loss,) = _means(second), one.summary.methods
    compared = " and ".join(second.summary.methods[method] for method in of_random)
    rows = [
        *((words, _range({method: means[method]}), _FROM_COMPONENTS) for method, words in _WITHOUT_LOSS.items()),
        (f"{len(losses)} losses, start at the principal components", _range(losses), _FROM_COMPONENTS),
        (f"{compared}, random start", _range(of_random), _FROM_RANDOM),
        (
            f"{one.summary.methods[loss]} alone, {len(_by_search(one))} independent searches of {one.summary.trials} "
            "trials",
            _range(_by_search(one)),
            _ONE_LOSS,
        ),
    ]
    head = ("| what was trained | separated MAP@R | record |", "|---|--:|---|")
    return "\n".join([*head, *(f"| {words} | {value} | [record]({_path(name)}) |" for words, value, name in rows)])


def _means(measured: MeasuredExperiment) -> dict[str, float]:
    """Mean over runs of separated MAP@R in percent, by method."""
    return {
        method: 100 * float(np.mean([run.separated.map_at_r for run in measured.records if run.method == method]))
        for method in measured.summary.methods
    }


def _by_search(measured: MeasuredExperiment) -> dict[int, float]:
    """The same by search, of an experiment with one method."""
    searches = sorted({run.search for run in measured.records})
    return {
        search: 100 * float(np.mean([run.separated.map_at_r for run in measured.records if run.search == search]))
        for search in searches
    }


def _range(means: Mapping[str, float] | Mapping[int, float]) -> str:
    low, high = min(means.values()), max(means.values())
    return f"{low:.1f} %" if len(means) == 1 else f"{low:.1f} to {high:.1f} %"


def _path(name: str) -> str:
    return f"results/measured/{name}.json"
