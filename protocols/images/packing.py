"""Decoding a dataset once: shorter side resized, written as one memory map (specification, section 3).

MLRC's first transform is deterministic, so its uint8 output can be kept and training on it is bit-equal to decoding
every image again in every epoch. The work is resumable: what an interrupted run has written is not done again.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from PIL import Image

from protocols.images.packed_images import PackedImages
from protocols.progress import Progress
from results.whole_files import put_in_place, whole_folder

_BATCH = 256
_TODO, _DONE, _BROKEN = 0, 1, 2


class BrokenImageError(Exception):
    """An image cannot be decoded; the message names it and says what to do."""


@dataclass(frozen=True)
class Packing:
    """A pack whose image i is file i of the list given, the files left out of it by name, and a hash of the rest."""

    images: PackedImages
    skipped: tuple[str, ...]
    content_hash: str


def pack_files(
    root: Path,
    names: Sequence[str],
    resize: int | None,
    folder: Path,
    *,
    skip_broken: bool = False,
    progress: Progress | None = None,
) -> Packing:
    """Decodes `names` below `root` as RGB, resizes the shorter side to `resize` and packs them into `folder`.

    An existing pack of the same files (by name, size and modification time) is opened instead. Raises BrokenImageError
    at a file that cannot be decoded, unless `skip_broken`: then its place stays empty and the result names it.
    """
    stamp = _stamp(root, names, resize)
    with _alone(folder):
        if not _is_pack_of(folder, stamp):
            _write(root, names, resize, folder, stamp, skip_broken, progress)
    images = PackedImages(folder)
    skipped = images.description["skipped"]
    assert isinstance(skipped, list)
    for name in skipped:
        _refuse_unless(skip_broken, root / name)
    return Packing(images, tuple(skipped), str(images.description["content"]))


def pack_arrays(images: NDArray[np.uint8], folder: Path) -> Packing:
    """Packs equally sized images (N, height, width, channels); an existing equal pack is opened instead."""
    images = np.ascontiguousarray(images)
    content = hashlib.sha256(images.data).hexdigest()
    with _alone(folder):
        if not _is_pack_of(folder, content):
            shapes = np.tile(np.asarray(images.shape[1:], dtype=np.int64), (len(images), 1))
            with whole_folder(folder) as partial:
                images.tofile(partial / "pixels.bin")
                _describe(partial, shapes, {"stamp": content, "skipped": [], "content": content})
    return Packing(PackedImages(folder), (), content)


def _alone(folder: Path) -> FileLock:
    """Two suites started side by side must not write the same pack: the second waits, then finds it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(folder.with_name(folder.name + ".lock"))


def decode(path: Path, resize: int | None) -> NDArray[np.uint8]:
    """One file as RGB (height, width, 3), shorter side resized bilinearly by Pillow; raises BrokenImageError."""
    try:
        with Image.open(path) as image:
            rgb = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise BrokenImageError(f"{path}: cannot be decoded ({error})") from error
    return np.asarray(rgb if resize is None else resized_to(rgb, resize))


def resized_to(picture: Image.Image, shorter_side: int) -> Image.Image:
    """The picture with its shorter side resized to that many pixels, bilinearly by Pillow."""
    return picture.resize(_shorter_side_to(picture.size, shorter_side), Image.Resampling.BILINEAR)


