"""Experiments made by hand for the papers' figures: sweeps of a hyperparameter, and runs with test curves."""

from reports.page.material import Material
from results.records.records import CurvePoint, Scores, TestCurve, TestPoint
from results.store.experiment_results import MeasuredExperiment
from tests.support.published_world import PAPER
from tests.support.sample_records import changed_run, some_result, some_run, some_summary


def sweep(points, *, of="proxy_anchor", title="Proxy-Anchor", name="some", dataset="cars196", settings=None, **more):
    """An experiment with a row for each pair of values and scores of its runs, as a sweep in its file gives them."""
    records, titles, variants = [], {}, []
    for values, scores in points:
        key = "__".join([of, *(f"{target}_{value}" for target, value in values.items())])
        titles[key] = ", ".join([title, *(f"{target} {value}" for target, value in values.items())])
        variants.append({"of": of, "key": key, "title": titles[key], "set": values})
        records += [_run(name, key, run, score, dataset) for run, score in enumerate(scores)]
    settings = {**PAPER, "variants": variants, "dataset": {"name": dataset}, **(settings or {})}
    summary = some_summary(methods=titles, reproductions=3, settings=settings)
    return Material(name, MeasuredExperiment(summary, tuple(records)), **more)


def _run(name, key, run, score, dataset):
    fields = {"protocol": "standard", "dataset": dataset, "iterations": 10, "hyperparameters": {}}
    record = some_run(key, run, score, fold_fingerprints=(f"{name}-{key}-{run}",), **fields)
    (spec,) = record.specs
    training = spec.conditions.training.model_copy(update={"iterations_per_epoch": None, "validate_every": 1})
    return changed_run(record, specs=(spec.with_conditions(training=training),))


def with_curves(scores, *, name="some", dataset="cars196", steps=7, **more):
    """An experiment whose runs have the precision@1 in `scores` after their epochs, by method and run."""
    records, trainings, curves = [], {}, {}
    for method, runs in scores.items():
        for run, after_epochs in enumerate(runs):
            record = _run(name, method, run, after_epochs[-1], dataset)
            records.append(record)
            (spec,) = record.specs
            key = spec.fingerprint
            iterations = [steps * epoch for epoch in range(len(after_epochs) + 1)]
            points = zip(iterations, [0.01, *after_epochs], strict=True)
            curves[key] = TestCurve(fingerprint=key, points=tuple(_point(at, score) for at, score in points))
            validations = tuple(
                CurvePoint(iteration=at, map_at_r=None, r_precision=None, precision_at_1=None, loss=None)
                for at in iterations
            )
            trainings[key] = (spec, some_result(spec, curve=validations))
    settings = {**PAPER, "methods": list(scores), "dataset": {"name": dataset}}
    summary = some_summary(methods={key: key.upper() for key in scores}, reproductions=3, settings=settings)
    return Material(name, MeasuredExperiment(summary, tuple(records), trainings, curves), **more)


def _point(iteration, score):
    return TestPoint(
        iteration=iteration, scores=Scores(precision_at_1=score, r_precision=score / 2, map_at_r=score / 4)
    )


def put_in_store(store, material):
    """Store an experiment under its name, as a finished run leaves it."""
    measured = material.measured
    identity = f"id of {material.name}"
    store.put_experiment(identity, material.name, measured.summary)
    for key, (_, result) in measured.trainings.items():
        # All trainings here have one spec, so they are kept under the names that their runs have for them.
        store.database.put("trainings", fingerprint=key, content=result.model_dump_json())
    for curve in measured.test_curves.values():
        store.put_test_curve(curve)
    for record in measured.records:
        store.put_run(record)
        store.enlist(identity, record.method, record)
