"""Embeds images with the exported model in the folder of this file. It needs torch, numpy and Pillow only.

    python load_model.py bird.jpg my_images --to embeddings.npz

The command takes image files and folders. It writes the arrays `names` (n,) and `embeddings` (n, d). In Python,
`load_model(folder)` returns the model: a function from uint8 RGB images (n, 3, crop, crop) to normalised embeddings
(n, d). `embeddings_of(files, folder)` decodes, resizes and crops image files and embeds them.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn

HERE = Path(__file__).parent
BATCH = 64
SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".gif"}


def load_model(folder: Path = HERE, device: str = "cpu") -> nn.Module:
    """Load the model: a function from uint8 RGB images (n, 3, crop, crop) to normalised embeddings (n, d)."""
    program = torch.export.load(folder / "model.pt2")
    if device != "cpu":
        from torch.export import passes

        program = passes.move_to_device_pass(program, device)
    module: nn.Module = program.module()
    return module


def centre_crop_of(file: Path, images: dict[str, Any]) -> NDArray[np.uint8]:
    """Decode an image file as RGB; resize and crop it as in the test: uint8 (crop, crop, 3)."""
    with Image.open(file) as opened:
        picture = as_rgb(opened)
    for shorter_side in (images["resize"], images.get("evaluation_resize")):
        if shorter_side is not None:
            width, height = picture.size
            new_width = max(shorter_side, int(shorter_side * width / height))
            new_height = max(shorter_side, int(shorter_side * height / width))
            picture = picture.resize((new_width, new_height), Image.Resampling.BILINEAR)
    side: int = images["crop"]
    pixels = np.asarray(picture)
    below, beside = (max(side - length, 0) for length in pixels.shape[:2])
    pixels = np.pad(pixels, ((below // 2, below - below // 2), (beside // 2, beside - beside // 2), (0, 0)))
    top, left = (round((length - side) / 2) for length in pixels.shape[:2])
    return pixels[top : top + side, left : left + side]


def as_rgb(picture: Image.Image) -> Image.Image:
    """Convert a picture as in the training: grey pictures with 9 to 16 bits are scaled by their upper byte."""
    if picture.mode.startswith("I;16") or (picture.mode == "I" and picture.format in ("PPM", "PNG")):
        bits = int(getattr(picture, "tag_v2", {}).get(258, (16,))[0])
        values = np.asarray(picture).astype(np.int64) >> (bits - 8)
        return Image.fromarray(values.clip(0, 255).astype(np.uint8)).convert("RGB")
    if picture.mode in ("I", "F"):
        raise ValueError("the range of its numbers is not known")
    return picture.convert("RGB")


def image_files(paths: Sequence[Path]) -> list[Path]:
    """List image files; the images below a folder come in alphabetical order."""
    files: list[Path] = []
    for path in paths:
        below = [file for file in sorted(path.rglob("*")) if file.suffix.lower() in SUFFIXES]
        files += [file for file in below if not file.name.startswith(".")] if path.is_dir() else [path]
    if missing := [file for file in files if not file.is_file()]:
        sys.exit(f"error: {missing[0]}: no such file or folder")
    if not files:
        sys.exit(f"error: no image below {', '.join(map(str, paths))}")
    return files


def embeddings_of(files: Sequence[Path], folder: Path = HERE, device: str = "cpu") -> NDArray[np.float32]:
    """Embed image files: float32 (n, d), in the order of the files."""
    images = json.loads((folder / "model.json").read_text(encoding="utf-8"))["spec"]["images"]
    model, parts = load_model(folder, device), []
    for first in range(0, len(files), BATCH):
        crops = []
        for file in files[first : first + BATCH]:
            try:
                crops.append(centre_crop_of(file, images))
            except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
                sys.exit(f"error: {file}: cannot be decoded")
        batch = torch.from_numpy(np.stack(crops)).permute(0, 3, 1, 2).contiguous()
        with torch.no_grad():
            parts.append(model(batch.to(device)).cpu().numpy())
    return np.concatenate(parts)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Embeds images with the model in the folder of this file.")
    parser.add_argument("images", nargs="+", type=Path, help="image files and folders with image files")
    parser.add_argument("--to", type=Path, default=Path("embeddings.npz"), help="file to write")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    arguments = parser.parse_args()
    files = image_files(arguments.images)
    embeddings = embeddings_of(files, device=arguments.device)
    with arguments.to.open("wb") as file:
        np.savez(file, names=[str(name) for name in files], embeddings=embeddings)
    print(f"{arguments.to}: {len(files)} embeddings of {embeddings.shape[1]} dimensions")


if __name__ == "__main__":
    main()
