"""Load a model that `reproduce export model` wrote, and embed image files with it.

The script in every exported folder imports this module and nothing else of the suite. So never change a public name, an
argument or a result here; only add to them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from losses.plugin import Normalization
from protocols.datasets.folder import images_below
from protocols.images.decoding import BrokenImageError
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import pack_files
from protocols.metrics.retrieval import normalized
from protocols.trunks.embed import embed
from protocols.trunks.embedding_model import EmbeddingModel, model_of, with_trunk, without_published_weights
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import NO_TRUNK


class UnreadableImageError(ValueError):
    """An image is missing or cannot be decoded; the message is one line that names it."""


@dataclass(frozen=True)
class ExportedModel:
    """A trained model with its specification and normalisation.

    Attributes:
        model: The network in evaluation mode, on the CPU. It maps uint8 images (n, c, h, w) to raw embeddings (n, d). A
            model of a dataset without images maps its features (n, c) instead.
        spec: The specification of its training.
        normalization: Normalisation of its embeddings before they are compared: `unit` or `ball`.
    """

    model: EmbeddingModel
    spec: FoldSpec
    normalization: Normalization


def load_exported_model(folder: Path) -> ExportedModel:
    """Load the model in an exported folder. Exported scripts depend on this function.

    Args:
        folder: The folder with `model.json` and `model.pt`.

    Returns:
        The model with its trained weights. The trunk's published weights are not needed.

    Raises:
        OSError: A file is missing or cannot be read.
    """
    description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    spec = FoldSpec.model_validate(description["spec"])
    # A frozen trunk is part of the exported model, which embeds images.
    model = model_of(without_published_weights(with_trunk(spec)))
    model.load_state_dict(torch.load(folder / "model.pt", map_location="cpu", weights_only=True))
    return ExportedModel(model.eval(), spec, description["normalization"])


def image_files(paths: Sequence[Path]) -> list[Path]:
    """List image files. Exported scripts depend on this function.

    Args:
        paths: Files, and folders whose image files are listed in alphabetical order.

    Returns:
        The files in the order of `paths`.

    Raises:
        UnreadableImageError: A path does not exist, or there is no image.
    """
    files = [file for path in paths for file in (images_below(path) if path.is_dir() else [path])]
    if missing := [file for file in files if not file.is_file()]:
        raise UnreadableImageError(f"{missing[0]}: no such file or folder")
    if not files:
        raise UnreadableImageError(f"no image below {', '.join(str(path) for path in paths)}")
    return files


def embed_files(exported: ExportedModel, files: Sequence[Path], device: str = "cpu") -> Tensor:
    """Embed image files with the centre crops of the model's test. Exported scripts depend on this function.

    Args:
        exported: The model. The function moves it to `device`.
        files: Image files that Pillow can decode.
        device: cpu or cuda.

    Returns:
        Normalised embeddings (n, d), float32, on `device`, in the order of the files.

    Raises:
        UnreadableImageError: A file cannot be decoded, or the model embeds features and no images.
    """
    if exported.spec.trunk.name == NO_TRUNK:
        raise UnreadableImageError(
            f"this model embeds rows of {exported.spec.trunk.width} features and no images; in Python, call "
            "load_exported_model(folder).model on a float32 tensor of them"
        )
    images, target = exported.spec.images, torch.device(device)
    with TemporaryDirectory() as cache:
        try:
            packing = pack_files(Path(), [str(file) for file in files], images.resize, Path(cache) / "images")
        except BrokenImageError as error:
            raise UnreadableImageError(str(error).partition(";")[0]) from error
        rows = np.arange(len(files))
        labelled = LabelledImages(packing.images, rows, np.zeros_like(rows))
        return normalized(embed(exported.model.place(target), labelled, images, target), exported.normalization)
