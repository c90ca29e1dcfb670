"""Weight files: where they are looked for, how they are fetched, what one that is not the published one means."""

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import nn

from protocols.trunks.embedding_model import EmbeddingModel
from protocols.trunks.trunk_entry import TrunkError, WeightFile
from protocols.trunks.trunk_registry import TRUNKS, TrunkEntry, identified_trunk
from results.spec.trunk_spec import InputFormat, TrunkSpec

VARIABLE = "METRIC_LEARNING_WEIGHTS"
TOY = TrunkSpec(name="toy", weights="imagenet")
RAW = InputFormat(channels="RGB", mean=(0, 0, 0), std=(1, 1, 1))


class Toy(nn.Module):
    features = 4

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, images):
        output = self.norm(self.conv(images))
        return output


def _checkpoint(seed):
    torch.manual_seed(seed)
    return {**Toy().state_dict(), "fc.weight": torch.zeros(2, 4)}


class Handler(SimpleHTTPRequestHandler):
    asked: list[str]

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *arguments):
        pass


class World(NamedTuple):
    """What the net serves, what it was asked for, torch.hub's downloads, and the published file."""

    served: Path
    asked: list[str]
    hub: Path
    content: bytes
    file: WeightFile


def _publish(monkeypatch, url):
    file = WeightFile("toy", url, ("fc.",))
    monkeypatch.setitem(TRUNKS, "toy", TrunkEntry(Toy, RAW, file=file))
    return file


@pytest.fixture
def world(tmp_path, monkeypatch):
    served = tmp_path / "served"
    served.mkdir()
    torch.save(_checkpoint(0), served / "toy.pth")
    content = (served / "toy.pth").read_bytes()
    name = f"toy-{hashlib.sha256(content).hexdigest()[:9]}.pth"
    (served / "toy.pth").rename(served / name)
    asked = []
    handler = partial(type("Own", (Handler,), {"asked": asked}), directory=str(served))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    # Set and taken away again, so that whatever a test makes of it ends with the test.
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    file = _publish(monkeypatch, f"http://127.0.0.1:{server.server_port}/{name}")
    yield World(served, asked, tmp_path / "hub" / "checkpoints", content, file)
    server.shutdown()
    thread.join()
    server.server_close()


def _refused(ask):
    with pytest.raises(TrunkError) as error:
        ask()
    text = str(error.value)
    assert "\n" not in text
    return text


def _loaded(spec, seed):
    """Whether the trunk is that of the seed's checkpoint."""
    state = EmbeddingModel(spec, None).trunk.state_dict()
    return all(torch.equal(value, _checkpoint(seed)[key]) for key, value in state.items())


# Where a file is looked for


def test_published_names_carry_digits_of_the_sha256():
    published = {name: entry.file for name, entry in TRUNKS.items() if entry.file}
    assert set(published) == {"bn_inception", "googlenet", "resnet50", "resnet101"}
    for name, file in published.items():
        assert file.trunk == name
        assert file.name.startswith(name)
        assert len(file.sha256) >= 8
        assert int(file.sha256, 16) > 0
    assert published["bn_inception"].name == "bn_inception-52deb4733.pth"
    assert published["bn_inception"].sha256 == "52deb4733"


@pytest.mark.parametrize("what", ["file", "folder", "option"])
def test_the_named_place_is_first(world, what, monkeypatch):
    option = None
    if what == "option":
        monkeypatch.setenv(VARIABLE, "nowhere.pth")
        option = world.served / world.file.name
    else:
        monkeypatch.setenv(VARIABLE, str(world.served / world.file.name if what == "file" else world.served))
    assert identified_trunk(TOY, option) == TOY
    assert _loaded(TOY, 0)
    assert world.asked == []
    assert not world.hub.exists()


def test_torch_hubs_downloads_are_second(world, monkeypatch):
    monkeypatch.setenv(VARIABLE, "")
    world.hub.mkdir(parents=True)
    (world.hub / world.file.name).write_bytes(world.content)
    assert identified_trunk(TOY) == TOY
    assert _loaded(TOY, 0)
    assert world.asked == []


@pytest.mark.parametrize("variable", ["nowhere.pth", "."])
def test_a_variable_that_leads_nowhere_is_told_and_not_passed_over(world, variable, monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / variable))
    for ask in (lambda: identified_trunk(TOY), lambda: EmbeddingModel(TOY, 8)):
        text = _refused(ask)
        assert f"there is no file {tmp_path / variable}" in text
        assert f"with --weights or {VARIABLE}" in text
    assert world.asked == []


# Fetching


def test_a_missing_file_is_fetched_once_when_a_session_opens(world):
    assert identified_trunk(TOY) == TOY
    assert [path.name for path in world.hub.iterdir()] == [world.file.name]
    assert (world.hub / world.file.name).read_bytes() == world.content
    assert _loaded(TOY, 0)
    identified_trunk(TOY)
    assert world.asked == [f"/{world.file.name}"]


def test_a_training_fetches_nothing(world):
    text = _refused(lambda: EmbeddingModel(TOY, 8))
    assert f"there is no file {world.hub / world.file.name}; put {world.file.name} there, or name the file" in text
    assert world.asked == []


def test_content_with_another_hash_is_refused_and_what_cannot_be_fetched_is_told(world):
    torch.save(_checkpoint(1), world.served / world.file.name)
    text = _refused(lambda: identified_trunk(TOY))
    assert f'cannot be fetched (invalid hash value (expected "{world.file.sha256}"' in text
    assert list(world.hub.iterdir()) == []
    (world.served / world.file.name).unlink()
    text = _refused(lambda: identified_trunk(TOY))
    assert f"there is no file {world.hub / world.file.name}; {world.file.url} cannot be fetched (HTTP Error 404" in text


