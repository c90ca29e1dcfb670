"""`python -m tests.benchmarks.search_variance`: how much a search varies, from the kept records with repeated searches.

It reads every record of `results/measured` whose methods were searched repeatedly, and writes
`results/statistics/search_deviations.csv`, which the product reads. The first k trials of a search are a search of k
trials. To measure a record anew::

    python -m reproduce run reality_check/glyphs --searches 6 --trials 20
    python -m reproduce table reality_check/glyphs --format json | xz > results/measured/reality_check_glyphs.json.xz
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from results.statistics.deviations import (
    FEWEST_DEGREES,
    FEWEST_TRIALS,
    pooled_variance,
    repeated_searches,
    search_deviation,
    setting_phrase,
    training_kind,
)
from results.statistics.primary_comparison import Metric

from results.atomic_files import write_atomically
from results.frame import EMBEDDING_KINDS
from results.spec.experiment_spec import PrimaryScore
from results.store.experiment_results import FOLDER, MeasuredExperiment

DEVIATIONS = Path(__file__).resolve().parents[2] / "results" / "statistics" / "search_deviations.csv"


@cache
def kept_measurements() -> tuple[tuple[str, MeasuredExperiment], ...]:
    """Return the experiments in `results/measured` with the names of their files."""
    paths = sorted(FOLDER.glob("*.json.xz"))
    return tuple((f"results/measured/{path.name}", MeasuredExperiment.from_file(path)) for path in paths)


def kept_deviations() -> pd.DataFrame:
    """Return what `results/statistics/search_deviations.csv` holds, computed from the kept records."""
    scores = [
        PrimaryScore(metric=metric, embeddings=kind) for metric, kind in product(get_args(Metric), EMBEDDING_KINDS)
    ]
    lines = (
        _deviation_line(name, kept, score)
        for name, kept in kept_measurements()
        if kept.repeats_searches and kept.searches and kept.summary.trials >= FEWEST_TRIALS
        for score in scores
    )
    return pd.DataFrame([line for line in lines if line is not None])


def _deviation_line(name: str, kept: MeasuredExperiment, score: PrimaryScore) -> dict[str, Any] | None:
    found, experiment = search_deviation(kept, score), kept.summary.experiment
    if found is None or found.degrees < FEWEST_DEGREES or found.deviation == 0:
        return None
    return {
        "record": name,
        "setting": setting_phrase(kept),
        "dataset": kept.summary.dataset,
        "trunk": experiment.conditions.trunk.name,
        "training": training_kind(experiment.conditions),
        "metric": score.metric,
        "embeddings": score.embeddings,
        "trials": kept.summary.trials,
        "degrees": found.degrees,
        "deviation": found.deviation,
        "shorter": " ".join(map(repr, _shorter(kept, list(repeated_searches(kept, score))))),
    }


def _shorter(kept: MeasuredExperiment, methods: Sequence[str]) -> list[float]:
    """Factors of the deviation for searches of 10 trials, 11 trials, and so on, up to one less than the record's."""

    def best(count: int) -> float:
        own = [(key, scores) for (key, _), scores in sorted(kept.searches.items())]
        scores = [[max(trials[:count]) for key, trials in own if key == method] for method in methods]
        return pooled_variance(scores)[0]

    of_all = best(kept.summary.trials)
    lengths = range(FEWEST_TRIALS, kept.summary.trials)
    return [max(1.0, float(np.sqrt(best(count) / of_all))) for count in lengths]


def deviations_text() -> str:
    """Return the CSV file of the kept deviations."""
    return kept_deviations().to_csv(index=False, lineterminator="\n")


if __name__ == "__main__":
    write_atomically(DEVIATIONS, deviations_text())
