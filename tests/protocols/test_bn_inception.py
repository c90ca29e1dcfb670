"""BN-Inception: its keys, its forward pass against the original's, its input format, its weight file.

`golden/bn_inception_state_dict.csv` lists the keys and shapes of the published weights.

`golden/bn_inception_forward.npz` holds what the original network (Cadene/pretrained-models.pytorch at 8aae3d8, float32,
CPU, evaluation mode) makes of weights and images that are drawn anew here: `input_seed` and `input_size` of two images,
their globally average-pooled `gap_features` (2, 1024) and the classifier's `logits` (2, 1000). Each weight comes from
RandomState(crc32(key) % 2**31), as `drawn` says, so that the file of 44 MB is not needed. The tolerance is relative,
1e-4, since the order of summation in a convolution is not fixed.
"""

import csv
import math
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from protocols.trunks import weights
from protocols.trunks.bn_inception import BNInception
from protocols.trunks.build import EmbeddingModel, TrunkError, trunk_entry
from results.specs import TrunkSpec

GOLDEN = Path(__file__).parent.parent / "golden"
NAME = "bn_inception-52deb4733.pth"
PRETRAINED = TrunkSpec(name="bn_inception", weights="imagenet")
RANDOM = TrunkSpec(name="bn_inception", weights="random")


