"""The values of runs by method and search, which statistics take."""

from results.records.frame import scores_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import scores, some_plan, some_run


def experiment(*records):
    return MeasuredExperiment(some_plan(title="Mine"), records)


def test_a_run_has_every_value_once():
    further = {"metrics_separated": {"recall@2": 0.6}, "metrics_concatenated": {"recall@2": 0.7}}
    found = list(scores_of(some_run(separated=0.4, iterations=8, last_epoch=scores(0.3), **further)))
    values = {(embeddings, metric): value for embeddings, metric, value in found}
    assert len(values) == len(found) == 3 * 3 + 2 + 2
    assert values["separated", "precision_at_1"] == 0.4
    assert values["concatenated", "map_at_r"] == scores(0.5).map_at_r
    assert (values["separated", "recall@2"], values["concatenated", "recall@2"]) == (0.6, 0.7)
    assert values["last_epoch", "r_precision"] == scores(0.3).r_precision
    assert values["concatenated", "total_training_steps"] == 2.0  # of each of the four models


def of_score(measured, metric, embeddings):
    """Method, search, run and value of each row with a score."""
    frame = measured.frame[(measured.frame["metric"] == metric) & (measured.frame["embeddings"] == embeddings)]
    return [tuple(row) for row in frame[["method", "search", "run", "value"]].itertuples(index=False)]


def test_the_frame_has_a_row_for_every_score_in_the_order_of_the_runs():
    records = [some_run("triplet", 1, 0.5), some_run("margin", 0, 0.4), some_run("triplet", 0, 0.2, search=1)]
    expected = [("triplet", 0, 1, 0.5), ("margin", 0, 0, 0.4), ("triplet", 1, 0, 0.2)]
    assert of_score(experiment(*records), "precision_at_1", "separated") == expected
    assert set(experiment(*records).frame["dataset"]) == {records[0].dataset}


def test_runs_without_a_metric_are_left_out():
    measured = experiment(some_run(run=0), some_run(run=1, metrics_separated={"nmi": 0.5}, iterations=4))
    assert of_score(measured, "nmi", "separated") == [("triplet", 0, 1, 0.5)]
    assert of_score(measured, "nmi", "concatenated") == of_score(measured, "map_at_r", "last_epoch") == []
    assert of_score(measured, "total_training_steps", "separated") == [("triplet", 0, 1, 1.0)]
