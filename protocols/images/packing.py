"""Decoding of a dataset into one memory map, with the shorter side resized (specification, section 3).

MLRC's first transform is deterministic. Its uint8 output is therefore stored, and a training on it is equal, bit for
bit, to a training that decodes every image in every epoch. Images that the resize enlarges are stored as they are and
enlarged when they are read, which gives the same pixels. An interrupted packing is continued by the next call.

A pack is never changed: its folder has a hash of what it holds in the name. Other images give another folder, so a run
keeps the pack that it started with.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from PIL import Image

from protocols.images.batch_source import done_ahead
from protocols.images.crops import size_after
from protocols.images.decoding import BrokenImageError, decoded
from protocols.images.packed_images import INDEX, INDEX_DTYPE, PIXELS, PackedImages
from protocols.progress import Progress
from results.values import fingerprint_of
from results.whole_files import make_folder, put_in_place, whole_folder, write_whole

_PACK_FORMAT = 4
"""Raise it with a change of the pixels or of the files of a pack. Packs of other formats are not opened."""

_BATCH = 256
_NO_HASH = bytes(32)
_AS_IT_IS, _BROKEN, _AS_SEEN, _UPPER_BYTE = 0, 1, 2, 3
_MARKS = {_AS_IT_IS: b"", _AS_SEEN: b"as seen", _UPPER_BYTE: b"upper byte"}
"""Files that are decoded to another picture than Pillow's conversion to RGB have a mark in the hash of the content."""


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


@dataclass(frozen=True)
class _Files:
    root: Path
    names: Sequence[str]
    resize: int | None
    as_mlrc: bool

    def stamp(self) -> str:
        """Hash of names, sizes and times of the files. They are not read."""
        digest = hashlib.sha256(f"{_PACK_FORMAT} {self.resize} {self.as_mlrc}".encode())
        for name in self.names:
            path = self.root / name
            status = path.stat() if path.exists() else None
            digest.update(f"\n{name}\t{status and (status.st_size, status.st_mtime_ns, status.st_ctime_ns)}".encode())
        return digest.hexdigest()[:32]

    def hashes(self) -> list[bytes]:
        return list(done_ahead(hash_of_file, [self.root / name for name in self.names], os.cpu_count() or 1))

    def identity(self, hashes: Iterable[bytes]) -> str:
        """Name of the pack of these files by what it holds."""
        content = hashlib.sha256(b"".join(hashes)).hexdigest()
        return fingerprint_of([_PACK_FORMAT, self.resize, self.as_mlrc, list(self.names), content])

    def packed(self, row: int, skip_broken: bool) -> tuple[NDArray[np.void], NDArray[np.uint8]]:
        """Decode one file: its entry in the index and its pixels. A broken file has none, or raises its error."""
        path = self.root / self.names[row]
        entry = np.zeros((), dtype=INDEX_DTYPE)
        entry["hash"] = np.frombuffer(hash_of_file(path), dtype=np.uint8)
        try:
            image = decoded(path, as_mlrc=self.as_mlrc)
        except BrokenImageError:
            if not skip_broken:
                raise
            entry["state"], entry["shape"], entry["stored"] = _BROKEN, (0, 0, 3), (0, 0, 3)
            return entry, np.empty(0, dtype=np.uint8)
        entry["state"] = _AS_SEEN if image.is_altered else _UPPER_BYTE if image.is_deep else _AS_IT_IS
        picture = image.picture
        width, height = picture.size if self.resize is None else size_after(picture.size, self.resize)
        entry["shape"] = (height, width, 3)
        # An enlarged image has no more information, but many times the bytes.
        if width * height <= picture.width * picture.height:
            picture = picture.resize((width, height), Image.Resampling.BILINEAR)
        entry["stored"] = (picture.height, picture.width, 3)
        return entry, np.asarray(picture)


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

    An existing pack of the same files is opened instead. The files are known by their names, sizes and times of change;
    if one of these differs, by their content.

    Args:
        resize: Shorter side in pixels after the resize; None keeps the size.
        folder: Begin of the names of packs of these files.
        skip_broken: Whether files that cannot be decoded are left out; else they raise BrokenImageError.
        progress: Called with the number of packed files and the number of all files.
        as_mlrc: Whether to ignore transparency and EXIF tags, as MLRC's code does.
    """
    files = _Files(root, names, resize, as_mlrc)
    with cache_lock(folder):
        images = _known_pack(files, folder) or _write(files, folder, skip_broken, progress)
    states, hashes = images.index["state"], [entry.tobytes() for entry in images.index["hash"]]
    skipped = tuple(names[row] for row in np.flatnonzero(states == _BROKEN).tolist())
    if skipped and not skip_broken:
        raise BrokenImageError(
            f"{root / skipped[0]}: cannot be decoded; repair or remove it, or leave it out with --skip-broken-images"
        )
    return Packing(images, skipped, _content_hash(hashes, states.tolist()), equal_rows(hashes))


def pack_arrays(images: NDArray[np.uint8], folder: Path) -> Packing:
    """Pack images of equal size. An existing pack of the same images is opened instead.

    Args:
        images: uint8 (N, height, width, channels).
    """
    content = hashlib.sha256(np.ascontiguousarray(images).data).hexdigest()
    identity = hashlib.sha256(f"{images.shape} {content}".encode()).hexdigest()[:32]
    packed = PackedImages(_pack_folder(folder, identity))
    with cache_lock(folder):
        if not packed.folder.exists():
            with whole_folder(packed.folder) as partial:
                write_arrays(images, partial)
    return Packing(packed, (), content)


def write_arrays(images: NDArray[np.uint8], folder: Path) -> None:
    """Write the files of a pack of images of equal size, uint8 (N, height, width, channels), into a folder."""
    index = np.zeros(len(images), dtype=INDEX_DTYPE)
    index["shape"] = index["stored"] = images.shape[1:]
    index.tofile(folder / INDEX)
    np.ascontiguousarray(images).tofile(folder / PIXELS)


def hash_of_file(path: Path) -> bytes:
    """Return the SHA-256 of a file, 32 bytes; zeros if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return _NO_HASH


