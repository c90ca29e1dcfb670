"""Decoding of a dataset into one memory map, with the shorter side resized (specification, section 3).

MLRC's first transform is deterministic. Its uint8 output is therefore stored, and a training on it is equal, bit for
bit, to a training that decodes every image in every epoch. Images that the resize enlarges are stored as they are and
enlarged when they are read, which gives the same pixels. An interrupted packing is continued by the next call.
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
from protocols.images.resize import resized_to, size_after
from protocols.progress import Progress
from results.whole_files import put_in_place, whole_folder

_BATCH = 256
_TODO, _DONE, _BROKEN = 0, 1, 2


class BrokenImageError(Exception):
    """An image cannot be decoded. The message names the image and the remedy."""


@dataclass(frozen=True)
class Packing:
    """A pack of images.

    Attributes:
        images: The images, in the order in which they were given.
        skipped: Names of the files that are left out because they cannot be decoded.
        content_hash: Hash of the content of the other files.
    """

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
    """Decode image files as RGB, resize them and pack them.

    An existing pack of the same files (by name, size and modification time) is opened instead.

    Args:
        root: Folder of the files.
        names: Paths of the files below `root`.
        resize: Shorter side in pixels after the resize; None keeps the size.
        folder: Folder of the pack.
        skip_broken: Whether to leave out files that cannot be decoded. Their positions in the pack are then empty.
        progress: Called with the number of packed files and the number of all files.

    Returns:
        The pack.

    Raises:
        BrokenImageError: A file cannot be decoded, and `skip_broken` is False.
    """
    stamp = _stamp(root, names, resize)
    with _lock(folder):
        if not _is_pack_of(folder, stamp):
            _write(root, names, resize, folder, stamp, skip_broken, progress)
    images = PackedImages(folder)
    skipped = images.description["skipped"]
    assert isinstance(skipped, list)
    for name in skipped:
        _refuse_unless(skip_broken, root / name)
    return Packing(images, tuple(skipped), str(images.description["content"]))


def pack_arrays(images: NDArray[np.uint8], folder: Path) -> Packing:
    """Pack images of equal size. An existing pack of the same images is opened instead.

    Args:
        images: uint8 (N, height, width, channels).
        folder: Folder of the pack.

    Returns:
        The pack.
    """
    images = np.ascontiguousarray(images)
    content = hashlib.sha256(images.data).hexdigest()
    with _lock(folder):
        if not _is_pack_of(folder, content):
            shapes = np.tile(np.asarray(images.shape[1:], dtype=np.int64), (len(images), 1))
            with whole_folder(folder) as partial:
                images.tofile(partial / "pixels.bin")
                _describe(partial, shapes, {"stamp": content, "skipped": [], "content": content})
    return Packing(PackedImages(folder), (), content)


def _lock(folder: Path) -> FileLock:
    """A lock, so that two processes do not write the same pack. The second one waits and then opens the pack."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(folder.with_name(folder.name + ".lock"))


def decode(path: Path, resize: int | None) -> NDArray[np.uint8]:
    """Decode one file.

    Args:
        path: The file.
        resize: Shorter side in pixels after the bilinear resize by Pillow; None keeps the size.

    Returns:
        The image as RGB, uint8 (height, width, 3).

    Raises:
        BrokenImageError: The file cannot be decoded.
    """
    try:
        with Image.open(path) as image:
            rgb = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise BrokenImageError(f"{path}: cannot be decoded ({error})") from error
    return np.asarray(rgb if resize is None else resized_to(rgb, resize))


