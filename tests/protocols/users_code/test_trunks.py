"""Trunks from users' files: built, hashed, checked, and refused in one line."""

import json
from importlib.util import find_spec

import pytest
import torch

from protocols.trunks.embedding_model import EmbeddingModel, check_images_fit
from protocols.trunks.trunk_entry import TrunkError
from protocols.trunks.trunk_registry import identified_trunk, trunk_entry
from results.spec.trunk_spec import TrunkSpec

pytestmark = pytest.mark.usefixtures("forked_processes")

HEAD = 'import torch\nfrom torch import nn\nINPUT_FORMAT = {"channels": "RGB", "mean": [0.5] * 3, "std": [0.25] * 3}\n'
MAP = HEAD + "def build():\n    return nn.Conv2d(3, 6, 3)\n"
VECTOR = HEAD + "def build():\n    return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 5))\n"


def trunk(folder, source, weights="pretrained", **settings):
    (folder / "my_trunk.py").write_text(source)
    return TrunkSpec.model_validate({"name": f"{folder}/my_trunk.py:build", "weights": weights, **settings})


def images(number=2, side=16):
    return torch.randint(0, 256, (number, 3, side, side), dtype=torch.uint8)


@pytest.mark.parametrize(("source", "features"), [(MAP, 6), (VECTOR, 5)])
def test_maps_are_pooled_and_vectors_are_taken(tmp_path, source, features):
    spec = identified_trunk(trunk(tmp_path, source))
    assert spec.name.startswith("my_trunk.py:build (sha256 ")
    assert spec.weights.startswith("pretrained (sha256 ")
    assert trunk_entry(spec).width == features
    model = EmbeddingModel(spec, 4)
    batch = images()
    assert model(batch).shape == (2, 4)
    with torch.no_grad():
        pixels = (batch / 255 - 0.5) / 0.25
        expected = model.trunk.network(pixels)
        expected = expected.mean((2, 3)) if expected.ndim == 4 else expected
        torch.testing.assert_close(model.features(batch), expected)


def test_pretrained_weights_are_those_of_every_build_and_random_ones_are_not(tmp_path):
    spec = identified_trunk(trunk(tmp_path, MAP))
    builds = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        builds.append(EmbeddingModel(spec, None).trunk.state_dict())
    assert all(torch.equal(builds[0][key], builds[1][key]) for key in builds[0])
    random = identified_trunk(trunk(tmp_path, MAP, "random"))
    assert random.weights == "random"
    torch.manual_seed(0)
    first = EmbeddingModel(random, None).trunk.state_dict()
    torch.manual_seed(1)
    assert not torch.equal(first["network.weight"], EmbeddingModel(random, None).trunk.state_dict()["network.weight"])


def test_weights_that_differ_in_every_build_are_refused(tmp_path):
    (tmp_path / "count").write_text("0")
    source = HEAD + (
        f"from pathlib import Path\ncount = Path({str(tmp_path / 'count')!r})\n"
        "def build():\n    n = int(count.read_text()) + 1\n    count.write_text(str(n))\n"
        "    layer = nn.Conv2d(3, 6, 3)\n    nn.init.constant_(layer.weight, n)\n    return layer\n"
    )
    spec = identified_trunk(trunk(tmp_path, source))
    with pytest.raises(TrunkError, match=r"its weights are now pretrained .* but this experiment began with"):
        EmbeddingModel(spec, None)


def test_safetensors_are_read_or_their_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("METRIC_LEARNING_WEIGHTS", "")
    header = json.dumps(
        {"weight": {"dtype": "F32", "shape": [6, 3, 3, 3], "data_offsets": [0, 648]}}
        | {"bias": {"dtype": "F32", "shape": [6], "data_offsets": [648, 672]}}
    ).encode()
    numbers = torch.ones(168).numpy().tobytes()
    (tmp_path / "own.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + numbers)
    spec = trunk(tmp_path, MAP, str(tmp_path / "own.safetensors"))
    if find_spec("safetensors") is None:
        with pytest.raises(TrunkError, match="needs the package safetensors: pip install safetensors"):
            identified_trunk(spec)
    else:
        assert EmbeddingModel(identified_trunk(spec), None).trunk.network.weight.min() == 1


def test_a_file_of_weights_is_loaded_and_identified(tmp_path, monkeypatch):
    monkeypatch.setenv("METRIC_LEARNING_WEIGHTS", "")
    spec = trunk(tmp_path, MAP, str(tmp_path / "own.pth"))
    for before in ("", "module.", "network.", "module.network."):
        weights = {f"{before}weight": torch.ones(6, 3, 3, 3), f"{before}bias": torch.zeros(6)}
        torch.save(weights, tmp_path / "own.pth")
        settled = identified_trunk(spec)
        assert settled.weights.startswith("sha256:")
        assert EmbeddingModel(settled, None).trunk.network.weight.min() == 1
    torch.save({"network.weight": torch.ones(6, 3, 3, 3)}, tmp_path / "own.pth")
    with pytest.raises(TrunkError, match="not the weights of this trunk: 1 key is missing"):
        identified_trunk(spec)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (MAP.replace("def build", "def make"), "has no 'build'; it defines make"),
        (MAP.replace("INPUT_FORMAT", "FORMAT"), "say beside build which input it needs, such as INPUT_FORMAT = "),
        (MAP.replace('"RGB"', '"HSV"'), "INPUT_FORMAT channels: "),
        (HEAD + "def build():\n    return 3\n", r"build\(\) returned int, not a torch.nn.Module"),
        (HEAD + "def build():\n    raise KeyError('no')\n", "my_trunk.py, line 5: KeyError: 'no'"),
        (HEAD + "def build(size):\n    return nn.Conv2d(3, size, 3)\n", "my_trunk.py: TypeError: build.*size"),
        (
            HEAD + "def build():\n    return nn.Flatten(2)\n",
            r"returned \(1, 3, 4096\); features have the shape \(n, c\)",
        ),
        (
            HEAD + "class Half(nn.Conv2d):\n    features = 6\n    def forward(self, x):\n"
            "        return super().forward(x).half()\ndef build():\n    return Half(3, 6, 3)\n",
            r"my_trunk.py:build.*: gives features of the shape \(1, 6\) in torch.float16 for one image, not ",
        ),
        (HEAD + "def build(:\n", "my_trunk.py, line 4: "),
    ],
)
def test_what_is_no_trunk_gives_one_line(tmp_path, source, said):
    with pytest.raises(TrunkError, match=said) as refused:
        check_images_fit(identified_trunk(trunk(tmp_path, source)), 16)
    assert "\n" not in str(refused.value)


def test_images_that_the_trunk_cannot_take_are_told_first(tmp_path):
    needs_16 = HEAD + (
        "def build():\n    layer = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 5))\n"
        "    layer.features = 5\n    return layer\n"
    )
    spec = identified_trunk(trunk(tmp_path, needs_16))
    check_images_fit(spec, 16)
    with pytest.raises(TrunkError, match=r"cannot compute images of 12 x 12 pixels .*; change images.crop"):
        check_images_fit(spec, 12)