def equal_rows(hashes: Iterable[bytes]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of rows with equal hashes. Files that cannot be read are equal to none."""
    rows: dict[bytes, list[int]] = {}
    for row, content in enumerate(hashes):
        rows.setdefault(content, []).append(row)
    return tuple(tuple(group) for content, group in rows.items() if len(group) > 1 and content != _NO_HASH)


def _pack_folder(folder: Path, identity: str) -> Path:
    return folder.with_name(f"{folder.name}-{identity}")


def _note_of(folder: Path) -> Path:
    """The file that notes which pack belongs to the files, so that they need not be read to find it."""
    return folder.with_name(folder.name + ".json")


def cache_lock(folder: Path) -> FileLock:
    """Return a lock, so that two processes do not write the same folder of the cache; the second one waits."""
    make_folder(folder.parent)
    return FileLock(folder.with_name(folder.name + ".lock"))


def _known_pack(files: _Files, folder: Path) -> PackedImages | None:
    note = _note_of(folder)
    if not note.exists():
        return None
    noted, stamp = json.loads(note.read_bytes()), files.stamp()
    if noted["stamp"] == stamp:
        images = PackedImages(_pack_folder(folder, noted["identity"]))
    else:
        # The files were copied or touched, which need not change what they hold. To read them is faster than to decode.
        identity = files.identity(files.hashes())
        images = PackedImages(_pack_folder(folder, identity))
        if images.folder.exists():
            write_whole(note, json.dumps({"stamp": stamp, "identity": identity}))
    return images if images.folder.exists() else None


def _write(files: _Files, folder: Path, skip_broken: bool, progress: Progress | None) -> PackedImages:
    stamp = files.stamp()
    # The name is fixed, so that the next call continues an interrupted one. The lock excludes other processes.
    partial = folder.with_name(f"{folder.name}-{stamp}.partial")
    for other in folder.parent.glob(f"{folder.name}-*.partial"):
        if other != partial:
            shutil.rmtree(other)
    partial.mkdir(exist_ok=True)
    _decode_all(files, partial, skip_broken, progress)
    hashes = [entry.tobytes() for entry in PackedImages(partial).index["hash"]]
    identity = files.identity(hashes)
    images = PackedImages(_pack_folder(folder, identity))
    if images.folder.exists():
        shutil.rmtree(partial)
    else:
        put_in_place(partial, images.folder)
    write_whole(_note_of(folder), json.dumps({"stamp": stamp, "identity": identity}))
    return images


def _decode_all(files: _Files, partial: Path, skip_broken: bool, progress: Progress | None) -> None:
    """Append pixels and entries of the files to those that an interrupted call has written."""
    with (partial / PIXELS).open("ab") as pixels, (partial / INDEX).open("ab") as index:
        done = index.tell() // INDEX_DTYPE.itemsize
        index.truncate(done * INDEX_DTYPE.itemsize)
        pixels.truncate(int(PackedImages(partial).index["stored"].prod(axis=1).sum()))
        rows, entries = range(done, len(files.names)), list[bytes]()
        for entry, image in done_ahead(lambda row: files.packed(row, skip_broken), rows, os.cpu_count() or 1):
            pixels.write(image.data)
            entries.append(entry.tobytes())
            done += 1
            if len(entries) == _BATCH or done == len(files.names):
                # The pixels are on the disk before a file counts as decoded.
                pixels.flush()
                os.fsync(pixels.fileno())
                index.write(b"".join(entries))
                index.flush()
                entries.clear()
                if progress:
                    progress(done, len(files.names))


def _content_hash(hashes: Sequence[bytes], states: Sequence[int]) -> str:
    """Hash of the decoded files. Those with a mark count as others than the same files without it."""
    digest = hashlib.sha256()
    for content, state in zip(hashes, states, strict=True):
        if state != _BROKEN:
            mark = _MARKS[state]
            digest.update(hashlib.sha256(mark + content).digest() if mark else content)
    return digest.hexdigest()