# What a file is


@pytest.mark.parametrize("where", ["hub", "variable"])
def test_a_file_of_the_published_name_must_have_its_content(world, where, monkeypatch, tmp_path):
    folder = world.hub if where == "hub" else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(_checkpoint(1), folder / world.file.name)
    if where == "variable":
        monkeypatch.setenv(VARIABLE, str(tmp_path))
    for ask in (lambda: identified_trunk(TOY), lambda: EmbeddingModel(TOY, 8)):
        text = _refused(ask)
        assert text.startswith(f"{folder / world.file.name}: not the published file: its SHA-256 begins with ")
        assert world.file.url in text


def test_the_published_content_under_another_name_is_imagenets(world, monkeypatch, tmp_path):
    (tmp_path / "copy.pth").write_bytes(world.content)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "copy.pth"))
    assert identified_trunk(TOY) == TOY
    assert _loaded(TOY, 0)


def test_a_file_of_ones_own_is_named_by_its_content(world, tmp_path):
    own = tmp_path / "own.pth"
    torch.save(_checkpoint(1), own)
    spec = identified_trunk(TOY, own)
    assert spec.weights == f"sha256:{hashlib.sha256(own.read_bytes()).hexdigest()[:16]}"
    assert _loaded(spec, 1)
    assert identified_trunk(spec) == spec, "what is settled stays so"
    # Not taken for ImageNet's, nor for another file of one's own.
    text = _refused(lambda: EmbeddingModel(TOY, 8))
    assert f"the experiment needs weights imagenet, but {own} is {spec.weights}" in text
    torch.save(_checkpoint(2), own)
    for ask in (lambda: EmbeddingModel(spec, 8), lambda: identified_trunk(spec)):
        assert f"the experiment needs weights {spec.weights}, but {own} is sha256:" in _refused(ask)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"conv.bias": ...}, "1 key is missing and 0 are unknown or of another shape, the first is conv.bias"),
        ({"c9.bias": torch.ones(1)}, "0 keys are missing and 1 is unknown or of another shape, the first is c9.bias"),
        ({"norm.weight": torch.zeros(1, 4)}, "the first is norm.weight"),
        ({"conv.bias": torch.full((4,), torch.nan)}, "holds values that are no finite numbers (conv.bias)"),
        ([], "contains a list, not weights by name"),
        (None, "not a readable file of PyTorch weights"),
    ],
)
def test_a_file_that_does_not_fit_is_told_when_a_session_opens(world, changes, message, tmp_path):
    path = tmp_path / "own.pth"
    if isinstance(changes, dict):
        changes = {key: value for key, value in {**_checkpoint(0), **changes}.items() if value is not ...}
    torch.save(changes, path)
    if changes is None:
        path.write_bytes(world.content[:1000])
    text = _refused(lambda: identified_trunk(TOY, path))
    assert text.startswith(f"{path}: ")
    assert message in text


@pytest.mark.parametrize(
    ("encode", "said"),
    [
        (torch.Tensor.to_sparse, "(torch.float32, torch.sparse_coo, on cpu)"),
        (lambda value: value.reshape(2, 2).to_sparse_csr(), "the first is conv.bias"),
        (lambda value: torch.quantize_per_tensor(value, 0.1, 0, torch.qint8), "(torch.qint8, torch.strided, on cpu)"),
        (lambda value: value.to("meta"), "(torch.float32, torch.strided, on meta)"),
        (lambda value: value.to(torch.complex64), "(torch.complex64, torch.strided, on cpu)"),
        (lambda value: value.to(torch.float8_e4m3fn), "(torch.float8_e4m3fn, torch.strided, on cpu)"),
        (lambda value: value.to(torch.int8), "(torch.int8, torch.strided, on cpu)"),
        (lambda value: torch.nested.nested_tensor([value, value]), "the first is conv.bias"),
        (torch.Tensor.tolist, "the first is conv.bias"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # Some of these kinds are torch's prototypes.
def test_tensors_that_are_not_plain_numbers_are_refused(world, encode, said, tmp_path):
    path = tmp_path / "own.pth"
    torch.save({**_checkpoint(0), "conv.bias": encode(_checkpoint(0)["conv.bias"])}, path)
    text = _refused(lambda: identified_trunk(TOY, path))
    assert text.startswith(f"{path}: ")
    assert said in text


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_every_usual_type_are_loaded(world, kind, tmp_path):
    """Averaged checkpoints have counters of floating-point numbers; they count too."""
    state = {key: value.to(kind) for key, value in _checkpoint(1).items()}
    torch.save(state, tmp_path / "own.pth")
    trunk = EmbeddingModel(identified_trunk(TOY, tmp_path / "own.pth"), None).trunk
    assert torch.equal(trunk.conv.weight, state["conv.weight"].float())
    assert trunk.norm.num_batches_tracked.dtype == torch.int64


@pytest.mark.parametrize(("name", "weights"), [("small_conv", "random"), ("efficientnet_lite0", "imagenet")])
def test_a_file_for_a_trunk_that_reads_none_is_refused(world, name, weights, tmp_path):
    spec = TrunkSpec(name=name, weights=weights)
    text = _refused(lambda: identified_trunk(spec, tmp_path / "w.pth"))
    assert f"--weights {tmp_path / 'w.pth'}: trunk {name} with {weights} weights reads no file" in text
    assert "reads no file" in _refused(lambda: identified_trunk(TOY.model_copy(update={"weights": "random"}), tmp_path))
