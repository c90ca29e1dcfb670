"""`python -m benchmarks.training_durations`: how long trainings were, from the kept records.

It reads every record of `results/measured` under protocol `mlrc` that counted its iterations, the searches that come
with the suite (`reality_check_glyphs.zip`), and `bench_gpu.json`. It writes `results/answer/training_durations.csv`,
from which `plan` and `run` expect how long trainings take. A line is one method in one stage of one record.

What disturbs a time makes it longer, so a line has the seconds of its fastest run.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from benchmarks.search_variance import kept_measurements
from reproduce.outputs.store_files import unpack_store
from reproduce.storage import open_store
from results.answer.durations import FILE, UNKNOWN_DATA
from results.atomic_files import write_atomically
from results.records.provenance import Provenance
from results.records.records import RunRecord
from results.spec.conditions import Conditions
from results.spec.data_choice import OWN_DATA
from results.spec.plan import Plan
from results.store.experiment_results import FOLDER, MeasuredExperiment

SEARCHES = "reality_check_glyphs.zip"
GPU = "bench_gpu.json"
_BATCH, _CROP, _TRUNK = 32, 227, "bn_inception"
"""What `benchmarks.gpu` trains."""


def kept_durations() -> pd.DataFrame:
    """Return what `results/answer/training_durations.csv` holds, computed from the kept records."""
    whole = SEARCHES.replace(".zip", ".json.xz")
    lines = [
        line
        for name, kept in kept_measurements()
        # The searches that come with the suite have the trainings of this record too.
        if not name.endswith(f"/{whole}")
        for line in _of_record(name, kept)
    ]
    return pd.DataFrame([*lines, *_of_store(FOLDER / SEARCHES), *_of_gpu(FOLDER / GPU)])


def _of_record(name: str, kept: MeasuredExperiment) -> Iterator[dict[str, Any]]:
    if kept.plan.experiment.protocol != "mlrc":
        return
    for key, runs in kept.runs.items():
        if all(run.iterations is not None for run in runs):
            made = [(len(run.specs), run.iterations or 0, run.wall_time) for run in runs]
            line = {**_schedule(name, kept.plan, runs[0].specs[0].conditions), "method": key, "stage": "reproductions"}
            yield {**line, **_lengths(made), "processor": _machine(runs[0].provenance)}


def _of_store(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of whole searches: their trainings, how many folds racing left, and the seconds of tests."""
    with TemporaryDirectory() as folder:
        store = open_store(unpack_store(file, Path(folder)))
        start, *_ = store.starts()
        runs: dict[str, list[RunRecord]] = defaultdict(list)
        for run in store.experiment_runs(start.fingerprint):
            runs[run.method].append(run)
        of_runs = {key: [spec.fingerprint for run in own for spec in run.specs] for key, own in runs.items()}
        searches = store.searches.of_experiment(start.fingerprint)
        for key, own in runs.items():
            conditions = own[0].specs[0].conditions
            trials = [trial for (method, _), study in searches.items() if method == key for trial in study.trials]
            of_trials = [name for trial in trials for name in trial.trainings]
            line = {**_schedule(f"results/measured/{file.name}", start.plan, conditions), "method": key}
            for stage, names in (("search", of_trials), ("reproductions", of_runs[key])):
                found = store.fold_results(names)
                made = [(1, found[name].iterations, found[name].wall_time) for name in names]
                yield {**line, "stage": stage, **_lengths(made), "processor": _machine(own[0].provenance)}
            trained = store.fold_results(of_runs[key])
            tests = [
                run.wall_time - math.fsum(trained[spec.fingerprint].wall_time for spec in run.specs) for run in own
            ]
            test = {"stage": "tests", "trainings": len(own), "steps": 0.0, "seconds": min(tests)}
            folds = start.plan.experiment.folds
            yield {**line, **test, "processor": _machine(own[0].provenance)}
            yield {
                **line,
                "stage": "racing",
                "trainings": len(of_trials),
                "trained": len(of_trials) / (folds * len(trials)),
            }


def _lengths(made: Sequence[tuple[int, int, float]]) -> dict[str, Any]:
    """Return the mean steps of a training, and its seconds at the speed of the fastest.

    Args:
        made: Numbers of trainings with their steps and seconds, summed.
    """
    trainings = sum(count for count, _, _ in made)
    steps = sum(steps for _, steps, _ in made) / trainings
    fastest = min(seconds / (steps or count) for count, steps, seconds in made)
    return {"trainings": trainings, "steps": steps, "seconds": fastest * (steps or 1.0)}


def _of_gpu(file: Path) -> Iterator[dict[str, Any]]:
    suite = json.loads(file.read_text())["suite"]
    conditions = {"trunk": _TRUNK, "frozen": False, "crop": _CROP, "batch_size": _BATCH}
    for part, found in suite.items():
        at_a_time, _, precision = part.partition(", ")
        if precision:
            yield {
                "record": f"results/measured/{file.name}",
                **conditions,
                "precision": precision,
                "stage": "steps",
                "trainings": {"alone": 1, "four at once": 4}[at_a_time],
                "steps": 1.0,
                "seconds": 1 / found["steps_per_second"],
                "processor": suite["origin"]["device"],
            }


def _schedule(record: str, plan: Plan, conditions: Conditions) -> dict[str, Any]:
    training, trunk, data = conditions.training, conditions.trunk, plan.experiment.dataset.name
    return {
        "record": record,
        "data": UNKNOWN_DATA if data in OWN_DATA else data,
        "trunk": trunk.name,
        "frozen": trunk.is_input_features,
        "start": conditions.embedder.init,
        "crop": conditions.images.crop,
        "batch_size": training.batch_size,
        "precision": training.precision,
        "epoch_steps": training.iterations_per_epoch,
        "max_epochs": training.max_epochs,
        "validate_every": training.validate_every,
        "patience": training.patience,
    }


def _machine(provenance: Provenance) -> str:
    return provenance.processor or "a processor that the record does not name"


if __name__ == "__main__":
    write_atomically(FILE, kept_durations().to_csv(index=False, lineterminator="\n", float_format="%.6g"))
