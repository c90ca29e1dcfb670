"""Loads the exported model that lies beside this file and embeds images with it.

    python load_model.py bird.jpg my_images --to embeddings.npz

writes the arrays `names` (n,) and `embeddings` (n, d) of the image files and of those below the folders. From Python,
`load_model()` gives the model itself. Needs the packages of the suite that made it: `pip install -e .` in its folder.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from losses.plugin import Normalization
from protocols.datasets.folder import images_below
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import BrokenImageError, pack_files
from protocols.metrics.retrieval import normalized
from protocols.trunks.embed import embed
from protocols.trunks.embedding_model import EmbeddingModel, model_of
from protocols.trunks.trunk_registry import RANDOM
from results.training_spec import FoldSpec

HERE = Path(__file__).parent


def load_model(folder: Path = HERE) -> tuple[EmbeddingModel, FoldSpec, Normalization]:
    """The model in evaluation mode, all that decided its training, and how its embeddings are normalised."""
    about = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    spec = FoldSpec.model_validate(about["spec"])
    model = model_of(without_weights(spec))
    model.load_state_dict(torch.load(folder / "model.pt", map_location="cpu", weights_only=True))
    return model.eval(), spec, about["normalization"]


def without_weights(spec: FoldSpec) -> FoldSpec:
    """The model whose trunk need not find its published weights: the checkpoint holds all of them."""
    return spec.model_copy(update={"trunk": spec.trunk.model_copy(update={"weights": RANDOM})})


def embed_files(
    model: EmbeddingModel, spec: FoldSpec, normalization: Normalization, files: Sequence[Path], device: str = "cpu"
) -> Tensor:
    """Normalised embeddings (n, d) of image files, read and cropped as for the model's test.

    Raises BrokenImageError for a file that cannot be decoded.
    """
    with TemporaryDirectory() as cache:
        packing = pack_files(Path(), [str(file) for file in files], spec.images.resize, Path(cache) / "images")
        rows = np.arange(len(files))
        images = LabelledImages(packing.images, rows, np.zeros_like(rows))
        place = torch.device(device)
        return normalized(embed(model.place(place), images, spec.images, place), normalization)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Embeds images with the model beside this file.")
    parser.add_argument("images", nargs="+", type=Path, help="image files, and folders of them")
    parser.add_argument("--to", type=Path, default=Path("embeddings.npz"), help="file to write")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    asked = parser.parse_args()
    files = [file for path in asked.images for file in (images_below(path) if path.is_dir() else [path])]
    if missing := [file for file in files if not file.is_file()]:
        sys.exit(f"error: {missing[0]}: no such file or folder")
    if not files:
        sys.exit(f"error: no image below {asked.images[0]}")
    try:
        embeddings = embed_files(*load_model(), files, asked.device)
    except BrokenImageError as error:
        sys.exit(f"error: {str(error).partition(';')[0]}")
    with asked.to.open("wb") as file:
        np.savez(file, names=[str(name) for name in files], embeddings=embeddings.cpu().numpy())
    print(f"{asked.to}: {len(files)} embeddings of {embeddings.shape[1]} dimensions")


if __name__ == "__main__":
    main()
