"""The embedded dataset `glyphs`, rendered once and then read from a cache."""

import hashlib
import json
from importlib import metadata
from pathlib import Path

import numpy as np

from protocols.datasets import glyph_alphabet, glyphs
from protocols.datasets.dataset import DataRequest, Dataset, from_packing
from protocols.images.packed_images import PackedImages
from protocols.images.packing import Packing, pack_arrays
from results.whole_files import write_whole


def open_glyphs(request: DataRequest) -> Dataset:
    """Open `glyphs`. It is rendered if it is not in the cache.

    The name of the cache is a hash of everything that decides the pixels: the code that draws, and the versions of the
    packages with the typefaces and the rasteriser.

    Args:
        request: Cache and settings.
    """
    folder = request.cache / f"glyphs-{_stamp()}"
    names = folder / "names.json"
    if not names.exists():
        rendered = glyphs.render()
        pack_arrays(rendered.images[..., None], folder)
        listing = [rendered.class_names, rendered.image_names, rendered.labels.tolist()]
        write_whole(names, json.dumps(listing))
    class_names, image_names, labels = json.loads(names.read_text())
    images = PackedImages(folder)
    packing = Packing(images, (), str(images.description["content"]))
    return from_packing("glyphs", tuple(class_names), image_names, np.asarray(labels, dtype=np.int64), packing)


def _stamp() -> str:
    sources = [Path(str(module.__file__)).read_bytes() for module in (glyphs, glyph_alphabet)]
    versions = [metadata.version(package).encode() for package in ("matplotlib", "pillow", "fonttools")]
    return hashlib.sha256(b"\0".join(sources + versions)).hexdigest()[:16]
