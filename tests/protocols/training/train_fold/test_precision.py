"""The precision of a training: where it reaches, how far it may move a result, and what it must leave alone."""

import pytest
import torch

from protocols.datasets.splits import mlrc_split
from protocols.evaluation.evaluate_run import evaluate_run
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from protocols.machine.torch_state import use_precision
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from tests.support.sample_records import evaluation_of
from tests.support.toys import CONTRASTIVE, IMAGES, PROXIES, UNTRAINED, pattern_dataset, settings, toy_fold

# On maps of 1 x 1 the CPU's bfloat16 kernels leave gradients of a 3 x 3 kernel's outer weights unset.
IMAGES_16 = IMAGES.model_copy(update={"crop": 16})


@pytest.fixture
def dataset(tmp_path):
    return pattern_dataset(tmp_path, per_class=6, side=16)


def _sixteen_steps(precision):
    return settings(lr=1e-4, max_epochs=8, validate_every=8, precision=precision)


def _trained(dataset, method, precision):
    return train_fold(*toy_fold(dataset, method, _sixteen_steps(precision), images=IMAGES_16))


def _flat(trained):
    return torch.cat([value.flatten() for value in trained.weights.values()])


@pytest.mark.parametrize("method", [CONTRASTIVE, PROXIES], ids=lambda method: method.name)
def test_a_mixed_training_goes_where_the_exact_one_goes(dataset, method):
    exact, mixed = _trained(dataset, method, "float32"), _trained(dataset, method, "amp")
    start = _flat(train_fold(*toy_fold(dataset, method, settings(lr=0.0, max_epochs=1), images=IMAGES_16)))
    ways = [_flat(trained) - start for trained in (exact, mixed)]
    assert torch.nn.functional.cosine_similarity(*ways, dim=0) > 0.97
    assert not torch.equal(*ways)
    assert {value.dtype for value in mixed.weights.values()} == {torch.float32}
    assert mixed.result.curve[-1].loss == pytest.approx(exact.result.curve[-1].loss, rel=0.03)


def _arithmetic(model):
    backends = torch.backends
    kinds = backends.cuda.matmul.fp32_precision, backends.cudnn.conv.fp32_precision
    return model.precision, torch.is_autocast_enabled("cpu"), *kinds


def test_the_precision_reaches_training_and_test_evaluation(dataset, monkeypatch):
    seen = set()
    forward = EmbeddingModel.forward

    def spy(model, images):
        model.trunk.register_forward_hook(lambda *_: seen.add(_arithmetic(model)))
        return forward(model, images)

    monkeypatch.setattr(EmbeddingModel, "forward", spy)
    for precision, *kinds in (("float32", "ieee", "tf32"), ("ieee", "ieee", "ieee"), ("amp", "tf32", "tf32")):
        seen.clear()
        expected = (precision, precision == "amp", *kinds)
        spec, data = toy_fold(dataset, UNTRAINED, settings(precision=precision), images=IMAGES_16)
        weights = train_fold(spec, data).weights
        assert seen == {expected}
        seen.clear()
        use_precision("amp" if precision == "float32" else "float32")
        job = evaluation_of(spec)
        evaluate_run(job, [weights], data_for_testing(dataset, mlrc_split(dataset.n_classes)))
        assert seen == {expected}


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "ieee", "amp"])
def test_a_gpu_goes_there_too(dataset, precision):
    exact = _trained(dataset, CONTRASTIVE, "float32").result
    spec, data = toy_fold(dataset, CONTRASTIVE, _sixteen_steps(precision), images=IMAGES_16)
    result = train_fold(spec, data, device="cuda").result
    assert result.provenance.math["CUDA graphs"] == "True"
    assert result.curve[-1].loss == pytest.approx(exact.curve[-1].loss, rel=0.03)
