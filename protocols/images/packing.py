"""Decoding of a dataset into one memory map, with the shorter side resized (specification, section 3).

MLRC's first transform is deterministic. Its uint8 output is therefore stored, and a training on it is equal, bit for
bit, to a training that decodes every image in every epoch. Images that the resize enlarges are stored as they are and
enlarged when they are read, which gives the same pixels. An interrupted packing is continued by the next call.

A pack is never changed or replaced: its folder has a hash of what it holds in the name. Other images give another
folder, so a run keeps the pack that it started with.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from protocols.images.crops import resized_shapes
from protocols.images.decoding import BrokenImageError, UnknownRangeError, decoded, header_of
from protocols.images.image_files import HASH_BYTES, ImageFiles, equal_rows, in_threads
from protocols.images.packed_images import DESCRIPTION, LAYOUT, PIXELS, PackedImages
from protocols.progress import Progress
from protocols.verified_files import record_of, set_damaged_aside
from results.values import fingerprint_of
from results.whole_files import ChangedFileError, make_folder, put_in_place, whole_folder, write_whole

_BATCH = 256
_TODO, _DONE, _BROKEN, _ALTERED = 0, 1, 2, 3
"""`_ALTERED` is decoded, but to another picture than in MLRC's code: transparent, or turned."""


@dataclass(frozen=True)
class Packing:
    """A pack of images.

    Attributes:
        skipped: Names of the files that are left out because they cannot be decoded.
        content_hash: Hash of the content of the other files.
        equal_files: Groups of positions of files with equal content.
    """

    images: PackedImages
    skipped: tuple[str, ...]
    content_hash: str
    equal_files: tuple[tuple[int, ...], ...] = ()


def pack_files(
    root: Path,
    names: Sequence[str],
    resize: int | None,
    folder: Path,
    *,
    skip_broken: bool = False,
    progress: Progress | None = None,
    as_mlrc: bool = False,
) -> Packing:
    """Decode image files as RGB, resize them and pack them.

    An existing pack of the same files is opened instead. The files are known by their names, sizes, times of change and
    numbers in the file system; if one of these differs, by their content. A damaged pack is set aside and made again.

    Args:
        resize: Shorter side in pixels after the resize; None keeps the size.
        progress: Called with the number of packed files and the number of all files.
        as_mlrc: Whether to ignore transparency and EXIF tags, as MLRC's code does.
    """
    files = ImageFiles(root, names, resize, as_mlrc)
    with _lock(folder):
        stamp = files.stamp()
        images = _known_pack(files, stamp, folder)
        if images is None:
            images = _write(files, stamp, folder, skip_broken, progress)
    skipped = images.description["skipped"]
    for name in skipped:
        _refuse_unless(skip_broken, root / name)
    equal = tuple(tuple(group) for group in images.description["equal"])
    return Packing(images, tuple(skipped), str(images.description["content"]), equal)


def pack_arrays(images: NDArray[np.uint8], folder: Path) -> Packing:
    """Pack images of equal size. An existing pack of the same images is opened instead.

    Args:
        images: uint8 (N, height, width, channels).
    """
    images = np.ascontiguousarray(images)
    content = hashlib.sha256(images.data).hexdigest()
    identity = hashlib.sha256(f"{images.shape} {content}".encode()).hexdigest()[:32]
    with _lock(folder):
        packed = sound_pack(folder, identity)
        if packed is None:
            packed = PackedImages(_pack_folder(folder, identity), identity)
            shapes = np.tile(np.asarray(images.shape[1:], dtype=np.int64), (len(images), 1))
            with whole_folder(packed.folder) as partial:
                images.tofile(partial / PIXELS)
                _describe(partial, shapes, {"identity": identity, "skipped": [], "content": content})
    return Packing(packed, (), content)


