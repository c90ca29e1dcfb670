"""What peeking at test scores is worth, by hand."""

from dataclasses import replace

import pytest
from scipy import stats

from results.findings.experiment import answer_of
from results.findings.peeking import peeking
from results.records import records
from results.records.records import Scores
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import changed_run, some_plan, some_result, some_run


def peeked(measured, **how):
    return peeking(answer_of(measured), measured, **how)


def curve_of(name, points):
    return records.TestCurve(
        fingerprint=name,
        points=tuple(
            records.TestPoint(
                iteration=iteration, scores=Scores(precision_at_1=1 - value, r_precision=value / 2, map_at_r=value)
            )
            for iteration, value in points
        ),
    )


def world(runs, best_iteration=200):
    """Runs of one method; each of them a list of folds, each of those its test scores by iteration."""
    kept, trainings, curves = [], {}, {}
    for number, folds in enumerate(runs):
        record = some_run(run=number, fold_fingerprints=tuple(f"fold {fold}" for fold in range(len(folds))))
        kept.append(record)
        for spec, points in zip(record.specs, folds, strict=True):
            trainings[spec.fingerprint] = result_of(spec, best_iteration)
            curves[spec.fingerprint] = curve_of(spec.fingerprint, points)
    return MeasuredExperiment(some_plan(), tuple(kept), trainings, curves)


def result_of(spec, best_iteration):
    """A training with this checkpoint; a best iteration of 0 is that of a network that is not trained."""
    if best_iteration:
        return some_result(spec, best_iteration=best_iteration)
    result = some_result(spec, best_iteration=0, stopped_by="untrained", iterations=0)
    return result.model_copy(update={"curve": result.curve[:1]})


RISING = [(0, 0.1), (100, 0.3), (200, 0.4), (300, 0.6)]
FALLING = [(0, 0.9), (100, 0.5), (200, 0.4), (300, 0.3)]


def test_gains_by_hand():
    (found,) = peeked(world([[RISING, FALLING], [RISING, RISING], [FALLING, FALLING]]))
    assert (found.method, found.n, found.left_out) == ("triplet", 3, 0)
    assert found.honest.mean == pytest.approx(0.4)
    # The untrained network's 0.9 is no trained checkpoint.
    gains = [(0.2 + 0.1) / 2, 0.2, 0.1]
    assert found.gain.mean == pytest.approx(sum(gains) / 3)
    assert found.peeked.mean == pytest.approx(0.4 + sum(gains) / 3)
    expected = stats.t.interval(0.95, 2, loc=0.15, scale=stats.sem(gains))
    assert (found.gain.low, found.gain.high) == pytest.approx(expected)


def test_another_metric_peeks_at_itself():
    (found,) = peeked(world([[RISING, FALLING]] * 2), metric="precision_at_1")
    assert found.honest.mean == pytest.approx(0.6)
    assert found.peeked.mean == pytest.approx(0.7)
    with pytest.raises(ValueError, match="not nmi"):
        peeked(world([]), metric="nmi")


def test_the_untrained_network_counts_where_it_is_the_model():
    (found,) = peeked(world([[[(0, 0.7)]], [[(0, 0.8)]]], best_iteration=0))
    assert found.gain.mean == 0.0
    assert found.honest.mean == pytest.approx(0.75)


def test_the_honest_score_of_a_diverged_training_is_that_of_its_checkpoint_before():
    measured = world([[FALLING], [FALLING]], best_iteration=100)
    diverged = {"stopped_by": "nan", "reason": "loss not finite at iteration 301", "iterations": 301}
    for name, result in measured.trainings.items():
        measured.trainings[name] = result.model_copy(update=diverged)
    (found,) = peeked(measured)
    assert (found.honest.mean, found.peeked.mean, found.gain.mean) == (0.5, 0.5, 0.0)


def test_runs_that_were_not_tested_all_along_are_left_out():
    measured = world([[RISING, FALLING], [RISING, RISING], [RISING, RISING], [RISING, RISING]])
    names = [record.fold_fingerprints for record in measured.records]
    del measured.test_curves[names[1][1]]
    del measured.trainings[names[2][0]]
    measured.test_curves[names[3][0]] = curve_of(names[3][0], RISING[:2])
    (found,) = peeked(measured)
    assert (found.n, found.left_out) == (1, 3)
    assert found.gain.mean == pytest.approx(0.15)
    assert found.gain.half_width is None
    assert peeked(MeasuredExperiment(some_plan(), measured.records)) == []


def test_a_gain_that_is_zero_because_all_trainings_were_cut_off_is_known():
    (rising,) = peeked(world([[RISING[:3], RISING[:3]]]))
    assert (rising.cut_off, rising.gain.mean, rising.nothing_to_choose) == (True, 0.0, True)
    # A peak of the test scores before the end is a gain also of a training that was cut off.
    (falling,) = peeked(world([[RISING[:3], FALLING[:3]]]))
    assert (falling.cut_off, falling.nothing_to_choose) == (True, False)
    (stopped,) = peeked(world([[RISING[:2]]], best_iteration=100))
    assert (stopped.cut_off, stopped.gain.mean, stopped.nothing_to_choose) == (False, 0.0, False)


def test_methods_come_in_their_order():
    measured = world([[RISING], [FALLING]])
    record = measured.records[1]
    renamed = changed_run(record, method="margin")
    trainings, curves = dict(measured.trainings), dict(measured.test_curves)
    for spec, old in zip(renamed.specs, record.fold_fingerprints, strict=True):
        trainings[spec.fingerprint] = some_result(spec)
        curves[spec.fingerprint] = curve_of(
            spec.fingerprint, [(p.iteration, p.scores.map_at_r) for p in curves[old].points]
        )
    changed = replace(measured, records=(measured.records[0], renamed), trainings=trainings, test_curves=curves)
    found = peeked(changed)
    assert [one.method for one in found] == ["triplet", "margin"]
