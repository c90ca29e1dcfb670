"""Experiments made by hand for figures: sweeps of a hyperparameter."""

from reports.page.material import Material
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from results.values import fingerprint_of
from tests.support.published_world import PAPER
from tests.support.sample_records import changed_run, put_experiment, some_plan, some_run


def sweep(points, *, of="proxy_anchor", title="Proxy-Anchor", name="some", dataset="cars196", settings=None, **more):
    """An experiment with a row for each pair of values and scores of its runs, as a sweep in its file gives them."""
    records, titles, variants = [], {}, []
    for values, scores in points:
        key = "__".join([of, *(f"{target}_{value}" for target, value in values.items())])
        titles[key] = ", ".join([title, *(f"{target} {value}" for target, value in values.items())])
        variants.append({"of": of, "key": key, "title": titles[key], "set": values})
        records += [_run(name, key, run, score, dataset) for run, score in enumerate(scores)]
    settings = {**PAPER, "variants": variants, "dataset": {"name": dataset}, **(settings or {})}
    plan = some_plan(methods=titles, reproductions=3, settings=settings)
    return Material(name, answer_of(MeasuredExperiment(plan, tuple(records))), **more)


def _run(name, key, run, score, dataset):
    fields = {"protocol": "standard", "dataset": dataset, "iterations": 10, "hyperparameters": {}}
    record = some_run(key, run, score, fold_fingerprints=(f"{name}-{key}-{run}",), **fields)
    (spec,) = record.specs
    training = spec.conditions.training.model_copy(update={"iterations_per_epoch": None, "validate_every": 1})
    return changed_run(record, specs=(spec.with_conditions(training=training),))


def put_in_store(store, material):
    """Store an experiment under its name, as a finished run leaves it."""
    measured = material.measured
    put_experiment(store, fingerprint_of(material.name), material.name, measured.plan, measured.records)
    for key, result in measured.trainings.items():
        # All trainings here have one spec, so they are kept under the names that their runs have for them.
        store.database.put("trainings", fingerprint=key, content=result.model_dump_json())
    for curve in measured.test_curves.values():
        store.put_test_curve(curve)
