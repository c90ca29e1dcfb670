"""Embeds images with the exported model in the folder of this file.

    python load_model.py bird.jpg my_images --to embeddings.npz

The command takes image files and folders. It writes the arrays `names` (n,) and `embeddings` (n, d). In Python,
`load_exported_model(folder)` returns the model. The script needs the suite that exported the model; install it with
`pip install -e .` in the folder of the suite.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from protocols.load_exported import UnreadableImageError, embed_files, image_files, load_exported_model


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Embeds images with the model in the folder of this file.")
    parser.add_argument("images", nargs="+", type=Path, help="image files and folders with image files")
    parser.add_argument("--to", type=Path, default=Path("embeddings.npz"), help="file to write")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    arguments = parser.parse_args()
    try:
        files = image_files(arguments.images)
        embeddings = embed_files(load_exported_model(Path(__file__).parent), files, arguments.device)
    except UnreadableImageError as error:
        sys.exit(f"error: {error}")
    with arguments.to.open("wb") as file:
        np.savez(file, names=[str(name) for name in files], embeddings=embeddings.cpu().numpy())
    print(f"{arguments.to}: {len(files)} embeddings of {embeddings.shape[1]} dimensions")


if __name__ == "__main__":
    main()
