"""Decoding of a dataset into one memory map, with the shorter side resized (specification, section 3).

MLRC's first transform is deterministic. Its uint8 output is therefore stored, and a training on it is equal, bit for
bit, to a training that decodes every image in every epoch. Images that the resize enlarges are stored as they are and
enlarged when they are read, which gives the same pixels.

Files become RGB with 8 bits per channel. A picture is put on white ground where it is transparent, and turned upright
as its EXIF tag says. MLRC's code does neither, so the published datasets are decoded without (`as_mlrc`). Colours are
the numbers in the file: colour profiles such as Display P3 are not applied.

A pack is never changed: its name has a hash of the files' names, sizes and times. Changed files give another folder, so
a run keeps the pack that it started with.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from PIL import ExifTags, Image, UnidentifiedImageError

from protocols.images.crops import size_after
from protocols.images.packed_images import AS_IT_IS, AS_SEEN, BROKEN, INDEX, INDEX_DTYPE, PIXELS, PackedImages
from results import InputError
from results.atomic_files import atomic_folder, make_folder
from results.records.provenance import granted_cores

Progress = Callable[[int, int | None], None]
"""Reports the progress of long work: receives the amount done and the total amount, None while it is unknown."""

_PACK_FORMAT = 5
"""Raise it with a change of the pixels or of the files of a pack. Packs of other formats are not opened."""

_BATCH = 256
"""Files between two calls of `progress`."""
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_NO_HASH = bytes(32)

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What turns a picture upright, by the value of its EXIF tag."""


class BrokenImageError(InputError):
    """An image cannot be decoded. The message names the image and the remedy."""


def decoded(path: Path, *, as_mlrc: bool, least: int | None = None) -> tuple[Image.Image, bool]:
    """Decode one file as RGB with 8 bits per channel.

    Args:
        as_mlrc: Whether to ignore transparency and EXIF tag, as MLRC's code does.
        least: A side in pixels at which a picture is large enough: a JPEG is read as small as that, which is faster.

    Returns:
        The picture, and whether white ground or the turn of the EXIF tag made it another one.
    """
    try:
        # Pillow maps some kinds of files that it opens by path, and a map of a file that is cut off ends the process.
        with path.open("rb") as file, Image.open(file) as image:
            if image.mode[0] in "IF":  # Pillow's conversion would make it white.
                raise ValueError("it holds more than 8 bits of grey or other numbers; convert it to 8 bits per channel")
            if least is not None:
                image.draft(None, (least, least))
            turn = None if as_mlrc else _turn_of(image)
            on_white = None if as_mlrc else _on_white(image)
            rgb = on_white or image.convert("RGB")
    except UnidentifiedImageError as error:
        raise _broken(path, "no image that Pillow knows") from error
    except MemoryError:  # No fault of the file.
        raise
    except Exception as error:  # For damaged files, Pillow's formats raise many kinds.
        raise _broken(path, str(error) or type(error).__name__) from error
    if turn is not None:
        rgb = rgb.transpose(turn)
    return rgb, on_white is not None or turn is not None


def _broken(path: Path, reason: str) -> BrokenImageError:
    reason = " ".join(reason.split())
    return BrokenImageError(
        f"{path}: cannot be decoded ({reason}); repair or remove it, or leave it out with --skip-broken-images"
    )


def is_constant(picture: Image.Image) -> bool:
    """Return whether all pixels of an RGB picture are equal."""
    return all(low == high for low, high in (band.getextrema() for band in picture.split()))


def _turn_of(image: Image.Image) -> Image.Transpose | None:
    """Return what turns a picture upright. It has to be called before the pixels are read."""
    if image.format == "TIFF":
        return None  # Pillow turns these itself.
    try:
        return _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:
        # Pillow raises many kinds of errors for a damaged tag. The picture is shown without it.
        return None


