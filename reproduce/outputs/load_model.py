"""Embeds images with the exported model in the folder of this file. It needs torch, numpy and Pillow only.

    python load_model.py bird.jpg my_images --to embeddings.npz

The command takes image files and folders. It writes the arrays `names` (n,) and `embeddings` (n, d). In Python,
`load_model(folder)` returns the model: a function from uint8 RGB images (n, 3, crop, crop) to normalised embeddings
(n, d). `embeddings_of(files, folder)` decodes, resizes and crops image files and embeds them.
"""

import argparse
import json
import os
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
# Formats that Pillow decodes by itself, as in the training.
SUFFIXES = {
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".jp2", ".j2k", ".j2c", ".jpc", ".jpf", ".jpx"),
    *(".png", ".apng", ".gif", ".webp", ".avif", ".avifs", ".bmp", ".dib", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".pfm", ".qoi", ".psd", ".ico", ".icns", ".cur", ".dds", ".blp"),
    *(".tga", ".icb", ".vda", ".vst", ".sgi", ".rgb", ".rgba", ".bw", ".pcx", ".dcx", ".pcd", ".pxr", ".ras"),
    *(".im", ".iim", ".fit", ".fits", ".fli", ".flc", ".ftc", ".ftu", ".gbr", ".msp", ".xbm", ".xpm"),
}
# What turns a picture upright, by the value of its EXIF tag.
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def load_model(folder: Path = HERE, device: str = "cpu") -> nn.Module:
    """Load the model: a function from uint8 RGB images (n, 3, crop, crop) to normalised embeddings (n, d)."""
    program = torch.export.load(folder / "model.pt2")
    if device != "cpu":
        from torch.export import passes

        program = passes.move_to_device_pass(program, device)
    module: nn.Module = program.module()
    return module


def centre_crop_of(file: Path, images: dict[str, Any], *, as_mlrc: bool) -> NDArray[np.uint8]:
    """Decode an image file as RGB; resize and crop it as in the test: uint8 (crop, crop, 3)."""
    with Image.open(file) as opened:
        picture = as_rgb(opened, as_mlrc=as_mlrc)
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


def as_rgb(picture: Image.Image, *, as_mlrc: bool = False) -> Image.Image:
    """Convert an opened picture as in the training.

    Grey pictures with 9 to 16 bits are scaled by their upper byte. Transparent ones get white ground, and all are
    turned as their EXIF tag says; not so `as_mlrc`, for models of the datasets that MLRC trained on.
    """
    turn = None if as_mlrc or picture.format == "TIFF" else turn_of(picture)
    picture.load()
    transparent = picture.info.get("transparency")
    if picture.mode.startswith("I;16") or (picture.mode == "I" and picture.format in ("PPM", "PNG")):
        bits = int(getattr(picture, "tag_v2", {}).get(258, (16,))[0])
        values = np.asarray(picture).astype(np.int64)
        picture = Image.fromarray((values >> (bits - 8)).clip(0, 255).astype(np.uint8))
        if transparent is not None:
            alpha = Image.fromarray(np.where(values == transparent, 0, 255).astype(np.uint8))
            picture = Image.merge("LA", (picture, alpha))
    elif picture.mode in ("I", "F"):
        raise ValueError("the range of its numbers is not known")
    if picture.has_transparency_data and not as_mlrc:
        ground = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(ground, picture.convert("RGBA"))
    rgb = picture.convert("RGB")
    return rgb if turn is None else rgb.transpose(turn)


def turn_of(picture: Image.Image) -> Image.Transpose | None:
    """Return what turns an opened picture upright. Pillow turns TIFF files itself."""
    try:
        return TURNS.get(picture.getexif().get(274, 1))
    except Exception:  # Pillow raises many kinds of errors for a damaged tag.
        return None


def image_files(paths: Sequence[Path]) -> list[Path]:
    """List image files; the images below a folder come in alphabetical order."""
    files: list[Path] = []
    for path in paths:
        files += images_below(path) if path.is_dir() else [path]
    if missing := [file for file in files if not file.is_file()]:
        sys.exit(f"error: {missing[0]}: no such file or folder")
    if not files:
        sys.exit(f"error: no image below {', '.join(map(str, paths))}")
    return files


def images_below(top: Path) -> list[Path]:
    """List the images below a folder in alphabetical order.

    Links are followed, but no folder is visited twice, and none that holds the first one.
    """
    files: list[Path] = []
    seen = set(top.resolve().parents)
    for folder, inner, names in os.walk(top, followlinks=True):
        if (real := Path(folder).resolve()) in seen:
            inner.clear()
            continue
        seen.add(real)
        inner[:] = [name for name in inner if not name.startswith(".")]
        files += [Path(folder, name) for name in names if not name.startswith(".")]
    return sorted(file for file in files if file.suffix.lower() in SUFFIXES)


def embeddings_of(files: Sequence[Path], folder: Path = HERE, device: str = "cpu") -> NDArray[np.float32]:
    """Embed image files: float32 (n, d), in the order of the files."""
    spec = json.loads((folder / "model.json").read_text(encoding="utf-8"))["spec"]
    as_mlrc = spec["dataset"] != "folder"
    model, parts = load_model(folder, device), []
    for first in range(0, len(files), BATCH):
        crops = []
        for file in files[first : first + BATCH]:
            try:
                crops.append(centre_crop_of(file, spec["images"], as_mlrc=as_mlrc))
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