def _write(
    root: Path,
    names: Sequence[str],
    resize: int | None,
    folder: Path,
    stamp: str,
    skip_broken: bool,
    progress: Progress | None,
) -> None:
    shapes = _shapes([root / name for name in names], resize)
    offsets = _offsets(shapes)
    # A fixed name: the next call goes on with what an interrupted one has written. The lock keeps others away.
    partial = folder.with_name(folder.name + ".partial")
    _prepare_partial(partial, stamp, int(offsets[-1]), len(names))
    pixels = np.memmap(partial / "pixels.bin", dtype=np.uint8, mode="r+")
    state = np.memmap(partial / "state.bin", dtype=np.uint8, mode="r+")
    hashes = np.memmap(partial / "hashes.bin", dtype=np.uint8, mode="r+").reshape(-1, 32)

    def work(row: int) -> None:
        path = root / names[row]
        try:
            image = decode(path, resize)
        except BrokenImageError:
            _refuse_unless(skip_broken, path)
            state[row] = _BROKEN
            return
        pixels[offsets[row] : offsets[row + 1]] = image.reshape(-1)
        hashes[row] = np.frombuffer(hashlib.sha256(path.read_bytes()).digest(), dtype=np.uint8)
        state[row] = _DONE

    # Threads, since Pillow's decoders release the interpreter lock.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for first in range(0, len(names), _BATCH):
            rows = [row for row in range(first, min(first + _BATCH, len(names))) if state[row] != _DONE]
            list(pool.map(work, rows))
            if progress:
                progress(min(first + _BATCH, len(names)), len(names))
    pixels.flush()
    skipped = [name for name, flag in zip(names, state, strict=True) if flag == _BROKEN]
    content = hashlib.sha256(hashes[state == _DONE].tobytes()).hexdigest()
    _describe(partial, shapes, {"stamp": stamp, "skipped": skipped, "content": content})
    for name in ("state.bin", "hashes.bin", "stamp"):
        (partial / name).unlink()
    put_in_place(partial, folder)


def _shorter_side_to(size: tuple[int, int], target: int) -> tuple[int, int]:
    """Width and height after the resize; the longer side is cut to whole pixels as torchvision does."""
    width, height = size
    if width <= height:
        return target, int(target * height / width)
    return int(target * width / height), target


def _shapes(paths: Sequence[Path], resize: int | None) -> NDArray[np.int64]:
    """Height, width and channels after the resize, from the files' headers; zeros where there is none to be read."""

    def shape(path: Path) -> tuple[int, int, int]:
        try:
            with Image.open(path) as image:
                size = image.size
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            return (0, 0, 3)
        width, height = size if resize is None else _shorter_side_to(size, resize)
        return (height, width, 3)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return np.asarray(list(pool.map(shape, paths)), dtype=np.int64).reshape(-1, 3)


def _offsets(shapes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(shapes.prod(axis=1))])


def _refuse_unless(skip_broken: bool, path: Path) -> None:
    if not skip_broken:
        raise BrokenImageError(
            f"{path}: cannot be decoded; repair or remove it, or go on without it with --skip-broken-images"
        )


def _stamp(root: Path, names: Sequence[str], resize: int | None) -> str:
    """Cheap identity of the files: a changed file changes its size or its modification time."""
    digest = hashlib.sha256(f"{resize}".encode())
    for name in names:
        status = (root / name).stat()
        digest.update(f"\n{name}\t{status.st_size}\t{status.st_mtime_ns}".encode())
    return digest.hexdigest()


def _is_pack_of(folder: Path, stamp: str) -> bool:
    """Whether `folder` is a whole pack of that stamp; a pack of anything else is removed."""
    if not (folder / "description.json").exists():
        return False
    if PackedImages(folder).description["stamp"] == stamp:
        return True
    shutil.rmtree(folder)
    return False


def _prepare_partial(partial: Path, stamp: str, n_bytes: int, n_images: int) -> None:
    """Room for the pack, or the state of an interrupted packing of the same files.

    The bytes are reserved at once, so that a disk too small is noticed here and not hours later.
    """
    known = partial / "stamp"
    if known.exists() and known.read_text() == f"{stamp} {n_bytes}":
        return
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    with (partial / "pixels.bin").open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, max(n_bytes, 1))
        else:
            file.truncate(max(n_bytes, 1))
    (partial / "state.bin").write_bytes(bytes(n_images))
    (partial / "hashes.bin").write_bytes(bytes(32 * n_images))
    known.write_text(f"{stamp} {n_bytes}")


def _describe(folder: Path, shapes: NDArray[np.int64], description: dict[str, object]) -> None:
    """Writes where each image lies in the pixels, and what the pack is."""
    np.savez(folder / "layout.npz", offsets=_offsets(shapes)[:-1], shapes=shapes)
    (folder / "description.json").write_text(json.dumps(description))
