"""Exported models give the suite's embeddings, and one that does not is refused."""

import struct
import tomllib
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import ExifTags, Image
from torch import Tensor, nn

from losses.plugin import Normalization
from protocols.images.crops import evaluation_batch
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import BrokenImageError, pack_files
from protocols.metrics.retrieval import normalized
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel, trained_model
from reproduce.errors import InputError
from reproduce.outputs import portable_model as exporting
from reproduce.outputs.portable_model import (
    ONNX_PACKAGES,
    TOLERANCE,
    NormalizedModel,
    check_onnx,
    portable_model,
    write_onnx,
    write_program,
)
from results.spec.conditions import ImageSettings
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import TrunkSpec
from tests.support.documentation import ROOT
from tests.support.sample_records import changed_spec, some_spec
from tests.support.toys import pattern_dataset, toy_fold


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[FoldSpec, dict[str, Tensor]]:
    spec, data = toy_fold(pattern_dataset(tmp_path_factory.mktemp("data")))
    return spec, train_fold(spec, data).weights


def model_of(spec: FoldSpec, *weights: dict[str, Tensor], kind: Normalization = "unit") -> NormalizedModel:
    return portable_model([spec] * len(weights), weights, kind)


def images(number: int, side: int) -> Tensor:
    return torch.randint(0, 256, (number, 3, side, side), dtype=torch.uint8)