def _on_white(image: Image.Image) -> Image.Image | None:
    """Return a picture as RGB on white ground; None if it is opaque."""
    image.load()
    if not image.has_transparency_data:
        return None
    with_alpha = image.convert("RGBA")
    lowest, _ = with_alpha.getchannel("A").getextrema()
    if lowest == 255:
        return None
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), with_alpha).convert("RGB")


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

    def packed(self, row: int, skip_broken: bool) -> tuple[NDArray[np.void], NDArray[np.uint8]]:
        """Decode one file: its entry in the index and its pixels. A broken file has none, or raises its error."""
        path = self.root / self.names[row]
        entry = np.zeros((), dtype=INDEX_DTYPE)
        entry["hash"] = np.frombuffer(hash_of_file(path), dtype=np.uint8)
        try:
            picture, is_altered = decoded(path, as_mlrc=self.as_mlrc)
        except BrokenImageError:
            if not skip_broken:
                raise
            entry["state"], entry["shape"], entry["stored"] = BROKEN, (0, 0, 3), (0, 0, 3)
            return entry, np.empty(0, dtype=np.uint8)
        entry["state"] = AS_SEEN if is_altered else AS_IT_IS
        entry["constant"] = is_constant(picture)
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
) -> PackedImages:
    """Decode image files as RGB, resize them and pack them.

    An existing pack of the same files is opened instead. The files are known by their names, sizes and times of change.

    Args:
        resize: Shorter side in pixels after the resize; None keeps the size.
        folder: Begin of the names of packs of these files.
        skip_broken: Whether files that cannot be decoded are left out; else they raise BrokenImageError.
        progress: Called with the number of packed files and the number of all files.
        as_mlrc: Whether to ignore transparency and EXIF tags, as MLRC's code does.
    """
    files = _Files(root, names, resize, as_mlrc)
    pack = folder.with_name(f"{folder.name}-{files.stamp()}")
    images = PackedImages(cached(pack, lambda partial: _write(files, partial, skip_broken, progress)))
    if len(images.broken) and not skip_broken:
        raise BrokenImageError(
            f"{root / names[images.broken[0]]}: cannot be decoded; repair or remove it, or leave it out with "
            "--skip-broken-images"
        )
    return images


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


def equal_rows(contents: Iterable[object]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of rows with equal hashes, or other contents. Files that cannot be read are equal to none."""
    rows: dict[object, list[int]] = {}
    for row, content in enumerate(contents):
        rows.setdefault(content, []).append(row)
    return tuple(tuple(group) for content, group in rows.items() if len(group) > 1 and content not in (_NO_HASH, None))


def in_threads(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> Iterator[_Result]:
    """Yield `work(item)` of every item in order. All cores work on a few items at a time, which bounds the memory."""
    few = 2 * granted_cores()
    with ThreadPoolExecutor(granted_cores()) as pool:
        for first in range(0, len(items), few):
            yield from pool.map(work, items[first : first + few])


def cache_lock(folder: Path) -> FileLock:
    """Return a lock, so that two processes do not write the same folder of the cache; the second one waits."""
    make_folder(folder.parent)
    return FileLock(folder.with_name(folder.name + ".lock"))


def cached(folder: Path, fill: Callable[[Path], object]) -> Path:
    """Let `fill` write a folder of the cache if it is not there. What killed processes have left of it is removed."""
    with cache_lock(folder):
        if not folder.exists():
            for left in folder.parent.glob(f".{folder.name}.*.partial"):
                shutil.rmtree(left)
            with atomic_folder(folder) as partial:
                fill(partial)
    return folder


def _write(files: _Files, folder: Path, skip_broken: bool, progress: Progress | None) -> None:
    """Decode the files into an empty folder."""
    rows = range(len(files.names))
    with (folder / PIXELS).open("wb") as pixels, (folder / INDEX).open("wb") as index:
        for done, (entry, image) in enumerate(in_threads(lambda row: files.packed(row, skip_broken), rows), start=1):
            pixels.write(image.data)
            index.write(entry.tobytes())
            if progress and (done % _BATCH == 0 or done == len(rows)):
                progress(done, len(rows))


def content_hash(images: PackedImages) -> str:
    """Hash of the decoded files. One that became another picture than Pillow's RGB counts as another file."""
    digest = hashlib.sha256()
    for content, state in zip(map(bytes, images.index["hash"]), images.index["state"].tolist(), strict=True):
        if state != BROKEN:
            digest.update(hashlib.sha256(b"as seen" + content).digest() if state == AS_SEEN else content)
    return digest.hexdigest()
