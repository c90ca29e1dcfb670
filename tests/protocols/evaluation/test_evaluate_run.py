"""Test evaluation: separated, concatenated, and the refusal of models that have seen a test class (section 8)."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

import losses
from losses.plugin import Needs
from protocols.datasets.splits import SplitError, mlrc_split
from protocols.evaluation.evaluate_run import CurveRecorder, embed_test, evaluate_run
from protocols.evaluation.evaluate_run import TestData as DataForTesting
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from protocols.images.samples import EvaluationCrops
from protocols.jobs import EvaluateJob
from protocols.metrics.metric_registry import measure
from protocols.metrics.retrieval import normalized
from protocols.training.build_method import RefusedError, normalization_of
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel, embed_crops
from protocols.users_code.sources import hashed_name
from results.records.records import Event, RunRecord, Scores, run_fingerprint
from results.records.records import TestCurve as Curve
from results.spec.component import Component
from results.spec.method import Method
from tests.support.sample_records import evaluation_of, some_result
from tests.support.toys import (
    CONTRASTIVE,
    IMAGES,
    PROXIES,
    UNTRAINED,
    pattern_dataset,
    same_weights,
    settings,
    toy_fold,
)


class _Ball(losses.XBMLoss):
    needs = Needs(normalization="ball")


class Evaluated(NamedTuple):
    job: EvaluateJob
    weights: list[dict[str, Tensor]]
    data: DataForTesting
    embeddings: list[np.ndarray]


@pytest.fixture
def dataset(tmp_path):
    # As many images as that scores of a random network are no round numbers.
    return pattern_dataset(tmp_path, per_class=6)


ODD = Event(kind="no gain", fold=1)


def _reproduction(dataset, method=CONTRASTIVE, size=8):
    """Four networks with random weights instead of trained ones."""
    specs, weights, embeddings = [], [], []
    data = data_for_testing(dataset, mlrc_split(dataset.n_classes))
    for fold in range(4):
        spec, _ = toy_fold(dataset, method, fold=fold, embedding_size=size, seed=fold)
        torch.manual_seed(fold)
        model = EmbeddingModel(spec.conditions.trunk, size)
        specs.append(spec)
        weights.append({key: value.clone() for key, value in model.state_dict().items()})
        crops = EvaluationCrops(data.images, IMAGES, torch.device("cpu"))
        embeddings.append(embed_crops(model, crops).double().numpy())
    hyperparameters = {"loss.neg_margin": 0.5}
    job = evaluation_of(*specs, run=3, seed=17)
    job = replace(job, hyperparameters=hyperparameters, choice_events=(ODD,))
    return Evaluated(job, weights, data, embeddings)


def _one_query(vectors, labels, i):
    others = np.flatnonzero(np.arange(len(labels)) != i)
    order = others[np.argsort(((vectors[others] - vectors[i]) ** 2).sum(1), kind="stable")]
    relevant = int((labels[others] == labels[i]).sum())
    right = (labels[order] == labels[i])[:relevant]
    precision = right.cumsum() / np.arange(1, relevant + 1)
    return {
        "precision_at_1": float(right[0]),
        "r_precision": float(right.mean()),
        "map_at_r": float((right * precision).mean()),
    }


def _numpy_scores(vectors, labels):
    rows = [_one_query(vectors, labels, i) for i in range(len(labels))]
    return Scores(**{name: float(np.mean([row[name] for row in rows])) for name in rows[0]})


def _unit(vectors):
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _ball(vectors):
    return np.asarray(vectors / np.maximum(1, np.linalg.norm(vectors, axis=1, keepdims=True)))


def _assert_equal(scores, expected):
    assert scores.model_dump() == pytest.approx(expected.model_dump(), abs=1e-6)


def test_separated_is_the_mean_of_the_folds_own_scores(dataset):
    job, weights, data, embeddings = _reproduction(dataset)
    record = evaluate_run(job, weights, data)
    labels = data.images.labels
    own = [_numpy_scores(_unit(vectors), labels) for vectors in embeddings]
    assert len({score.map_at_r for score in own}) == 4
    for scores, expected in zip(record.fold_scores, own, strict=True):
        _assert_equal(scores, expected)
    mean = {key: np.mean([score.model_dump()[key] for score in own]) for key in own[0].model_dump()}
    assert record.separated.model_dump() == pytest.approx(mean, abs=1e-6)


def test_concatenated_is_normalised_joined_and_normalised_again(dataset):
    job, weights, data, embeddings = _reproduction(dataset)
    # Networks of very different scales: without the first normalisation the last one would decide alone.
    for factor, state in enumerate(weights):
        for key in ("embedder.weight", "embedder.bias"):
            state[key] = state[key] * 100**factor
    record = evaluate_run(job, weights, data)
    joint = _unit(np.concatenate([_unit(vectors) for vectors in embeddings], axis=1))
    assert joint.shape == (48, 32)
    expected = _numpy_scores(joint, data.images.labels)
    _assert_equal(record.concatenated, expected)
    last_alone = _numpy_scores(_unit(embeddings[-1]), data.images.labels)
    assert expected.map_at_r != pytest.approx(last_alone.map_at_r, abs=1e-3)


def test_ball_joins_raw_embeddings(dataset, monkeypatch):
    monkeypatch.setattr(losses, "BallLoss", _Ball, raising=False)
    method = Method(name="ball", loss=Component(name="BallLoss"))
    job, weights, data, embeddings = _reproduction(dataset, method)
    assert normalization_of(job.specs[0]) == "ball"
    for state in weights:
        for key in ("embedder.weight", "embedder.bias"):
            state[key] = state[key] * 1.5
    vectors = [1.5 * part for part in embeddings]
    norms = np.concatenate([np.linalg.norm(part, axis=1) for part in vectors])
    assert (norms < 1).any()
    assert (norms > 1).any()
    record = evaluate_run(job, weights, data)
    labels = data.images.labels
    _assert_equal(record.concatenated, _numpy_scores(_ball(np.concatenate(vectors, axis=1)), labels))
    for scores, part in zip(record.fold_scores, vectors, strict=True):
        _assert_equal(scores, _numpy_scores(_ball(part), labels))
    assert record.fold_scores != evaluate_run(_reproduction(dataset).job, weights, data).fold_scores


@pytest.mark.parametrize("fold", [0, 3])
@pytest.mark.parametrize("part", ["train_classes", "validation_classes"])
def test_a_model_that_has_seen_a_test_class_is_refused(dataset, fold, part):
    job, weights, data, _ = _reproduction(dataset)
    specs = list(job.specs)
    seen = (*getattr(specs[fold], part), (11, 12))
    specs[fold] = specs[fold].changed(**{part: seen})
    with pytest.raises(SplitError, match=f"fold {fold}: test class 11 was used for training or validation"):
        evaluate_run(evaluation_of(*specs), weights, data)
    with pytest.raises(SplitError, match="test class 11"):
        CurveRecorder(specs[fold], data)


def test_the_record_says_what_was_tested(dataset):
    job, weights, data, _ = _reproduction(dataset)
    record = evaluate_run(job, weights, data)
    assert record.fingerprint == job.fingerprint
    assert record.fingerprint == run_fingerprint(tuple(spec.fingerprint for spec in job.specs))
    assert record.fold_fingerprints == tuple(spec.fingerprint for spec in job.specs)
    assert (record.protocol, record.method, record.run, record.seed) == ("mlrc", "contrastive", 3, 17)
    assert (record.dataset, record.data_fingerprint) == ("patterns", dataset.fingerprint)
    assert record.hyperparameters == {"loss.neg_margin": 0.5}
    assert (record.dimensions, record.test_classes, record.test_images) == (8, 8, 48)
    assert record.events == (ODD,)
    assert record.wall_time > 4 * 2.5
    assert record.steps == 4 * 200
    assert record.metrics_separated == record.metrics_concatenated == {}
    assert RunRecord.model_validate_json(record.model_dump_json()) == record


def _class_means(vectors, labels):
    """Scores of every class's queries, each query by itself against all others."""
    means = []
    for label in np.unique(labels):
        rows = [_one_query(vectors, labels, i) for i in np.flatnonzero(labels == label)]
        means.append({name: float(np.mean([row[name] for row in rows])) for name in rows[0]})
    return means