def published_shapes() -> dict[str, tuple[int, ...]]:
    with (GOLDEN / "bn_inception_state_dict.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {r["key"]: () if r["shape"] == "scalar" else tuple(map(int, r["shape"].split("x"))) for r in rows}


def drawn(key: str, shape: tuple[int, ...]) -> Tensor:
    """The golden file's weight of a key."""
    state = np.random.RandomState(zlib.crc32(key.encode()) % 2**31)
    if key.endswith(".num_batches_tracked"):
        return torch.tensor(0)
    if key.endswith((".running_var", "_bn.weight")):
        value = state.uniform(0.5, 1.5, shape)
    elif key.endswith(".weight"):
        value = state.randn(*shape) * math.sqrt(2 / math.prod(shape[1:]))
    else:
        value = 0.1 * state.randn(*shape)
    return torch.from_numpy(np.asarray(value, dtype=np.float32))


@pytest.fixture(scope="module")
def checkpoint() -> dict[str, Tensor]:
    """A full checkpoint, classifier included, with the golden file's weights."""
    return {key: drawn(key, shape) for key, shape in published_shapes().items()}


@pytest.fixture(scope="module")
def file(checkpoint: Mapping[str, Tensor], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / NAME
    torch.save(checkpoint, path)
    return path


@pytest.fixture(scope="module")
def trunk(checkpoint: Mapping[str, Tensor]) -> BNInception:
    trunk = BNInception()
    trunk.load_state_dict({key: value for key, value in checkpoint.items() if not key.startswith("last_linear.")})
    return trunk.eval()


@pytest.fixture(autouse=True)
def no_weights_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BN_INCEPTION_WEIGHTS", raising=False)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))


def _images(side: int = 64) -> Tensor:
    return torch.randint(0, 256, (2, 3, side, side), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def _one_line(error: pytest.ExceptionInfo[TrunkError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


# The network


def test_keys_and_shapes_are_the_published_ones_without_the_classifier() -> None:
    published = [(key, shape) for key, shape in published_shapes().items() if not key.startswith("last_linear.")]
    assert len(published) == 483
    assert [(key, tuple(value.shape)) for key, value in BNInception().state_dict().items()] == published


def test_forward_is_the_originals(trunk: BNInception, checkpoint: Mapping[str, Tensor]) -> None:
    golden = np.load(GOLDEN / "bn_inception_forward.npz")
    state = np.random.RandomState(int(golden["input_seed"]))
    side = int(golden["input_size"])
    bgr = state.randint(0, 256, (2, 3, side, side)) - np.array([104, 117, 128])[:, None, None]
    with torch.no_grad():
        features = trunk(torch.from_numpy(bgr.astype(np.float32)))
        logits = nn.functional.linear(features, checkpoint["last_linear.weight"], checkpoint["last_linear.bias"])
    for ours, key in ((features, "gap_features"), (logits, "logits")):
        theirs = torch.from_numpy(golden[key])
        assert float((ours - theirs).abs().max() / theirs.abs().max()) < 1e-4
        # Single entries come near zero by cancellation; there only an absolute bound means something.
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * float(theirs.abs().max()))


@pytest.mark.parametrize("side", [227, 224])
def test_the_last_map_is_seven_by_seven(trunk: BNInception, side: int) -> None:
    with torch.no_grad():
        last = trunk.feature_map(torch.zeros(1, 3, side, side))
    assert last.shape == (1, 1024, 7, 7)


def test_features_are_the_mean_of_the_last_map(trunk: BNInception) -> None:
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = nn.functional.avg_pool2d(trunk.feature_map(images), 2).flatten(1)
        assert torch.allclose(trunk(images), expected, rtol=1e-5)


# The input


def test_a_red_image_is_bgr_in_0_to_255_less_the_mean() -> None:
    model = EmbeddingModel(RANDOM, 8)
    model.trunk = nn.Identity()
    model.embedder = nn.Identity()
    red = torch.zeros(1, 3, 2, 2, dtype=torch.uint8)
    red[:, 0] = 255
    expected = torch.tensor([0.0 - 104, 0.0 - 117, 255.0 - 128])[None, :, None, None].expand(1, 3, 2, 2)
    assert torch.equal(model(red), expected)
    grey = torch.full((1, 1, 2, 2), 255, dtype=torch.uint8)
    assert model(grey)[0, :, 0, 0].tolist() == [255 - 104, 255 - 117, 255 - 128]


def test_the_model_feeds_the_trunk_so() -> None:
    torch.manual_seed(0)
    model, images = EmbeddingModel(RANDOM, 128).eval(), _images()
    mean = torch.tensor([104.0, 117.0, 128.0])[:, None, None]
    with torch.no_grad():
        expected = model.embedder(model.trunk(images.float()[:, [2, 1, 0]] - mean))
        assert torch.allclose(model(images), expected, rtol=1e-4, atol=1e-4)
    assert isinstance(model.embedder, nn.Linear)
    assert (model.embedder.in_features, model.embedder.out_features) == (1024, 128)


# Batch normalisation


@pytest.mark.parametrize("batch_norm", ["statistics_frozen", "frozen"])
def test_batch_normalisation_in_training(batch_norm: str) -> None:
    torch.manual_seed(0)
    spec = TrunkSpec.model_validate({**RANDOM.model_dump(), "batch_norm": batch_norm})
    model = EmbeddingModel(spec, 8).train()
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(norms) == 69
    assert not any(norm.training for norm in norms)
    before = {key: value.clone() for key, value in model.trunk.state_dict().items()}
    model(_images()).square().sum().backward()
    statistics = [key for key in before if key.endswith(("running_mean", "running_var", "num_batches_tracked"))]
    assert len(statistics) == 3 * len(norms)
    after = model.trunk.state_dict()
    assert all(torch.equal(after[key], before[key]) for key in statistics)
    trains = batch_norm == "statistics_frozen"
    assert all((norm.weight.grad is not None) == (norm.bias.grad is not None) == trains for norm in norms)
    assert next(model.trunk.parameters()).grad is not None


# The weight file


@pytest.mark.parametrize("what", ["file", "folder"])
def test_the_variable_names_the_file_or_its_folder(
    what: str, file: Path, checkpoint: Mapping[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BN_INCEPTION_WEIGHTS", str(file if what == "file" else file.parent))
    trunk_entry(PRETRAINED)
    loaded = EmbeddingModel(PRETRAINED, None).trunk.state_dict()
    assert not any(key.startswith("last_linear.") for key in loaded)
    assert all(torch.equal(value, checkpoint[key]) for key, value in loaded.items())


def test_torch_hubs_folder_is_second(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    downloads = tmp_path / "hub" / "checkpoints"
    downloads.mkdir(parents=True)
    (downloads / NAME).symlink_to(file)
    assert weights.imagenet_weights_path() == downloads / NAME
    monkeypatch.setenv("BN_INCEPTION_WEIGHTS", "")
    assert weights.imagenet_weights_path() == downloads / NAME
    monkeypatch.setenv("BN_INCEPTION_WEIGHTS", str(file))
    assert weights.imagenet_weights_path() == file


def test_files_from_before_torch_0_4_load(
    checkpoint: Mapping[str, Tensor], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their format is the old one and batch normalisation has no counters."""
    old = {key: value for key, value in checkpoint.items() if not key.endswith(".num_batches_tracked")}
    torch.save(old, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    monkeypatch.setenv("BN_INCEPTION_WEIGHTS", str(tmp_path / "old.pth"))
    loaded = EmbeddingModel(PRETRAINED, None).trunk.state_dict()
    assert all(torch.equal(value, checkpoint[key]) for key, value in loaded.items())


@pytest.mark.parametrize("variable", [None, "nowhere.pth", "."])
def test_missing_weights_are_told_in_one_line(
    variable: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if variable is not None:
        monkeypatch.setenv("BN_INCEPTION_WEIGHTS", str(tmp_path / variable))
    for ask in (trunk_entry, lambda spec: EmbeddingModel(spec, 8)):
        with pytest.raises(TrunkError) as error:
            ask(PRETRAINED)
        text = _one_line(error)
        assert "bn_inception" in text
        assert f"put {NAME} of the Python package pretrainedmodels into {tmp_path / 'hub' / 'checkpoints'}" in text
        assert "set BN_INCEPTION_WEIGHTS" in text
        assert variable is None or str(tmp_path / variable) in text
    trunk_entry(RANDOM)


def _without_a_layer(content: dict[str, Tensor]) -> object:
    return {key: value for key, value in content.items() if key != "conv2_3x3.bias"}


def _with_a_stranger(content: dict[str, Tensor]) -> object:
    return {**content, "conv9.bias": torch.zeros(1)}


def _of_another_shape(content: dict[str, Tensor]) -> object:
    return {**content, "conv2_3x3_bn.weight": torch.zeros(1, 192)}


def _as_a_list(content: dict[str, Tensor]) -> object:
    return list(content.values())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_without_a_layer, "1 missing, 0 unknown; lacks conv2_3x3.bias"),
        (_with_a_stranger, "0 missing, 1 unknown; has conv9.bias"),
        (_of_another_shape, "conv2_3x3_bn.weight has the shape (1, 192) instead of (192,)"),
        (_as_a_list, "holds list, not weights by name"),
        (None, "not a readable file of PyTorch weights"),
    ],
)
def test_a_file_that_does_not_fit_is_told_when_the_entry_is_asked_for(
    spoil, message: str, checkpoint: dict[str, Tensor], file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / NAME
    if spoil is None:
        path.write_bytes(file.read_bytes()[:100_000])  # A download that broke off.
    else:
        torch.save(spoil(checkpoint), path)
    monkeypatch.setenv("BN_INCEPTION_WEIGHTS", str(tmp_path))
    with pytest.raises(TrunkError) as error:
        trunk_entry(PRETRAINED)
    assert message in _one_line(error)


def test_asking_draws_nothing_from_the_random_generator(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BN_INCEPTION_WEIGHTS", str(file))
    before = torch.get_rng_state()
    trunk_entry(PRETRAINED)
    assert torch.equal(torch.get_rng_state(), before)
