"""Models that run without this suite: torch's exported programs (`.pt2`) and ONNX."""

import logging
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from losses.plugin import Normalization
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
from results.spec.training_spec import FoldSpec

TOLERANCE = 1e-5
"""Largest difference between an entry of the suite's embeddings and the same entry of an exported model's."""

_CPU = torch.device("cpu")
_CHANNELS = 3
"""Exported models take RGB images; a trunk for grey images averages their channels."""


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

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute normalized embeddings (n, d) of images or features (n, ...), d the sum over all models."""
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


def normalized_ensemble(
    specs: Sequence[FoldSpec], weights: Sequence[dict[str, Tensor]], normalization: Normalization
) -> NormalizedModel:
    """Build the models of finished trainings as one on the CPU, in evaluation mode. A frozen trunk is a part of it."""
    is_frozen = specs[0].conditions.trunk.frozen
    specs = [without_published_weights(with_trunk(spec)) for spec in specs]
    first = specs[0]
    embeds_features = first.conditions.trunk.is_input_features
    shape = (
        (trunk_width(first.conditions.trunk),)
        if embeds_features
        else (_CHANNELS, first.conditions.images.crop, first.conditions.images.crop)
    )
    models = [trained_model(spec, state, _CPU) for spec, state in zip(specs, weights, strict=True)]
    if is_frozen:
        # One trunk for all, so that the file holds it once.
        for model in models[1:]:
            model.trunk = models[0].trunk
    return NormalizedModel(models, normalization, shape).eval().requires_grad_(False)


def write_program(model: NormalizedModel, path: Path) -> float:
    """Write a model with `torch.export`, read it again and compare its embeddings with those of the suite.

    The result is the largest difference between two entries of the embeddings of random inputs. InputError is raised if
    it is larger than `TOLERANCE`.
    """
    torch.export.save(_program(model), path)
    return _checked_difference(model, torch.export.load(path).module(), "torch.export")


def write_onnx(model: NormalizedModel, path: Path) -> float:
    """Write a float32 model as ONNX, run it with ONNX Runtime and compare, as `write_program` does.

    Its input is `inputs`, its output `embeddings`.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 - torch's exporter needs it.
    except ImportError as error:
        raise InputError(f"--onnx needs the package {error.name}: pip install -e '.[onnx]'") from error
    # The exporter logs that packages such as torchvision are missing, which this model does not need.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's exporter uses a deprecated function of torch.
        torch.onnx.export(
            _program(model),
            (),
            path,
            dynamo=True,
            verbose=False,
            external_data=False,
            input_names=["inputs"],
            output_names=["embeddings"],
        )
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def run(inputs: Tensor) -> Tensor:
        (embeddings,) = session.run(None, {"inputs": inputs.numpy()})
        return torch.from_numpy(np.asarray(embeddings))

    return _checked_difference(model, run, "ONNX Runtime")


def _program(model: NormalizedModel) -> torch.export.ExportedProgram:
    # Two inputs, because torch takes a size of 1 for a constant.
    return torch.export.export(model, (model.random_inputs(2),), dynamic_shapes=({0: torch.export.Dim("n")},))


def _checked_difference(model: NormalizedModel, exported: Callable[[Tensor], Tensor], runner: str) -> float:
    """The largest difference over batches of one and of several inputs."""
    batches = [model.random_inputs(number) for number in (1, 5)]
    # torch's maximum is NaN if one entry is.
    difference = float(torch.cat([(model(inputs) - exported(inputs)).abs() for inputs in batches]).max())
    if not difference <= TOLERANCE:
        raise InputError(
            f"the model in {runner} differs from the suite's by {difference:.1e}, more than {TOLERANCE:.0e}; nothing "
            "is written"
        )
    return difference