def test_scores_of_every_class(dataset):
    job, weights, data, embeddings = _reproduction(dataset)
    kept = evaluate_run(job, weights, data).class_scores
    labels = data.images.labels
    assert kept.queries == (6,) * 8
    own = [_class_means(_unit(vectors), labels) for vectors in embeddings]
    joint = _class_means(_unit(np.concatenate([_unit(vectors) for vectors in embeddings], axis=1)), labels)
    assert len({scores["map_at_r"] for scores in joint}) > 4
    for rank in range(8):
        mean = {name: np.mean([fold[rank][name] for fold in own]) for name in joint[rank]}
        assert kept.separated[rank].model_dump() == pytest.approx(mean, abs=1e-6)
        assert kept.concatenated[rank].model_dump() == pytest.approx(joint[rank], abs=1e-6)
    for scores in (*kept.separated, *kept.concatenated):
        assert all(value == round(value, 6) for value in scores.model_dump().values())


def test_further_metrics_separated_and_concatenated(dataset):
    job, weights, data, embeddings = _reproduction(dataset)
    names = ("recall@2", "nmi", "density", "map@1000")
    asked = replace(job, metrics=names)
    record = evaluate_run(asked, weights, data)
    labels = torch.from_numpy(data.images.labels)
    parts = [torch.from_numpy(_unit(vectors)).float() for vectors in embeddings]
    own = [measure(names, part, labels, None) for part in parts]
    joint = measure(names, normalized(torch.cat(parts, dim=1)), labels, None)
    assert tuple(record.metrics_separated) == tuple(record.metrics_concatenated) == names
    for name in names:
        mean = sum(scores[name] for scores in own) / 4
        assert record.metrics_separated[name] == pytest.approx(mean, abs=1e-5), name
        assert record.metrics_concatenated[name] == pytest.approx(joint[name], abs=1e-5), name
        assert mean != pytest.approx(joint[name], abs=1e-4)
    assert (
        record.fingerprint == asked.fingerprint == run_fingerprint(record.fold_fingerprints, names) != job.fingerprint
    )
    plain = evaluate_run(job, weights, data)
    assert (record.separated, record.concatenated) == (plain.separated, plain.concatenated)
    assert RunRecord.model_validate_json(record.model_dump_json()) == record


