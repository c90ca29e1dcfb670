"""Writes models that run without this suite: torch's exported programs (`.pt2`) and state dicts."""

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import torch
from torch import Tensor, nn

from losses.plugin import Normalization
from protocols.datasets.dataset import reads_as_mlrc
from protocols.evaluation.evaluate_run import concatenated
from protocols.metrics.retrieval import normalized
from protocols.trunks.embedding_model import (
    EmbeddingModel,
    trained_model,
    trunk_width,
    with_trunk,
    without_published_weights,
)
from reproduce.errors import InputError
from reproduce.run.tasks import write_tensors
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import NO_TRUNK

TOLERANCE = 1e-5
"""Largest difference between an entry of the suite's embeddings and the same entry of an exported model's."""

_OF_PICTURES = "torch\nfrom PIL import Image\nfrom preprocess import preprocess"

_CHANNELS = 3
"""Exported models take RGB images; a trunk for grey images averages their channels."""

SEEN = "seen.csv"
"""The file with the classes, and the hashes of their samples, that an exported model was trained on or chosen by."""


class NormalizedModel(nn.Module):
    """A model, or several as an ensemble, with the normalization that comes before embeddings are compared.

    Args:
        models: The models. Embeddings of several are concatenated, as the test does.
        normalization: `unit` or `ball`.
        shape: Shape of one input: (3, crop, crop) for uint8 RGB images, (c,) for float32 features.
    """

    def __init__(self, models: Sequence[EmbeddingModel], normalization: Normalization, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.models, self.normalization, self.shape = nn.ModuleList(models), normalization, shape
        # Its products are float32, so that an exported program takes rows of float16 too.
        self.one: Tensor
        self.register_buffer("one", torch.ones(1), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute normalized embeddings (n, d) of images or features (n, ...), d the sum over all models."""
        inputs = inputs * self.one if len(self.shape) == 1 else inputs
        embeddings = [model(inputs) for model in self.models]
        if len(embeddings) == 1:
            return normalized(embeddings[0], self.normalization)
        return concatenated(embeddings, self.normalization)

    def random_inputs(self, number: int) -> Tensor:
        """Draw inputs; equal numbers give equal inputs."""
        generator = torch.Generator().manual_seed(number)
        if len(self.shape) == 1:
            return torch.randn((number, *self.shape), generator=generator)
        return torch.randint(0, 256, (number, *self.shape), dtype=torch.uint8, generator=generator)


def portable_model(
    specs: Sequence[FoldSpec], weights: Sequence[dict[str, Tensor]], normalization: Normalization
) -> NormalizedModel:
    """Build models as one on the CPU, in evaluation mode.

    Args:
        specs: Specification of each model's network.
        weights: State dict of each, with that of a frozen trunk, which is a part of the model once for all.
    """
    is_frozen = specs[0].conditions.trunk.frozen
    specs = [without_published_weights(with_trunk(spec)) for spec in specs]
    first = specs[0].conditions
    side = first.images.crop
    shape = (trunk_width(first.trunk),) if first.trunk.is_input_features else (_CHANNELS, side, side)
    models = [trained_model(spec, state, torch.device("cpu")) for spec, state in zip(specs, weights, strict=True)]
    if is_frozen:
        for model in models[1:]:
            model.trunk = models[0].trunk
    whole = NormalizedModel(models, normalization, shape).eval().requires_grad_(False)
    for parameter in whole.parameters():  # Of channels-last weights torch's export warns.
        parameter.data = parameter.data.contiguous()
    return whole


def write_portable(
    specs: Sequence[FoldSpec],
    weights: Sequence[dict[str, Tensor]],
    description: dict[str, Any],
    folder: Path,
) -> float:
    """Write models as one, which `description` describes, and return the largest difference to the suite's embeddings.

    The files are `model.pt2`, the model as torch's exported program, with normalization; `model.pt`, its state dict, or
    those of an ensemble by `fold_0` and so on; `model.json`, its description; `NOTE.txt`, what it is and how it is
    used; and for images `preprocess.py`, what makes its input from a picture.
    """
    model = portable_model(specs, weights, description["normalization"])
    states = {f"fold_{spec.fold}": state for spec, state in zip(specs, weights, strict=True)}
    write_tensors(folder / "model.pt", states if len(specs) > 1 else weights[0])
    write_json(folder / "model.json", description)
    (folder / "NOTE.txt").write_text(f"{description['note']}\n\n{_use_of(specs[0])}", encoding="utf-8")
    if specs[0].conditions.trunk.name != NO_TRUNK:
        _write_preprocessing(specs[0], folder / "preprocess.py")
    return write_program(model, folder / "model.pt2")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a description."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _use_of(spec: FoldSpec) -> str:
    """Return the lines that load and use a model, and what its inputs are."""
    inputs, modules = "features", "torch"
    meaning = "`features` are float32 or float16 (n, c), the rows of the features file."
    if spec.conditions.trunk.name != NO_TRUNK:
        inputs, modules = "torch.stack([preprocess(Image.open(file)) for file in files])", _OF_PICTURES
        meaning = "`files` are pictures, which `preprocess` resizes and crops. The model normalises their colours."
    return (
        f'import {modules}\nmodel = torch.export.load("model.pt2").module()\nembeddings = model({inputs})\n\n'
        f"{meaning} Embeddings are normalised, float32 (n, d).\n"
    )


def _write_preprocessing(spec: FoldSpec, path: Path) -> None:
    """Write what makes a model's input from a picture as a Python file that needs none of the suite."""
    images = spec.conditions.images
    values = {
        "resize": tuple(side for side in (images.resize, images.evaluation_resize) if side is not None),
        "crop": images.crop,
        "as_seen": not reads_as_mlrc(spec.dataset),
    }
    template = resources.files("reproduce").joinpath("templates", "preprocess.txt").read_text(encoding="utf-8")
    path.write_text(Template(template).substitute(values), encoding="utf-8")


def write_program(model: NormalizedModel, path: Path) -> float:
    """Write a model with `torch.export`, read it again and compare its embeddings with those of the suite.

    The result is the largest difference between two entries of the embeddings of random inputs. InputError is raised if
    it is larger than `TOLERANCE`.
    """
    # Two inputs, because torch takes a size of 1 for a constant.
    program = torch.export.export(model, (model.random_inputs(2),), dynamic_shapes=({0: torch.export.Dim("n")},))
    torch.export.save(program, path)
    inputs = model.random_inputs(5)
    # torch's maximum is NaN if one entry is.
    difference = float((model(inputs) - torch.export.load(path).module()(inputs)).abs().max())
    if not difference <= TOLERANCE:
        raise InputError(
            f"the model in torch.export differs from the suite's by {difference:.1e}, more than {TOLERANCE:.0e}; "
            "nothing is written"
        )
    return difference