@pytest.mark.parametrize("normalization", ["unit", "ball"])
def test_a_program_gives_the_normalized_embeddings_of_any_batch(tmp_path, trained, normalization: Normalization):
    spec, weights = trained
    assert write_program(model_of(spec, weights, kind=normalization), tmp_path / "model.pt2") <= TOLERANCE
    program = torch.export.load(tmp_path / "model.pt2").module()
    for number in (1, 2, 7):
        batch = images(number, spec.conditions.images.crop)
        with torch.no_grad():
            expected = normalized(trained_model(spec, weights, torch.device("cpu"))(batch), normalization)
        torch.testing.assert_close(program(batch), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("normalization", ["unit", "ball"])
def test_onnx_gives_the_normalized_embeddings_of_any_batch(
    tmp_path, trained, monkeypatch, normalization: Normalization
):
    """Read by its runtime, in one file, and for `ball` with the weights in a file of their own, as large ones are."""
    runtime, (spec, weights) = pytest.importorskip("onnxruntime"), trained
    if normalization == "ball":
        monkeypatch.setattr(exporting, "_LARGEST_ONNX", 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert write_onnx(model_of(spec, weights, weights, kind=normalization), tmp_path / "model.onnx") <= TOLERANCE
    parts = {"unit": ["model.onnx"], "ball": ["model.onnx", "model.onnx.data"]}
    assert sorted(path.name for path in tmp_path.iterdir()) == parts[normalization]
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    for number in (1, 2, 7):
        batch = images(number, spec.conditions.images.crop)
        (found,) = session.run(["embeddings"], {"inputs": batch.numpy()})
        each = normalized(trained_model(spec, weights, torch.device("cpu"))(batch), normalization)
        expected = normalized(torch.cat([each, each], 1), normalization)
        torch.testing.assert_close(torch.from_numpy(found), expected, rtol=0, atol=1e-6)


@pytest.mark.late
@pytest.mark.parametrize("name", ["efficientnet_lite0", "bn_inception"])
def test_every_trunk_can_be_onnx(tmp_path, name):
    pytest.importorskip("onnxruntime")
    spec = some_spec(trunk=TrunkSpec(name=name, weights="random"), images=ImageSettings(crop=64))
    weights = EmbeddingModel(spec.conditions.trunk, 16).state_dict()
    assert write_onnx(model_of(spec, weights), tmp_path / "model.onnx") <= 1e-6


def test_what_cannot_be_onnx_is_refused(tmp_path, trained, monkeypatch):
    spec, weights = trained
    training = spec.conditions.training.model_copy(update={"precision": "amp"})
    with pytest.raises(InputError, match=r"was trained with amp, .*; leave out --format onnx"):
        check_onnx(spec.with_conditions(training=training))
    monkeypatch.setattr(torch.onnx, "export", lambda *_, **__: 1 / 0)
    with pytest.raises(InputError, match=r"ONNX: ZeroDivisionError \(division by zero\); leave --format out"):
        write_onnx(model_of(spec, weights), tmp_path / "model.onnx")
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs onnx, onnxscript and onnxruntime: pip install -e '.\[onnx\]'"):
        check_onnx(spec)


def test_the_extra_onnx_has_the_packages_that_are_asked_for():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {line.split(">")[0] for line in extras["onnx"]} == set(ONNX_PACKAGES)


def test_a_model_of_mixed_precision_can_be_exported(tmp_path, trained):
    spec, weights = trained
    training = spec.conditions.training.model_copy(update={"precision": "amp"})
    model = model_of(spec.with_conditions(training=training), weights)
    assert write_program(model, tmp_path / "model.pt2") <= TOLERANCE


def test_an_export_of_channels_last_weights_prints_no_warning(tmp_path):
    spec = some_spec(trunk=TrunkSpec(name="efficientnet_lite0", weights="random"), images=ImageSettings(crop=32))
    weights = EmbeddingModel(spec.conditions.trunk, 16).state_dict()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert write_program(model_of(spec, weights), tmp_path / "model.pt2") <= TOLERANCE


@pytest.mark.parametrize("images", [{"resize": 20, "crop": 16, "evaluation_resize": 18}, {"resize": None, "crop": 24}])
@pytest.mark.parametrize("published", [False, True])
def test_the_written_preprocessing_is_that_of_the_suite(tmp_path, trained, images, published):
    """Upright and lying, larger and smaller than the crop, turned by a tag, transparent, grey."""
    dataset, settings = "cub200" if published else "folder", ImageSettings(**images)
    spec = changed_spec(trained[0], dataset=dataset, images=settings)
    exporting._write_preprocessing(spec, tmp_path / "preprocess.py")
    exec((tmp_path / "preprocess.py").read_text(), names := {})
    pixels = np.random.default_rng(0).integers(0, 256, (37, 22, 4), dtype=np.uint8)
    pictures = [Image.fromarray(pixels[..., :3]), Image.fromarray(pixels[:9, :30, :3]), Image.fromarray(pixels)]
    pictures += [Image.fromarray(pixels[:, :20, 0]), Image.fromarray(pixels[..., :3])]
    pictures[-1].getexif()[274] = 6
    for number, picture in enumerate(pictures):
        picture.save(tmp_path / f"{number}.png", exif=picture.getexif())
    files = [f"{number}.png" for number in range(len(pictures))]
    packed = pack_files(tmp_path, files, settings.resize, tmp_path / "packed", as_mlrc=published)
    rows = np.arange(len(files))
    ours = evaluation_batch(LabelledImages(rows, rows, packed), rows, settings)
    found = torch.from_numpy(np.stack([names["preprocess"](Image.open(tmp_path / file)) for file in files]))
    assert torch.equal(found, ours)


def odd_pictures(folder: Path) -> list[str]:
    """Files with damaged tags, of every kind of transparency and colour, and with more than 8 bits of grey."""
    random = np.random.default_rng(0)
    rgba = Image.fromarray(random.integers(0, 256, (30, 44, 4), dtype=np.uint8))
    rgb, grey, palette = rgba.convert("RGB"), rgba.convert("L"), rgba.convert("RGB").quantize(32)
    turned = Image.Exif()
    turned[ExifTags.Base.Orientation] = 6
    pictures: list[tuple[str, Image.Image, dict[str, Any]]] = [
        ("cut.jpg", rgb, {"exif": turned.tobytes()[:20]}),
        ("garbage.jpg", rgb, {"exif": b"Exif\0\0" + random.bytes(99)}),
        ("turned.webp", rgb, {"exif": turned.tobytes(), "lossless": True}),
        ("turned.tif", rgb, {"exif": turned}),
        ("turned_grey.tif", grey, {"exif": turned}),
        ("clear_colour.png", rgb, {"transparency": rgb.getpixel((0, 0))}),
        ("clear_shade.png", grey, {"transparency": grey.getpixel((0, 0))}),
        ("clear_entry.png", palette, {"transparency": 3}),
        ("clear_entries.png", palette, {"transparency": bytes(range(0, 256, 8))}),
        ("clear.gif", palette, {"transparency": 3}),
        ("grey_alpha.png", rgba.convert("LA"), {}),
        ("opaque.png", rgb.convert("RGBA"), {}),
        ("bits.png", grey.convert("1"), {}),
        ("cmyk.jpg", rgb.convert("CMYK"), {}),
        ("two.png", rgba, {"save_all": True, "append_images": [rgb.convert("RGBA")]}),
        ("grey16.png", Image.fromarray(random.integers(0, 65536, (30, 44), dtype=np.uint16)), {}),
        ("grey16.tif", Image.fromarray(random.integers(0, 65536, (30, 44), dtype=np.uint16)), {}),
        ("numbers.tif", Image.fromarray(random.integers(0, 2**30, (30, 44), dtype=np.int32)), {}),
        ("floats.tif", Image.fromarray(random.random((30, 44), dtype=np.float32)), {}),
    ]
    for name, picture, options in pictures:
        picture.save(folder / name, **options)
    raw = (folder / "opaque.png").read_bytes()
    tag = b"eXIf\0\x08\0\x02\x01\x12\0\x03"
    chunk = struct.pack(">I", len(tag) - 4) + tag + struct.pack(">I", zlib.crc32(tag))
    (folder / "bad_tag.png").write_bytes(raw[:33] + chunk + raw[33:])
    return [*(name for name, _, _ in pictures), "bad_tag.png"]


@pytest.mark.filterwarnings("ignore")  # Pillow warns of damaged tags.
@pytest.mark.parametrize("dataset", ["folder", "cub200"])
def test_odd_pictures_become_the_same_pixels_or_are_refused_by_both(tmp_path, trained, dataset):
    settings = ImageSettings(resize=20, crop=16)
    exporting._write_preprocessing(changed_spec(trained[0], dataset=dataset, images=settings), tmp_path / "p.py")
    exec((tmp_path / "p.py").read_text(), names := {})
    refused, row = [], np.zeros(1, dtype=np.int64)
    for number, file in enumerate(odd_pictures(tmp_path)):
        packed = (tmp_path, [file], settings.resize, tmp_path / f"pack{number}")
        with Image.open(tmp_path / file) as picture:
            try:
                images = LabelledImages(row, row, pack_files(*packed, as_mlrc=dataset == "cub200"))
            except BrokenImageError:
                refused.append(file)
                with pytest.raises(ValueError, match="more than 8 bits of grey or other numbers"):
                    names["preprocess"](picture)
                continue
            assert (names["preprocess"](picture) == evaluation_batch(images, row, settings)[0].numpy()).all(), file
    assert refused == ["grey16.png", "grey16.tif", "numbers.tif", "floats.tif"]


@pytest.mark.parametrize("error", [2 * TOLERANCE, float("nan")])
def test_an_exported_model_that_differs_is_refused(tmp_path, trained, monkeypatch, error):
    class Shifted(nn.Module):
        def __init__(self, model: NormalizedModel) -> None:
            super().__init__()
            self.model = model

        def forward(self, batch: Tensor) -> Tensor:
            return self.model(batch) + error

    export = torch.export.export
    monkeypatch.setattr(torch.export, "export", lambda model, *args, **kwargs: export(Shifted(model), *args, **kwargs))
    with pytest.raises(InputError, match=r"the model in torch.export differs from the suite's .*; nothing is written"):
        write_program(model_of(*trained), tmp_path / "model.pt2")


def test_a_model_for_one_number_of_inputs_is_refused_with_the_remedy(tmp_path, trained):
    """`len(x)` is a number to torch.export, and `x.shape[0]` is not."""

    class Counting(NormalizedModel):
        def forward(self, inputs: Tensor) -> Tensor:
            return super().forward(inputs) + self.bias.expand(len(inputs), -1)

    model = model_of(*trained)
    model.bias = torch.zeros(1, 1)
    model.__class__ = Counting
    with pytest.raises(
        InputError, match=r"^torch cannot export this model for any .*x\.shape\[0\] for len\(x\)"
    ) as said:
        write_program(model, tmp_path / "model.pt2")
    assert "\n" not in str(said.value)


def test_an_ensemble_concatenates_its_models_and_holds_a_frozen_trunk_once(tmp_path, trained):
    spec, weights = trained
    embedder = {name: torch.randn_like(weights[name]) for name in weights if name.startswith("embedder")}
    frozen = spec.with_conditions(trunk=spec.conditions.trunk.model_copy(update={"frozen": True}))
    sizes = []
    for each in (spec, frozen):
        assert write_program(model_of(each, weights, weights | embedder), tmp_path / "model.pt2") <= TOLERANCE
        sizes.append((tmp_path / "model.pt2").stat().st_size)
        batch = images(3, spec.conditions.images.crop)
        expected = normalized(torch.cat([model_of(each, state)(batch) for state in (weights, weights | embedder)], 1))
        torch.testing.assert_close(torch.export.load(tmp_path / "model.pt2").module()(batch), expected)
    assert sizes[1] < 0.8 * sizes[0]