def test_an_unknown_metric_is_refused_before_anything_is_embedded(dataset):
    job, weights, data, _ = _reproduction(dataset)
    with pytest.raises(ValueError, match="metric 'recal' is not known"):
        evaluate_run(replace(job, metrics=("recal",)), weights[:1], data)


@pytest.mark.usefixtures("forked_processes")
def test_a_users_metric_that_fails_on_these_embeddings_is_refused(dataset, tmp_path):
    (tmp_path / "own.py").write_text("def odd(embeddings, labels):\n    return 1 / (len(labels) - 48)\n")
    job, weights, data, _ = _reproduction(dataset)
    with pytest.raises(RefusedError, match=r"own\.py, line 2: ZeroDivisionError"):
        evaluate_run(replace(job, metrics=(hashed_name(f"{tmp_path}/own.py:odd"),)), weights, data)


def test_queries_are_compared_with_the_gallery_alone(dataset):
    job, weights, data, embeddings = _reproduction(dataset)
    is_query = np.arange(48) % 3 == 0
    record = evaluate_run(replace(job, metrics=("recall@2",)), weights, replace(data, is_query=is_query))
    labels = data.images.labels
    joint = _unit(np.concatenate([_unit(vectors) for vectors in embeddings], axis=1))
    for scores, vectors in ((record.concatenated, joint), (record.fold_scores[1], _unit(embeddings[1]))):
        rows = []
        for i in np.flatnonzero(is_query):
            candidates = np.append(np.flatnonzero(~is_query), i)
            rows.append(_one_query(vectors[candidates], labels[candidates], len(candidates) - 1))
        expected = {name: np.mean([row[name] for row in rows]) for name in rows[0]}
        assert scores.model_dump() == pytest.approx(expected, abs=1e-6)
    assert record.class_scores.queries == (2,) * 8
    assert record.test_images == 48
    whole = evaluate_run(job, weights, data)
    assert record.concatenated.map_at_r != pytest.approx(whole.concatenated.map_at_r, abs=1e-4)
    assert 0 < record.metrics_concatenated["recall@2"] <= 1


def _settled(dataset, epoch=1):
    """A model of an epoch of 5, and the random weights of another network for its last epoch."""
    job, weights, data, _ = _reproduction(dataset)
    spec = job.specs[0].changed(validation_classes=(), checkpoint_epoch=epoch)
    spec = spec.with_conditions(training=spec.conditions.training.model_copy(update={"max_epochs": 5}))
    return (
        replace(job, trainings=(some_result(spec, best_iteration=40 * epoch),), choosers=job.trainings[:2]),
        weights,
        data,
    )


