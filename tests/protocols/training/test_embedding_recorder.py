"""Recorded embeddings: those of the model at the right moment, in a training that does not notice it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from losses.ccp import ball
from protocols.datasets.dataset import Dataset
from protocols.metrics.covering import class_distance, covering_radius
from protocols.training.embedding_recorder import EmbeddingRecorder
from protocols.training.train_fold import train_fold
from protocols.trunks.embed import embed
from protocols.trunks.embedding_model import trained_model
from results.spec.experiment_spec import RecordingSettings
from results.spec.training_spec import Component, MethodSpec
from tests.support.toys import CONTRASTIVE, PROXIES, UNTRAINED, pattern_dataset, same_weights, settings, toy_fold

CCP = MethodSpec(
    name="c2_ccp",
    loss=Component(name="CCPLoss", arguments={"base": "c2", "proxies_per_class": 2, "pool_size": 3, "patience": 2}),
    samples_per_class=2,
)
CPU = torch.device("cpu")


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return pattern_dataset(tmp_path, per_class=6)


@pytest.mark.parametrize("method", [CONTRASTIVE, PROXIES, UNTRAINED, CCP], ids=lambda method: method.name)
def test_a_training_does_not_notice_its_recorder(dataset: Dataset, method: MethodSpec) -> None:
    spec, data = toy_fold(dataset, method, settings(max_epochs=6, lr=0.05))
    recorder = EmbeddingRecorder(RecordingSettings(epochs=(0, 2), problems=True), spec, data)
    plain, watched = train_fold(spec, data), train_fold(spec, data, record=recorder)
    assert same_weights(plain.weights, watched.weights)
    assert plain.result.curve == watched.result.curve
    assert recorder.recording().at_epoch(0) is not None


def test_a_snapshot_has_the_embeddings_and_the_proxies_of_its_epoch(dataset: Dataset) -> None:
    # The checkpoint of a training with a fixed epoch is the model after that epoch.
    spec, data = toy_fold(dataset, PROXIES, settings(validate_every=3))
    classes = (*spec.train_classes, *spec.validation_classes)
    spec = spec.model_copy(update={"train_classes": classes, "validation_classes": (), "checkpoint_epoch": 2})
    everything = dataset.images.of_classes(tuple(range(8)))
    data = type(data)(everything, dataset.images.of_classes(()))
    recorder = EmbeddingRecorder(RecordingSettings(epochs=(1, 2)), spec, data)
    trained = train_fold(spec, data, record=recorder)
    shot = recorder.recording().at_epoch(2)
    assert shot is not None
    expected = embed(trained_model(spec, trained.weights, CPU), data.train, spec.conditions.images, CPU)
    np.testing.assert_allclose(shot.embeddings, torch.nn.functional.normalize(expected).numpy(), atol=1e-6)
    np.testing.assert_array_equal(shot.labels, data.train_targets)
    assert trained.class_vectors is not None
    vectors, owners = trained.class_vectors
    np.testing.assert_allclose(shot.proxies, torch.nn.functional.normalize(vectors).numpy(), atol=1e-6)
    np.testing.assert_array_equal(shot.proxy_labels, owners.numpy())
    assert np.isnan(shot.map_at_r)


def test_the_solution_of_each_problem_is_its_network_with_the_best_validation_score(dataset: Dataset) -> None:
    training = settings(max_epochs=12, lr=0.05)
    spec, data = toy_fold(dataset, CCP, training)
    scores, instances = [], []

    recorder = EmbeddingRecorder(RecordingSettings(images="validation", problems=True), spec, data)

    def watch(end) -> None:
        scores.append(end.map_at_r)
        instances.append(int(end.loss.instance))
        recorder(end)

    train_fold(spec, data, record=watch)
    problems = recorder.recording().problems
    assert len(problems) == max(instances) >= 2
    assert [shot.problem for shot in problems] == list(range(len(problems)))
    for shot in problems:
        first = 0 if shot.problem == 0 else instances.index(shot.problem) + 1
        last = instances.index(shot.problem + 1)
        epochs = range(first, last + 1)
        assert shot.epoch == max(epochs, key=lambda epoch: (scores[epoch], -epoch))
        assert shot.map_at_r == pytest.approx(scores[shot.epoch])
        embeddings, labels = torch.from_numpy(shot.embeddings), torch.from_numpy(shot.labels)
        assert shot.covering_radius == pytest.approx(covering_radius(embeddings, labels))
        assert shot.class_distance == pytest.approx(class_distance(embeddings, labels))


def test_a_problem_has_its_proxies_and_those_of_the_next_problem(dataset: Dataset) -> None:
    spec, data = toy_fold(dataset, CCP, settings(max_epochs=12, lr=0.05))
    picked = []
    recorder = EmbeddingRecorder(RecordingSettings(problems=True), spec, data)

    def watch(end) -> None:
        recorder(end)
        if len(recorder.snapshots) > len(picked):
            picked.append((end.loss.best_proxies.clone(), end.loss.proxies.detach().clone()))

    train_fold(spec, data, record=watch)
    assert len(picked) >= 2
    for shot, (solved, following) in zip(recorder.recording().problems, picked, strict=True):
        np.testing.assert_allclose(shot.proxies, ball(solved).numpy(), atol=1e-6)
        np.testing.assert_allclose(shot.next_proxies, ball(following).numpy(), atol=1e-6)
        assert len(shot.proxy_labels) == len(shot.proxies) == 2 * len(np.unique(shot.labels))
