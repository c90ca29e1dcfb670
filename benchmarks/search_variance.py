"""`python -m benchmarks.search_variance`: how much a search varies, from the kept records with repeated searches.

It reads every record of `results/measured` whose methods were searched repeatedly, and writes
`results/answer/search_deviations.csv`, which the product reads. The first k trials of a search are a search of k
trials, also where its ranges were widened after them. To measure a record anew::

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

from results.answer.answer_question import answer_on
from results.answer.answers import Answer
from results.answer.deviations import (
    FEWEST_DEGREES,
    FEWEST_TRIALS,
    pooled_variance,
    search_deviation,
    setting_phrase,
    training_kind,
)
from results.atomic_files import write_atomically
from results.findings.experiment import answer_of
from results.records.frame import EMBEDDING_KINDS
from results.spec.experiment_spec import Metric
from results.store.experiment_results import FOLDER, MeasuredExperiment

DEVIATIONS = Path(__file__).resolve().parents[1] / "results" / "answer" / "search_deviations.csv"


@cache
def kept_measurements() -> tuple[tuple[str, MeasuredExperiment], ...]:
    """Return the experiments in `results/measured` with the names of their files, each run in one of them alone.

    The runs of `reality_check_2026_batches` are those of two others.
    """
    paths = [path for path in sorted(FOLDER.glob("*.json.xz")) if "_batches" not in path.name]
    return tuple((f"results/measured/{path.name}", MeasuredExperiment.from_file(path)) for path in paths)


def kept_deviations() -> pd.DataFrame:
    """Return what `results/answer/search_deviations.csv` holds, computed from the kept records."""
    lines = (
        _deviation_line(name, kept, answer_on(answer_of(kept), *score))
        for name, kept in kept_measurements()
        # The other losses of PFML's records are those of `reality_check_*`, and PFML alone says too little.
        if "/pfml_" not in name and kept.repeats_searches and kept.searches and kept.plan.most_trials >= FEWEST_TRIALS
        for score in product(get_args(Metric), EMBEDDING_KINDS)
    )
    return pd.DataFrame([line for line in lines if line is not None])


def _deviation_line(name: str, kept: MeasuredExperiment, answer: Answer) -> dict[str, Any] | None:
    trained = [own for own in answer.values.values() if own.planned.searched and own.planned.trained]
    searched = [own for own in trained if len(own.units) > 1]
    found, experiment = search_deviation(own.units for own in searched), kept.plan.experiment
    if found is None or found.degrees < FEWEST_DEGREES or found.deviation == 0:
        return None
    return {
        "record": name,
        "setting": setting_phrase(experiment),
        "dataset": kept.plan.dataset,
        "trunk": experiment.conditions.trunk.name,
        "training": training_kind(experiment.conditions),
        "metric": answer.question.score,
        "embeddings": answer.question.embeddings,
        "trials": kept.plan.most_trials,
        "degrees": found.degrees,
        "deviation": found.deviation,
        "with_failed": np.sqrt(pooled_variance((*own.units, *own.failed) for own in searched)[0]),
        "shorter": " ".join(
            f"{share:.12g}" for share in _shorter(kept, [key for key, own in answer.values.items() if own in searched])
        ),
    }


def _shorter(kept: MeasuredExperiment, methods: Sequence[str]) -> list[float]:
    """Factors of the deviation for searches of 10 trials, 11 trials, and so on, up to one less than the record's."""

    def best(count: int) -> float:
        own = [(key, scores) for (key, _), scores in sorted(kept.searches.items())]
        scores = [[max(trials[:count]) for key, trials in own if key == method] for method in methods]
        return pooled_variance(scores)[0]

    of_all = best(kept.plan.most_trials)
    lengths = range(FEWEST_TRIALS, kept.plan.most_trials)
    return [max(1.0, float(np.sqrt(best(count) / of_all))) for count in lengths]


if __name__ == "__main__":
    write_atomically(DEVIATIONS, kept_deviations().to_csv(index=False, lineterminator="\n", float_format="%.12g"))