def test_the_last_epochs_model_is_scored_beside_that_of_the_chosen_one(dataset):
    job, weights, data = _settled(dataset)
    record = evaluate_run(job, weights[:1], data, last_weights=weights[1:2])
    assert record.last_epoch == evaluate_run(job, weights[1:2], data).separated
    assert record.last_epoch != record.separated == evaluate_run(job, weights[:1], data).separated
    assert record.chosen_by == job.chosen_by
    untrained = job.trainings[0].model_copy(update={"iterations": 0, "best_iteration": 0})
    assert evaluate_run(replace(job, trainings=(untrained,)), weights[:1], data, last_weights=[None]).last_epoch is None
    assert RunRecord.model_validate_json(record.model_dump_json()) == record


def test_a_collapsed_model_scores_nothing_and_is_named(dataset):
    job, weights, data, _ = _reproduction(dataset)
    weights[1] = {**weights[1], "embedder.weight": torch.zeros_like(weights[1]["embedder.weight"])}
    record = evaluate_run(job, weights, data)
    assert set(record.fold_scores[1].model_dump().values()) == {0.0}
    assert record.fold_scores[0].map_at_r > 0
    assert record.events[-1] == Event(kind="collapsed", fold=1)


def test_embeddings_of_zeros_are_wrong_and_their_model_is_named(dataset, monkeypatch):
    job, weights, data, _ = _reproduction(dataset)
    embedded = embed_test(job.specs, weights, data, torch.device("cpu"))
    embedded.by_model[1][:3] = 0
    whole = evaluate_run(job, weights, data)
    monkeypatch.setattr("protocols.evaluation.evaluate_run.embed_test", lambda *_: embedded)
    record = evaluate_run(job, weights, data)
    assert record.events == (*whole.events, Event(kind="zeros", fold=1))
    assert record.fold_scores[1].precision_at_1 < whole.fold_scores[1].precision_at_1


@pytest.mark.parametrize("method", [CONTRASTIVE, PROXIES, UNTRAINED], ids=lambda method: method.name)
def test_a_training_does_not_notice_its_recorder(dataset, method):
    spec, data = toy_fold(dataset, method, settings())
    recorder = CurveRecorder(spec, data_for_testing(dataset, mlrc_split(dataset.n_classes)))
    plain, recorded = train_fold(spec, data), train_fold(spec, data, observe=recorder)
    assert same_weights(plain.weights, recorded.weights)
    assert plain.result.curve == recorded.result.curve
    assert plain.result.best_map_at_r == recorded.result.best_map_at_r
    curve = recorder.curve()
    assert curve.fingerprint == spec.fingerprint
    assert [point.iteration for point in curve.points] == [point.iteration for point in plain.result.curve]
    assert Curve.model_validate_json(curve.model_dump_json()) == curve


def test_the_point_of_the_checkpoint_is_the_evaluations_score(dataset):
    spec, data = toy_fold(dataset, CONTRASTIVE, settings())
    tests = data_for_testing(dataset, mlrc_split(dataset.n_classes))
    is_query = np.arange(len(tests.images)) % 2 == 0
    for tested in (tests, replace(tests, is_query=is_query)):
        recorder = CurveRecorder(spec, tested)
        trained = train_fold(spec, data, observe=recorder)
        job = EvaluateJob((trained.result,), "mlrc", {}, 0, 1)
        record = evaluate_run(job, [trained.weights], tested)
        point = next(p for p in recorder.curve().points if p.iteration == trained.result.best_iteration)
        assert point.scores == record.separated
        assert len({p.scores.map_at_r for p in recorder.curve().points}) > 1


def test_a_diverged_model_leaves_no_point(dataset):
    spec, _ = toy_fold(dataset)
    recorder = CurveRecorder(spec, data_for_testing(dataset, mlrc_split(dataset.n_classes)))
    model = EmbeddingModel(spec.conditions.trunk, spec.conditions.embedding_size)
    recorder(model, 0)
    with torch.no_grad():
        next(iter(model.parameters())).fill_(torch.nan)
    recorder(model, 2)
    assert [point.iteration for point in recorder.curve().points] == [0]