def sound_pack(folder: Path, identity: str) -> PackedImages | None:
    """Open a pack and check it; None if there is none. A damaged one is set aside."""
    images = PackedImages(_pack_folder(folder, identity), identity)
    if not images.folder.exists():
        return None
    try:
        images.check()
    except ChangedFileError:
        set_damaged_aside(images.folder, "the pack of images")
        return None
    return images


def _pack_folder(folder: Path, identity: str) -> Path:
    return folder.with_name(f"{folder.name}-{identity}")


def _lock(folder: Path) -> FileLock:
    """A lock, so that two processes do not write the same pack. The second one waits and then opens the pack."""
    make_folder(folder.parent)
    return FileLock(folder.with_name(folder.name + ".lock"))


def _known_pack(files: ImageFiles, stamp: str, folder: Path) -> PackedImages | None:
    note = _note_path(folder)
    try:
        noted = json.loads(note.read_bytes())
        known, identity = noted["stamp"] == stamp, str(noted["identity"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        set_damaged_aside(note, "the note about the pack")
        return None
    if known:
        return sound_pack(folder, identity)
    # The files were copied or touched, which need not change what they hold. To read them is faster than to decode.
    images = sound_pack(folder, files.identity(in_threads(files.hash_of, range(len(files)))))
    if images is not None:
        _note(folder, stamp, images.identity)
    return images


def _note_path(folder: Path) -> Path:
    """The file that notes which pack belongs to the files, so that they need not be read to find it."""
    return folder.with_name(folder.name + ".json")


def _note(folder: Path, stamp: str, identity: str) -> None:
    write_whole(_note_path(folder), json.dumps({"stamp": stamp, "identity": identity}))


def _write(files: ImageFiles, stamp: str, folder: Path, skip_broken: bool, progress: Progress | None) -> PackedImages:
    headers = in_threads(lambda row: header_of(files.path(row), as_mlrc=files.as_mlrc), range(len(files)))
    own = np.asarray([(height, width, 3) for height, width, _ in headers], dtype=np.int64).reshape(-1, 3)
    deep = np.asarray([deep for *_, deep in headers], dtype=np.bool_)
    shapes = resized_shapes(own, files.resize)
    # An enlarged image has no more information, but many times the bytes.
    enlarged = shapes.prod(axis=1) > own.prod(axis=1)
    stored = np.where(enlarged[:, None], own, shapes)
    offsets = _offsets(stored)
    # The name is fixed, so that the next call continues an interrupted one. The lock excludes other processes.
    partial = folder.with_name(folder.name + ".partial")
    _prepare_partial(partial, stamp, int(offsets[-1]), len(files))
    state, hashes = _decode_all(files, partial, offsets, enlarged, skip_broken, progress)
    skipped = [name for name, flag in zip(files.names, state, strict=True) if flag == _BROKEN]
    if files.stamp() != stamp:
        shutil.rmtree(partial)
        raise BrokenImageError(f"{files.root}: files changed while they were decoded; run the same command again")
    identity = files.identity([row.tobytes() for row in hashes])
    content = _content_hash(hashes, state, deep)
    equal = equal_rows(row.tobytes() for row in hashes)
    description = {"identity": identity, "skipped": skipped, "content": content, "equal": equal}
    _describe(partial, shapes, description, stored)
    for name in ("state.bin", "hashes.bin", "stamp"):
        (partial / name).unlink()
    images = sound_pack(folder, identity)
    if images is None:
        images = PackedImages(_pack_folder(folder, identity), identity)
        put_in_place(partial, images.folder)
    else:
        shutil.rmtree(partial)
    _note(folder, stamp, identity)
    return images


def _decode_all(
    files: ImageFiles,
    partial: Path,
    offsets: NDArray[np.int64],
    enlarged: NDArray[np.bool_],
    skip_broken: bool,
    progress: Progress | None,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Decode the files that an interrupted packing has not decoded; return the state and the hash of each file."""
    pixels = np.memmap(partial / PIXELS, dtype=np.uint8, mode="r+")
    state = np.memmap(partial / "state.bin", dtype=np.uint8, mode="r+")
    hashes = np.memmap(partial / "hashes.bin", dtype=np.uint8, mode="r+", shape=(len(files), HASH_BYTES))
    outcomes: dict[int, int] = {}

    def work(row: int) -> None:
        hashes[row] = np.frombuffer(files.hash_of(row), dtype=np.uint8)
        try:
            resize = None if enlarged[row] else files.resize
            image, is_altered = decoded(files.path(row), resize, as_mlrc=files.as_mlrc)
        except BrokenImageError as error:
            if isinstance(error, UnknownRangeError) and not skip_broken:
                raise
            _refuse_unless(skip_broken, files.path(row))
            outcomes[row] = _BROKEN
        else:
            pixels[offsets[row] : offsets[row + 1]] = image.reshape(-1)
            outcomes[row] = _ALTERED if is_altered else _DONE

    for first in range(0, len(files), _BATCH):
        last = min(first + _BATCH, len(files))
        try:
            in_threads(work, [row for row in range(first, last) if state[row] in (_TODO, _BROKEN)])
        finally:
            # The pixels are on the disk before a file counts as decoded: a power cut must not leave empty images.
            pixels.flush()
            hashes.flush()
            state[list(outcomes)] = list(outcomes.values())
            state.flush()
        if progress:
            progress(last, len(files))
    return np.array(state), np.array(hashes)


def _content_hash(hashes: NDArray[np.uint8], state: NDArray[np.uint8], deep: NDArray[np.bool_]) -> str:
    """Hash of the decoded files.

    Deep grey images had other pixels before they were scaled, and so had transparent and turned ones before they were
    decoded as people see them. They count as others.
    """
    digest = hashlib.sha256()
    for row in np.flatnonzero(np.isin(state, (_DONE, _ALTERED))):
        mark = b"as seen" if state[row] == _ALTERED else b"upper byte" if deep[row] else b""
        file_hash = hashes[row].tobytes()
        digest.update(hashlib.sha256(mark + file_hash).digest() if mark else file_hash)
    return digest.hexdigest()


def _offsets(shapes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(shapes.prod(axis=1))])


def _refuse_unless(skip_broken: bool, path: Path) -> None:
    if not skip_broken:
        raise BrokenImageError(
            f"{path}: cannot be decoded; repair or remove it, or leave it out with --skip-broken-images"
        )


def _prepare_partial(partial: Path, stamp: str, n_bytes: int, n_images: int) -> None:
    """Create empty files for the pack, or keep those of an interrupted packing of the same files.

    All bytes are reserved now, so that a full disk is noticed here and not hours later.
    """
    sizes = {PIXELS: max(n_bytes, 1), "state.bin": n_images, "hashes.bin": HASH_BYTES * n_images}
    stamp_file = partial / "stamp"
    if stamp_file.exists() and stamp_file.read_bytes() == stamp.encode():
        files = {name: partial / name for name in sizes}
        if all(file.exists() and file.stat().st_size == sizes[name] for name, file in files.items()):
            return
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    with (partial / PIXELS).open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, sizes[PIXELS])
        else:
            file.truncate(sizes[PIXELS])
    for name in ("state.bin", "hashes.bin"):
        (partial / name).write_bytes(bytes(sizes[name]))
    stamp_file.write_bytes(stamp.encode())


def _describe(
    folder: Path,
    shapes: NDArray[np.int64],
    description: dict[str, Any],
    stored: NDArray[np.int64] | None = None,
) -> None:
    """Write position and shape of each image, its stored shape where images are enlarged later, and the description."""
    stored = shapes if stored is None else stored
    np.savez(folder / LAYOUT, offsets=_offsets(stored)[:-1], shapes=shapes, stored=stored)
    complete = {**description, "files": {name: record_of(folder / name) for name in (PIXELS, LAYOUT)}}
    (folder / DESCRIPTION).write_text(json.dumps({**complete, "checksum": fingerprint_of(complete)}))
