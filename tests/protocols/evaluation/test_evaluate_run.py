"""Test evaluation: separated, concatenated, and the refusal of models that have seen a test class (section 8)."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

import losses
from losses.plugin import Needs
from protocols.datasets.dataset import Dataset
from protocols.evaluation.evaluate_run import concatenated, evaluate_run, normalization_of
from protocols.evaluation.test_data import TestData as DataForTesting
from protocols.evaluation.test_data import test_data as data_for_testing
from protocols.jobs import EvaluateJob
from protocols.metrics.metric_registry import measure
from protocols.metrics.retrieval import normalized, retrieval_scores
from protocols.splits import SplitError, mlrc_split
from protocols.trunks.embed import embed
from protocols.trunks.embedding_model import EmbeddingModel
from results.records.records import RunRecord, Scores, run_fingerprint
from results.spec.training_spec import Component, MethodSpec
from tests.support.sample_records import some_spec
from tests.support.toys import CONTRASTIVE, IMAGES, UNTRAINED, pattern_dataset, toy_fold


class _Ball(losses.XBMLoss):
    needs = Needs(normalization="ball")


class Evaluated(NamedTuple):
    job: EvaluateJob
    weights: list[dict[str, Tensor]]
    data: DataForTesting
    embeddings: list[np.ndarray]


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    # As many images as that scores of a random network are no round numbers.
    return pattern_dataset(tmp_path, per_class=6)


def _reproduction(dataset: Dataset, method: MethodSpec = CONTRASTIVE, size: int | None = 8) -> Evaluated:
    """Four networks with random weights instead of trained ones."""
    specs, weights, embeddings = [], [], []
    data = data_for_testing(dataset, mlrc_split(dataset.n_classes))
    for fold in range(4):
        spec, _ = toy_fold(dataset, method, fold=fold, embedding_size=size, seed=fold)
        torch.manual_seed(fold)
        model = EmbeddingModel(spec.conditions.trunk, size)
        specs.append(spec)
        weights.append({key: value.clone() for key, value in model.state_dict().items()})
        embeddings.append(embed(model, data.images, IMAGES, torch.device("cpu")).double().numpy())
    hyperparameters: dict[str, Any] = {"loss.neg_margin": 0.5}
    job = EvaluateJob(tuple(specs), "mlrc", hyperparameters, 3, 17, 1000.0, ("fold 1: odd",), 1234)
    return Evaluated(job, weights, data, embeddings)


def _one_query(vectors: np.ndarray, labels: np.ndarray, i: int) -> dict[str, float]:
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


def _numpy_scores(vectors: np.ndarray, labels: np.ndarray) -> Scores:
    rows = [_one_query(vectors, labels, i) for i in range(len(labels))]
    return Scores(**{name: float(np.mean([row[name] for row in rows])) for name in rows[0]})


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _ball(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.maximum(1, np.linalg.norm(vectors, axis=1, keepdims=True)))


def _assert_equal(scores: Scores, expected: Scores) -> None:
    assert scores.model_dump() == pytest.approx(expected.model_dump(), abs=1e-6)


def test_separated_is_the_mean_of_the_folds_own_scores(dataset: Dataset) -> None:
    job, weights, data, embeddings = _reproduction(dataset)
    record = evaluate_run(job, weights, data)
    labels = data.images.labels
    own = [_numpy_scores(_unit(vectors), labels) for vectors in embeddings]
    assert len({score.map_at_r for score in own}) == 4
    for scores, expected in zip(record.fold_scores, own, strict=True):
        _assert_equal(scores, expected)
    mean = {key: np.mean([score.model_dump()[key] for score in own]) for key in own[0].model_dump()}
    assert record.separated.model_dump() == pytest.approx(mean, abs=1e-6)


def test_concatenated_is_normalised_joined_and_normalised_again(dataset: Dataset) -> None:
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


def test_ball_joins_raw_embeddings(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "BallLoss", _Ball, raising=False)
    method = MethodSpec(name="ball", loss=Component(name="BallLoss"))
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


def test_joined_embeddings() -> None:
    one, two = torch.tensor([[3.0, 4.0], [0.3, 0.4]]), torch.tensor([[0.0], [0.5]])
    unit = concatenated([one, two + 1], "unit")
    assert torch.allclose(unit, torch.tensor([[0.6, 0.8, 1.0], [0.6, 0.8, 1.0]]) / 2**0.5)
    ball = concatenated([one, two], "ball")
    assert torch.allclose(ball, torch.tensor([[0.6, 0.8, 0.0], [0.3, 0.4, 0.5]]))
    assert ball.norm(dim=1).max() <= 1 + 1e-6


@pytest.mark.parametrize("name", ["ContrastiveLoss", "ProxyAnchorLoss", "NormalizedSoftmaxLoss", None])
def test_most_methods_are_compared_on_the_unit_sphere(name: str | None) -> None:
    loss = None if name is None else Component(name=name)
    spec = some_spec(method=MethodSpec(name="any", loss=loss))
    assert normalization_of(spec) == "unit"
    assert normalization_of(spec.with_conditions(normalization="ball")) == "ball"


@pytest.mark.parametrize("fold", [0, 3])
@pytest.mark.parametrize("part", ["train_classes", "validation_classes"])
def test_a_model_that_has_seen_a_test_class_is_refused(dataset: Dataset, fold: int, part: str) -> None:
    job, weights, data, _ = _reproduction(dataset)
    specs = list(job.specs)
    seen = (*getattr(specs[fold], part), (11, 12))
    specs[fold] = specs[fold].model_copy(update={part: seen})
    with pytest.raises(SplitError, match=f"fold {fold}: test class 11 was used for training or validation"):
        evaluate_run(replace(job, specs=tuple(specs)), weights, data)


def test_every_fold_needs_its_weights(dataset: Dataset) -> None:
    job, weights, data, _ = _reproduction(dataset)
    with pytest.raises(ValueError, match="shorter"):
        evaluate_run(job, weights[:3], data)


def test_the_record_says_what_was_tested(dataset: Dataset) -> None:
    job, weights, data, _ = _reproduction(dataset)
    record = evaluate_run(job, weights, data)
    assert record.fingerprint == job.fingerprint
    assert record.fingerprint == run_fingerprint(tuple(spec.fingerprint for spec in job.specs))
    assert record.fold_fingerprints == tuple(spec.fingerprint for spec in job.specs)
    assert (record.protocol, record.method, record.run, record.seed) == ("mlrc", "contrastive", 3, 17)
    assert (record.dataset, record.data_fingerprint) == ("patterns", dataset.fingerprint)
    assert record.hyperparameters == {"loss.neg_margin": 0.5}
    assert (record.dimensions, record.test_classes, record.test_images) == (8, 8, 48)
    assert record.flags == ("fold 1: odd",)
    assert record.wall_time > 1000
    assert record.steps == 1234
    assert record.metrics_separated == record.metrics_concatenated == {}
    assert RunRecord.model_validate_json(record.model_dump_json()) == record


def test_an_untrained_trunk_is_tested_with_its_own_dimensions(dataset: Dataset) -> None:
    job, weights, data, embeddings = _reproduction(dataset, UNTRAINED, size=None)
    record = evaluate_run(job, weights, data)
    assert record.dimensions == embeddings[0].shape[1] == 128
    joint = _unit(np.concatenate([_unit(vectors) for vectors in embeddings], axis=1))
    _assert_equal(record.concatenated, _numpy_scores(joint, data.images.labels))


def test_equal_models_make_no_better_ensemble(dataset: Dataset) -> None:
    job, weights, data, _ = _reproduction(dataset)
    record = evaluate_run(job, [weights[0]] * 4, data)
    _assert_equal(record.concatenated, record.separated)
    _assert_equal(record.separated, record.fold_scores[2])


def test_random_numbers_stay_as_they_were(dataset: Dataset) -> None:
    job, weights, data, _ = _reproduction(dataset)
    state = torch.get_rng_state()
    evaluate_run(job, weights, data)
    assert torch.equal(torch.get_rng_state(), state)


def test_embedding_restores_the_mode_and_keeps_the_order(dataset: Dataset) -> None:
    spec, _ = toy_fold(dataset)
    model = EmbeddingModel(spec.conditions.trunk, 8)
    for mode in (True, False):
        model.train(mode)
        embeddings = embed(model, dataset.images, IMAGES, torch.device("cpu"))
        assert model.training == mode
        assert not embeddings.requires_grad
    # 96 images, more than one batch of the network.
    one = dataset.images.of_classes((15,))
    assert torch.allclose(embed(model, one, IMAGES, torch.device("cpu")), embeddings[-6:], atol=1e-6)
    labels = torch.from_numpy(dataset.images.labels)
    assert retrieval_scores(normalized(embeddings), labels).n_queries == 96


def _class_means(vectors: np.ndarray, labels: np.ndarray) -> list[dict[str, float]]:
    """Scores of every class's queries, each query by itself against all others."""
    means = []
    for label in np.unique(labels):
        rows = [_one_query(vectors, labels, i) for i in np.flatnonzero(labels == label)]
        means.append({name: float(np.mean([row[name] for row in rows])) for name in rows[0]})
    return means


