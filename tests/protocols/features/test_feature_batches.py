"""Batches of features: the rows that were asked for, whether they are kept in memory or not."""

import pickle

import numpy as np
import pytest
import torch

from protocols.images import samples
from protocols.images.samples import FeatureSource
from tests.support.feature_files import opened_features, some_features, write_features

CPU = torch.device("cpu")
LABELS = np.repeat(np.arange(16), 4)


@pytest.fixture
def features(tmp_path):
    return opened_features(write_features(tmp_path / "data", some_features(), LABELS), tmp_path / "cache").images


@pytest.fixture(params=["kept in memory", "read for each batch"])
def room(request, monkeypatch):
    if request.param == "read for each batch":
        monkeypatch.setattr(samples, "MEMORY_BYTES", 800)


def test_a_batch_has_the_rows_that_were_asked_for(features, room):
    chosen = features.of_classes((2, 5))
    source = FeatureSource(chosen, CPU)
    rows = np.asarray([7, 0, 3])
    batch = source.training_batch(rows, torch.Generator())
    assert batch.dtype == torch.float32
    assert np.array_equal(batch.numpy(), some_features()[[23, 8, 11]])


def test_an_evaluation_gets_all_rows_in_order(features, room):
    chosen = features.of_classes((1, 4, 9))
    batches = list(FeatureSource(chosen, CPU).batches())
    assert np.array_equal(torch.cat(batches).numpy(), some_features()[np.isin(LABELS, (1, 4, 9))])


def test_a_selection_gives_no_access_to_other_rows(features):
    chosen = features.of_classes((0,))
    assert len(chosen) == 4
    with pytest.raises(IndexError):
        chosen.take(np.asarray([4]))


def test_only_the_path_is_sent_to_other_processes(features):
    features.take(np.asarray([0]))
    sent = pickle.dumps(features)
    assert len(sent) < 1000 + features.rows.nbytes + features.labels.nbytes
    assert np.array_equal(pickle.loads(sent).take(np.asarray([3])), some_features()[[3]])