def _write(
    root: Path,
    names: Sequence[str],
    resize: int | None,
    folder: Path,
    stamp: str,
    skip_broken: bool,
    progress: Progress | None,
) -> None:
    own = _shapes([root / name for name in names])
    shapes = _resized_shapes(own, resize)
    # An enlarged image has no more information, but many times the bytes.
    enlarged = shapes.prod(axis=1) > own.prod(axis=1)
    stored = np.where(enlarged[:, None], own, shapes)
    offsets = _offsets(stored)
    # The name is fixed, so that the next call continues an interrupted one. The lock excludes other processes.
    partial = folder.with_name(folder.name + ".partial")
    _prepare_partial(partial, stamp, int(offsets[-1]), len(names))
    pixels = np.memmap(partial / "pixels.bin", dtype=np.uint8, mode="r+")
    state = np.memmap(partial / "state.bin", dtype=np.uint8, mode="r+")
    hashes = np.memmap(partial / "hashes.bin", dtype=np.uint8, mode="r+").reshape(-1, 32)

    def work(row: int) -> None:
        path = root / names[row]
        try:
            image = decode(path, None if enlarged[row] else resize)
        except BrokenImageError:
            _refuse_unless(skip_broken, path)
            state[row] = _BROKEN
            return
        pixels[offsets[row] : offsets[row + 1]] = image.reshape(-1)
        hashes[row] = np.frombuffer(hashlib.sha256(path.read_bytes()).digest(), dtype=np.uint8)
        state[row] = _DONE

    # Threads are enough, since Pillow's decoders release the interpreter lock.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for first in range(0, len(names), _BATCH):
            rows = [row for row in range(first, min(first + _BATCH, len(names))) if state[row] != _DONE]
            list(pool.map(work, rows))
            if progress:
                progress(min(first + _BATCH, len(names)), len(names))
    pixels.flush()
    skipped = [name for name, flag in zip(names, state, strict=True) if flag == _BROKEN]
    content = hashlib.sha256(hashes[state == _DONE].tobytes()).hexdigest()
    _describe(partial, shapes, {"stamp": stamp, "skipped": skipped, "content": content}, stored)
    for name in ("state.bin", "hashes.bin", "stamp"):
        (partial / name).unlink()
    put_in_place(partial, folder)


def _shapes(paths: Sequence[Path]) -> NDArray[np.int64]:
    """Height, width and channels of the files, from their headers; height and width 0 if a file is broken."""

    def shape(path: Path) -> tuple[int, int, int]:
        try:
            with Image.open(path) as image:
                width, height = image.size
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            return (0, 0, 3)
        return (height, width, 3)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return np.asarray(list(pool.map(shape, paths)), dtype=np.int64).reshape(-1, 3)


def _resized_shapes(shapes: NDArray[np.int64], resize: int | None) -> NDArray[np.int64]:
    """Return the shapes after the resize. Broken files keep their shape without pixels."""
    if resize is None:
        return shapes
    resized = shapes.copy()
    for row, (height, width, _) in enumerate(shapes.tolist()):
        if height:
            resized[row, 1], resized[row, 0] = size_after((width, height), resize)
    return resized


def _offsets(shapes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(shapes.prod(axis=1))])


def _refuse_unless(skip_broken: bool, path: Path) -> None:
    if not skip_broken:
        raise BrokenImageError(
            f"{path}: cannot be decoded; repair or remove it, or leave it out with --skip-broken-images"
        )


def _stamp(root: Path, names: Sequence[str], resize: int | None) -> str:
    """Identity of the files that is cheap to compute: names, sizes and modification times."""
    digest = hashlib.sha256(f"{resize}".encode())
    for name in names:
        status = (root / name).stat()
        digest.update(f"\n{name}\t{status.st_size}\t{status.st_mtime_ns}".encode())
    return digest.hexdigest()


def _is_pack_of(folder: Path, stamp: str) -> bool:
    """Tell whether `folder` holds a complete pack with this stamp. Another pack is removed."""
    if not (folder / "description.json").exists():
        return False
    if PackedImages(folder).description["stamp"] == stamp:
        return True
    shutil.rmtree(folder)
    return False


def _prepare_partial(partial: Path, stamp: str, n_bytes: int, n_images: int) -> None:
    """Create empty files for the pack, or keep those of an interrupted packing of the same files.

    All bytes are reserved now, so that a full disk is noticed here and not hours later.
    """
    stamp_file = partial / "stamp"
    if stamp_file.exists() and stamp_file.read_text() == f"{stamp} {n_bytes}":
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
    stamp_file.write_text(f"{stamp} {n_bytes}")


def _describe(
    folder: Path,
    shapes: NDArray[np.int64],
    description: dict[str, object],
    stored: NDArray[np.int64] | None = None,
) -> None:
    """Write position and shape of each image, its stored shape where images are enlarged later, and the description."""
    stored = shapes if stored is None else stored
    np.savez(folder / "layout.npz", offsets=_offsets(stored)[:-1], shapes=shapes, stored=stored)
    (folder / "description.json").write_text(json.dumps(description))