def test_scores_of_every_class(dataset: Dataset) -> None:
    job, weights, data, embeddings = _reproduction(dataset)
    kept = evaluate_run(job, weights, data).class_scores
    assert kept is not None
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


def test_classes_weigh_as_many_queries_as_they_have(dataset: Dataset) -> None:
    job, weights, data, _ = _reproduction(dataset)
    # Class 8 loses five of its six images, so that the last one is no query; class 9 loses two.
    keep = np.flatnonzero(~np.isin(np.arange(48), [0, 1, 2, 3, 4, 10, 11]))
    images = replace(data.images, rows=data.images.rows[keep], labels=data.images.labels[keep])
    record = evaluate_run(job, weights, DataForTesting(images))
    kept = record.class_scores
    assert kept is not None
    assert kept.queries == (0, 4, 6, 6, 6, 6, 6, 6)
    assert kept.separated[0] == kept.concatenated[0] == Scores(precision_at_1=0, r_precision=0, map_at_r=0)
    counts = np.array(kept.queries)
    for rows, whole in ((kept.separated, record.separated), (kept.concatenated, record.concatenated)):
        weighted = (counts * [scores.map_at_r for scores in rows]).sum() / counts.sum()
        assert weighted == pytest.approx(whole.map_at_r, abs=1e-6)


