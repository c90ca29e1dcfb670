"""`python -m tests.benchmarks.table_rates`: the measured rows of the table of machines, for this machine's CPU.

It trains on glyphs with `small_conv`, and on random features, with the losses of `folder_small` and one thread. A step
of n rows is taken to last `1 / steps + n / rows` seconds. Their times are those of the processor, so that other work
on the machine counts little. Nothing here decides a test.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from protocols.problem import Problem
from protocols.training.train_fold import train_fold
from reproduce.config.experiment_file import load_experiments
from reproduce.execution.devices import prepare_process
from reproduce.execution.session import Session, open_session
from reproduce.forecast.rates import compared_per_second
from reproduce.storage import storage_paths
from results.spec.training_spec import FoldSpec
from tests.benchmarks.features import write_features

METHODS = ("contrastive", "multi_similarity", "normalized_softmax", "proxy_anchor")
FEW, MANY = 32, 128
"""Batch sizes from which the time of a step without samples is computed."""

FEATURES = """
title: Random features
dataset: {name: features, root: .}
methods: [contrastive]
embedder: {init: pca}
training: {optimizer: {name: Adam, lr: 1.0e-4, arguments: {}}}
"""

_LONG, _SHORT = (60, 2), (1, 60)
"""Steps between two validations and number of validations, of a training of steps and of one of validations."""


def opened(folder: Path, name: str) -> Session:
    """Open an experiment, named or in a file, with the methods to measure."""
    ((key, experiment),) = load_experiments(name, {"methods": list(METHODS)}).items()
    return open_session(key, experiment, storage_paths(str(folder / "store.sqlite"), None, None, None), None)


def seconds_of(problem: Problem, spec: FoldSpec) -> tuple[float, float]:
    """Return the processor seconds of a step and of a validation.

    Two trainings have different numbers of them, so both are the solution of two linear equations.
    """
    data, rows = problem.training_data(spec), []
    for steps, validations in (_LONG, _SHORT):
        update = {
            "iterations_per_epoch": steps,
            "max_epochs": validations,
            "validate_every": 1,
            "patience": validations,
        }
        long = spec.model_copy(update={"training": spec.training.model_copy(update=update)})
        marks: list[float] = []
        train_fold(long, data, observe=lambda *_, marks=marks: marks.append(time.process_time()))
        rows.append([steps * validations, validations, marks[-1] - marks[0]])
    (a, b, first), (c, d, second) = rows
    return (first * d - b * second) / (a * d - b * c), (a * second - c * first) / (a * d - b * c)


def mean_seconds(session: Session, batch: int, rounds: int) -> tuple[float, float, int]:
    """Return the mean processor seconds of a step and of a validation over the methods, and the validated samples."""
    problem = session.problem
    steps, validations, validated = [], [], 0
    for method in session.open_methods().values():
        spec = problem.fold_specs(method.method, "calibration", 0)[0]
        spec = spec.model_copy(update={"training": spec.training.model_copy(update={"batch_size": batch})})
        validated = len(problem.training_data(spec).validation)
        pairs = [seconds_of(problem, spec) for _ in range(rounds)]
        steps.append(min(step for step, _ in pairs))
        validations.append(min(validation for _, validation in pairs))
    return statistics.mean(steps), statistics.mean(validations), validated


def measured_rows(rounds: int) -> Iterator[str]:
    """Measure retrieval, `small_conv` and features, and yield a line for each."""
    prepare_process("cpu")
    compared = compared_per_second("cpu")
    yield f"comparisons={compared:.2g}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_features(folder, 6000, 1024, 200)
        (folder / "rows.yaml").write_text(FEATURES)
        for name in ("quickstart", str(folder / "rows.yaml")):
            session = opened(folder, name)
            few, validation, validated = mean_seconds(session, FEW, rounds)
            many, _, _ = mean_seconds(session, MANY, rounds)
            each = (many - few) / (MANY - FEW)
            embedding = validation - validated**2 / compared
            rates = f"rows={1 / each:.2g}, steps={1 / (few - FEW * each):.2g}, evaluated={validated / embedding:.2g}"
            yield (
                f"{session.experiment.trunk.name}: {rates} ({1000 * few:.2f} ms a step of {FEW}, {1000 * many:.2f} ms "
                f"of {MANY}, {1000 * validation:.1f} ms a validation of {validated})"
            )


def main() -> None:
    """Measure and print the rows."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.table_rates", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=3, help="trainings of each kind (default %(default)s)")
    for line in measured_rows(parser.parse_args().rounds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
