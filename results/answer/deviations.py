"""How far two runs of one setting differ, and two searches of one method: measured, and assumed from kept records.

Where each method was searched once, nothing in the experiment shows by how much another search would have changed its
score. The trials of the one search do not show it either: a sampler's trials depend on each other, and drawing from
them again gives a fourth of the true deviation. So the deviation is assumed from the nearest record, and doubled: in
simulations no more than 5 % of the claims are wrong as long as the true deviation is at most twice the record's.

`search_deviations.csv` has the numbers of the kept records; `python -m benchmarks.search_variance` writes it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from results.numbers import ONE_DIGIT
from results.spec.conditions import Conditions
from results.spec.data_choice import OWN_DATA
from results.spec.experiment_spec import Experiment
from results.spec.trunk_spec import NO_TRUNK

WIDENING = 2.0
"""Factor of an assumed deviation in tests."""

FEWEST_DEGREES, FEWEST_TRIALS = 10, 10
"""A record with fewer degrees of freedom or trials says too little, and no record speaks for a search of fewer trials:
short searches vary more than their first trials of a longer one do."""


def setting_phrase(experiment: Experiment) -> str:
    """Describe an experiment by dataset, trunk, image size and protocol."""
    dataset = f"a part of {experiment.dataset.name}" if experiment.dataset.subset else experiment.dataset.name
    trunk, protocol = experiment.conditions.trunk, f"protocol {experiment.protocol}"
    if trunk.name == NO_TRUNK:
        return f"{dataset}, no trunk, {protocol}"
    name = f"frozen {trunk.name}" if trunk.frozen else trunk.name
    weights = {"imagenet": "ImageNet", "random": "random"}.get(trunk.weights, "other") + " weights"
    return f"{dataset}, {name} from {weights}, images of {experiment.conditions.images.crop} pixels, {protocol}"


def pooled_variance(samples: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Return the variance within samples, and its degrees of freedom; a sample of one has none."""
    repeated = [values for values in samples if len(values) > 1]
    degrees = sum(len(values) - 1 for values in repeated)
    squares = math.fsum(float(np.var(values)) * len(values) for values in repeated)
    return (squares / degrees if degrees else 0.0), degrees


@dataclass(frozen=True)
class SearchDeviation:
    """The standard deviation between the means of searches, or between runs of one setting.

    Attributes:
        deviation: In the unit of the values. The part of the runs stays in it.
        degrees: Its degrees of freedom.
        record: Name of the kept record that it is from, if it is assumed.
        setting: The record's setting as a phrase.
        given: Whether it was given with the question. Then it is taken as it is, also for single runs.
    """

    deviation: float
    degrees: int
    record: str = "this experiment"
    setting: str = ""
    given: bool = False

    @property
    def taken(self) -> float:
        """The deviation that tests take: `WIDENING` times that of a record."""
        return self.deviation if self.given else WIDENING * self.deviation


def run_deviation(settings: Iterable[Sequence[float]]) -> SearchDeviation | None:
    """Return the deviation between runs of one setting, pooled over settings; None if no runs differ."""
    return search_deviation(runs for runs in settings if len(runs) > 1 and np.ptp(runs) > 0)


def search_deviation(searches: Iterable[Sequence[float]]) -> SearchDeviation | None:
    """Return the deviation between the means of searches, pooled over methods; None if no search was repeated."""
    variance, degrees = pooled_variance(searches)
    return SearchDeviation(float(np.sqrt(variance)), degrees) if degrees else None


def nearest_search_deviation(
    experiment: Experiment, metric: str, embeddings: str, *, with_failed: bool = False
) -> SearchDeviation | None:
    """Return the deviation of the kept record that is nearest to an experiment; None if none is near.

    A record is near if it is on the same dataset, or has the same trunk and kind of training: deviations differ by a
    factor of 2 to 3 between others. Of these, the one on the same data and trunk comes first, then the one with the
    nearest number of trials, then that of most searches, then the larger deviation. The first trials of a longer search
    are a search too: its deviation is that of the record, times the ratio of the deviations of the best validation
    scores, and not below that of the record. `with_failed` counts searches that failed, which a single search can be.
    """
    trials, trunk, kind = experiment.search.trials, experiment.conditions.trunk, training_kind(experiment.conditions)
    kept = _kept_deviations()
    kept = kept[(kept["metric"] == metric) & (kept["embeddings"] == embeddings)]
    kept = kept[(kept["training"] == "frozen") == (kind == "frozen")]
    # Two folders of users are two datasets.
    same_data = (kept["dataset"] == experiment.dataset.name) & ~kept["dataset"].isin(OWN_DATA)
    near = kept[same_data | ((kept["trunk"] == trunk.name) & (kept["training"] == kind))]
    if trials < FEWEST_TRIALS or near.empty:
        return None

    def distance(line: Mapping[Any, Any]) -> tuple[bool, bool, int, int, float]:
        data = line["dataset"] != experiment.dataset.name or experiment.dataset.name in OWN_DATA
        distance = data, line["trunk"] != trunk.name, abs(int(line["trials"]) - trials)
        return *distance, -int(line["degrees"]), -float(line["deviation"])

    line = min(near.to_dict("records"), key=distance)
    deviation, length = float(line["with_failed" if with_failed else "deviation"]), int(line["trials"])
    if trials < length:
        deviation *= float(line["shorter"].split()[trials - FEWEST_TRIALS])
    return SearchDeviation(deviation, int(line["degrees"]), line["record"], line["setting"])


def kept_range(metric: str, embeddings: str) -> str:
    """Write by how many points searches vary in the kept records, by what was trained; of MAP@R for another score."""
    kept = _kept_deviations()
    of_score = kept[(kept["metric"] == metric) & (kept["embeddings"] == (embeddings or "concatenated"))]
    if of_score.empty:
        return f"{kept_range('map_at_r', 'concatenated')} points of MAP@R"
    ranges = of_score.astype({"deviation": float}).groupby("training")["deviation"]
    return ", ".join(f"{ONE_DIGIT.range(own)} ({training})" for training, own in ranges)


def training_kind(conditions: Conditions) -> str:
    """Return what is trained: an embedder on features, or a network that starts from weights or from scratch."""
    if conditions.trunk.is_input_features:
        return "frozen"
    return "from scratch" if conditions.trunk.weights == "random" else "fine-tuned"


@cache
def _kept_deviations() -> pd.DataFrame:
    with resources.files("results").joinpath("answer", "search_deviations.csv").open(encoding="utf-8") as text:
        return pd.read_csv(text, dtype=str, keep_default_na=False)