def test_further_metrics_separated_and_concatenated(dataset: Dataset) -> None:
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


def test_an_unknown_metric_is_refused_before_anything_is_embedded(dataset: Dataset) -> None:
    job, weights, data, _ = _reproduction(dataset)
    with pytest.raises(ValueError, match="metric 'recal' is not known"):
        evaluate_run(replace(job, metrics=("recal",)), weights[:1], data)


def test_a_single_model_is_the_same_separated_and_concatenated(dataset: Dataset) -> None:
    job, weights, data, _ = _reproduction(dataset)
    one = replace(job, specs=job.specs[:1], metrics=("nmi", "uniformity", "recall@4"))
    record = evaluate_run(one, weights[:1], data)
    assert record.separated == record.concatenated == record.fold_scores[0]
    assert record.metrics_separated == record.metrics_concatenated
    assert record.class_scores is not None
    assert record.class_scores.separated == record.class_scores.concatenated


def test_queries_are_compared_with_the_gallery_alone(dataset: Dataset) -> None:
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
    assert record.class_scores is not None
    assert record.class_scores.queries == (2,) * 8
    assert record.test_images == 48
    whole = evaluate_run(job, weights, data)
    assert record.concatenated.map_at_r != pytest.approx(whole.concatenated.map_at_r, abs=1e-4)
    assert 0 < record.metrics_concatenated["recall@2"] <= 1


def _settled(dataset: Dataset) -> tuple[EvaluateJob, list[dict[str, Tensor]], DataForTesting]:
    """A model of epoch 1 of 3, and the random weights of another network for its last epoch."""
    job, weights, data, _ = _reproduction(dataset)
    changes = {"validation_classes": (), "checkpoint_epoch": 1}
    spec = job.specs[0].model_copy(update=changes)
    return replace(job, specs=(spec,), steps=2, iterations=6, chosen_by=("a", "b")), weights, data


def test_the_last_epochs_model_is_scored_beside_that_of_the_chosen_one(dataset: Dataset) -> None:
    job, weights, data = _settled(dataset)
    record = evaluate_run(job, weights[:1], data, last_weights=weights[1:2])
    assert record.last_epoch == evaluate_run(job, weights[1:2], data).separated
    assert record.last_epoch != record.separated == evaluate_run(job, weights[:1], data).separated
    assert record.chosen_by == ("a", "b")
    assert RunRecord.model_validate_json(record.model_dump_json()) == record


def test_if_the_last_epoch_was_chosen_its_scores_are_those_of_the_model(dataset: Dataset) -> None:
    job, weights, data = _settled(dataset)
    record = evaluate_run(replace(job, steps=6), weights[:1], data, last_weights=[None])
    assert record.last_epoch == record.separated


def test_without_a_model_of_the_last_epoch_there_is_no_score(dataset: Dataset) -> None:
    job, weights, data = _settled(dataset)
    # As for a training that diverged, and for the untrained trunk.
    for steps, iterations in ((2, 6), (0, 6), (0, 0)):
        stopped = replace(job, steps=steps, iterations=iterations)
        assert evaluate_run(stopped, weights[:1], data, last_weights=[None]).last_epoch is None
    validated, weights, data, _ = _reproduction(dataset)
    record = evaluate_run(replace(validated, steps=6, iterations=6), weights, data, last_weights=[None] * 4)
    assert record.last_epoch is None
