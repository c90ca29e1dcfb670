"""An experiment of three methods and three runs, with or without its trainings, for the tests of tables."""

import io

import pandas as pd

from reports.tables.formats import to_csv
from results.records import records
from results.records.records import Scores
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import some_plan, some_result, some_run

TITLES = {"contrastive": "Contrastive | A_B", "triplet": "Triplet", "cosface": "CosFace", "absent": "Absent"}
VALUES = {"contrastive": (0.60, 0.62, 0.65), "triplet": (0.59, 0.625, 0.64), "cosface": (0.40, 0.42, 0.46)}


def measured(**changes):
    runs = [
        some_run(method, run, value, **{"dataset": "cub200", **changes})
        for method, values in VALUES.items()
        for run, value in enumerate(values)
    ]
    return MeasuredExperiment(some_plan(title="A test", methods=TITLES), tuple(runs))


def with_trainings():
    """Every training of every run is kept, with a test curve whose best point is 0.05 above the chosen one."""
    world, trainings, curves = measured(hyperparameters={"loss.neg_margin": 0.5, "loss_optimizer.lr": 0.01}), {}, {}
    for record in world.records:
        for spec in record.specs:
            name = spec.fingerprint
            trainings[name] = some_result(spec, map_at_r=record.separated.map_at_r + 0.01 * spec.fold)
            values = ((100, 0.05), (200, 0.0), (300, -0.05))
            points = [
                records.TestPoint(
                    iteration=iteration,
                    scores=Scores(
                        precision_at_1=0.5 + more, r_precision=0.3, map_at_r=record.separated.map_at_r + more
                    ),
                )
                for iteration, more in values
            ]
            curves[name] = records.TestCurve(fingerprint=name, points=tuple(points))
    return MeasuredExperiment(world.plan, world.records, trainings, curves)


def specs_of(world, method, run=0):
    """The trainings of a run."""
    (record,) = (one for one in world.records if (one.method, one.run, one.search) == (method, run, 0))
    return record.specs


def read(table):
    return pd.read_csv(io.StringIO(to_csv(table)))
