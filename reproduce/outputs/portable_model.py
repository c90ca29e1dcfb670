"""Models that run without this suite: torch's exported programs (`.pt2`) and ONNX."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from losses.plugin import Normalization
from protocols.metrics.retrieval import normalized
from protocols.trunks.embedding_model import EmbeddingModel, trained_model
from reproduce.errors import InputError
from results.training_spec import FoldSpec

TOLERANCE = 1e-5
"""Largest difference between an entry of the suite's embeddings and the same entry of an exported model's."""

_CPU = torch.device("cpu")
_CHANNELS = 3
"""Exported models take RGB images; a trunk for grey images averages their channels."""


class NormalizedModel(nn.Module):
    """A model with the normalization that comes before its embeddings are compared.

    Args:
        model: The model.
        normalization: `unit` or `ball`.
    """

    def __init__(self, model: EmbeddingModel, normalization: Normalization) -> None:
        super().__init__()
        self.model, self.normalization = model, normalization

    def forward(self, images: Tensor) -> Tensor:
        """Compute normalized embeddings (n, d) of uint8 RGB images (n, 3, crop, crop)."""
        return normalized(self.model(images), self.normalization)


def normalized_model(spec: FoldSpec, weights: dict[str, Tensor], normalization: Normalization) -> NormalizedModel:
    """Build the model of a finished training on the CPU, in evaluation mode.

    Args:
        spec: The specification of the training; its trunk needs no weight file.
        weights: State dict of the trained model.
        normalization: Normalization of its embeddings.
    """
    model = NormalizedModel(trained_model(spec, weights, _CPU), normalization).eval()
    return model.requires_grad_(False)


def write_program(model: NormalizedModel, crop: int, path: Path) -> float:
    """Write a model with `torch.export`, read it again and compare its embeddings with those of the suite.

    Args:
        model: The model on the CPU.
        crop: Side of its input in pixels.
        path: The file to write, `*.pt2`.

    Returns:
        The largest difference between two entries of the embeddings of random images.

    Raises:
        InputError: The difference is larger than `TOLERANCE`.
    """
    torch.export.save(_program(model, crop), path)
    return _checked_difference(model, crop, torch.export.load(path).module(), "torch.export")


def write_onnx(model: NormalizedModel, crop: int, path: Path) -> float:
    """Write a model as ONNX, run it with ONNX Runtime and compare its embeddings with those of the suite.

    Args:
        model: The model on the CPU, in float32.
        crop: Side of its input in pixels.
        path: The file to write, `*.onnx`. Its input is `images`, its output `embeddings`.

    Returns:
        The largest difference between two entries of the embeddings of random images.

    Raises:
        InputError: A package of the extra `onnx` is missing, or the difference is larger than `TOLERANCE`.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 - torch's exporter needs it.
    except ImportError as error:
        raise InputError(f"--onnx needs the package {error.name}: pip install -e '.[onnx]'") from error
    torch.onnx.export(
        _program(model, crop),
        (),
        path,
        dynamo=True,
        verbose=False,
        external_data=False,
        input_names=["images"],
        output_names=["embeddings"],
    )
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def run(images: Tensor) -> Tensor:
        (embeddings,) = session.run(None, {"images": images.numpy()})
        return torch.from_numpy(np.asarray(embeddings))

    return _checked_difference(model, crop, run, "ONNX Runtime")


def _program(model: NormalizedModel, crop: int) -> torch.export.ExportedProgram:
    # Two images, because torch takes a size of 1 for a constant.
    return torch.export.export(model, (_images(2, crop),), dynamic_shapes=({0: torch.export.Dim("n")},))


def _images(number: int, crop: int) -> Tensor:
    generator = torch.Generator().manual_seed(number)
    return torch.randint(0, 256, (number, _CHANNELS, crop, crop), dtype=torch.uint8, generator=generator)


def _checked_difference(model: NormalizedModel, crop: int, exported: Callable[[Tensor], Tensor], runner: str) -> float:
    """The largest difference over batches of one and of several images."""
    batches = [_images(number, crop) for number in (1, 5)]
    # torch's maximum is NaN if one entry is.
    difference = float(torch.cat([(model(images) - exported(images)).abs() for images in batches]).max())
    if not difference <= TOLERANCE:
        raise InputError(
            f"the model in {runner} differs from the suite's by {difference:.1e}, more than {TOLERANCE:.0e}; nothing "
            "is written"
        )
    return difference
