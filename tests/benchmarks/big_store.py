"""A large store for the benchmark of the commands: a finished run, and many copies of real records around it."""

import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import yaml

from reproduce.config.strict_yaml import EXPERIMENTS as EXPERIMENT_FILES
from results.records.records import FoldResult, RunRecord, run_fingerprint
from results.spec.training_spec import FoldSpec
from results.store.experiment_results import MeasuredExperiment
from results.store.schema import EXPERIMENT_RUNS, FOLD_RESULTS, RUNS
from results.store.store import Store

TRAININGS, TEST_RUNS = 20_000, 5_000
DATASETS = ("cub200", "glyphs", "cars196", "sop")
RUNS_OF_A_METHOD = 10
FILE = "finished.yaml"

Row = dict[str, Any]


def finished_run(folder: Path) -> list[str]:
    """Run the quickstart with trainings of two iterations, and return the arguments that run it again.

    The run has as many trainings, trials and tests as the quickstart. Only its curves are shorter.
    """
    content = yaml.safe_load((EXPERIMENT_FILES / "quickstart.yaml").read_text(encoding="utf-8"))
    content["training"] |= {"iterations_per_epoch": 2, "max_epochs": 1, "validate_every": 1}
    (folder / FILE).write_text(yaml.safe_dump(content), encoding="utf-8")
    arguments = ["run", FILE, "--device", "cpu"]
    subprocess.run([sys.executable, "-m", "reproduce", *arguments], cwd=folder, check=True, capture_output=True)
    return arguments


def enlarge(store: Store, trainings: int = TRAININGS, runs: int = TEST_RUNS) -> None:
    """Add experiments with all methods to the store of a finished run, until it is large enough.

    Trainings are copies of the run's, and test evaluations are copies of kept ones, with fingerprints of their own.

    Args:
        store: The store with the finished run, which stays the latest experiment.
        trainings: How many trainings the store has at least at the end.
        runs: How many test evaluations it has at least at the end.
    """
    name, fingerprint = next(iter(store.latest_experiments().items()))
    finished = MeasuredExperiment.from_store(store, fingerprint, trainings=True)
    kept = MeasuredExperiment.kept("all_methods_glyphs")
    contents = store.contents()
    present = sum(group.trainings for group in contents.trainings)
    wanted = max(runs - contents.test_evaluations, -(-(trainings - present) // 4))
    of_an_experiment = RUNS_OF_A_METHOD * len(kept.summary.methods)
    pairs = cycle(finished.trainings.values())
    records = _numbered(kept)
    for number, start in enumerate(range(0, wanted, of_an_experiment)):
        dataset, seed = DATASETS[number % len(DATASETS)], 1000 * number
        chosen = islice(records, min(of_an_experiment, wanted - start))
        copies = [_copy(record, list(islice(pairs, 4)), dataset, seed) for record in chosen]
        experiment = f"{number:032x}"
        store.put_experiment(experiment, f"copy_{number}", kept.summary)
        _insert(store, experiment, copies)
    store.put_experiment(fingerprint, name, finished.summary)


def _numbered(kept: MeasuredExperiment) -> Iterator[RunRecord]:
    """Yield endlessly RUNS_OF_A_METHOD runs of each method, from the records in turn."""
    while True:
        for method in kept.summary.methods:
            records = cycle([record for record in kept.records if record.method == method])
            for run, record in enumerate(islice(records, RUNS_OF_A_METHOD)):
                yield record.model_copy(update={"run": run})


def _copy(
    record: RunRecord, pairs: list[tuple[FoldSpec, FoldResult]], dataset: str, seed: int
) -> tuple[RunRecord, list[Row]]:
    """Return a test evaluation on another dataset, and the rows of its trainings."""
    rows = []
    for fold, (spec, result) in enumerate(pairs):
        method = spec.method.model_copy(update={"name": record.method})
        changes = {"dataset": dataset, "method": method, "fold": fold, "seed": seed + 10 * record.run + fold}
        # A copied model keeps a fingerprint that was computed before.
        copied = FoldSpec.model_validate({**dict(spec), **changes})
        rows.append(_fold_row(copied, result.model_copy(update={"fingerprint": copied.fingerprint})))
    folds = tuple(row["fingerprint"] for row in rows)
    changes = {"dataset": dataset, "seed": seed, "fold_fingerprints": folds, "fingerprint": run_fingerprint(folds)}
    return record.model_copy(update=changes), rows


def _fold_row(spec: FoldSpec, result: FoldResult) -> Row:
    return {
        "fingerprint": spec.fingerprint,
        "dataset": spec.dataset,
        "method": spec.method.name,
        "fold": spec.fold,
        "status": result.status,
        "best_map_at_r": result.best_map_at_r,
        "iterations": result.iterations,
        "wall_time": result.wall_time,
        "spec": spec.model_dump_json(),
        "result": result.model_dump_json(),
    }


def _insert(store: Store, experiment: str, copies: list[tuple[RunRecord, list[Row]]]) -> None:
    """Insert all rows in one transaction; the store itself commits every result on its own."""
    runs = [
        {"fingerprint": r.fingerprint, "dataset": r.dataset, "method": r.method, "record": r.model_dump_json()}
        for r, _ in copies
    ]
    listed = [
        {"experiment": experiment, "method": r.method, "run": r.run, "run_fingerprint": r.fingerprint}
        for r, _ in copies
    ]
    with store._database.writing() as connection:
        connection.execute(sa.insert(FOLD_RESULTS), [row for _, rows in copies for row in rows])
        connection.execute(sa.insert(RUNS), runs)
        connection.execute(sa.insert(EXPERIMENT_RUNS), listed)
