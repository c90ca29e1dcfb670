"""Embeds images with the exported model that lies beside this file.

    python load_model.py bird.jpg my_images --to embeddings.npz

writes the arrays `names` (n,) and `embeddings` (n, d) of the image files and of those below the folders. From Python,
`load_exported_model(folder)` gives the model itself. Needs the packages of the suite that made it: `pip install -e .`
in its folder.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from protocols.load_exported import UnreadableImageError, embed_files, image_files, load_exported_model


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Embeds images with the model beside this file.")
    parser.add_argument("images", nargs="+", type=Path, help="image files, and folders of them")
    parser.add_argument("--to", type=Path, default=Path("embeddings.npz"), help="file to write")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    asked = parser.parse_args()
    try:
        files = image_files(asked.images)
        embeddings = embed_files(load_exported_model(Path(__file__).parent), files, asked.device)
    except UnreadableImageError as error:
        sys.exit(f"error: {error}")
    with asked.to.open("wb") as file:
        np.savez(file, names=[str(name) for name in files], embeddings=embeddings.cpu().numpy())
    print(f"{asked.to}: {len(files)} embeddings of {embeddings.shape[1]} dimensions")


if __name__ == "__main__":
    main()
