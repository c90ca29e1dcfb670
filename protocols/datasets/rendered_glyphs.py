"""The embedded dataset `glyphs`, rendered once and then read from a cache."""

import hashlib
import json
from importlib import metadata
from pathlib import Path

import numpy as np

from protocols.datasets import glyph_alphabet, glyphs
from protocols.datasets.dataset import DataRequest, Dataset, from_packing
from protocols.images.packing import Packing, pack_arrays, sound_pack
from protocols.verified_files import put_away
from results.whole_files import write_whole


def open_glyphs(request: DataRequest) -> Dataset:
    """Open `glyphs`. It is rendered if it is not in the cache.

    The name of the cache is a hash of everything that decides the pixels: the code that draws, and the versions of the
    packages with the typefaces and the rasteriser.

    Args:
        request: Cache and settings.
    """
    folder = request.cache / f"glyphs-{_stamp()}"
    return _rendered_before(folder) or _rendered(folder)


def _rendered(folder: Path) -> Dataset:
    """Render the images and pack them; write their classes and names beside the pack."""
    rendered = glyphs.render()
    packing = pack_arrays(rendered.images[..., None], folder)
    listing = [rendered.class_names, rendered.image_names, rendered.labels.tolist()]
    write_whole(_listing_path(folder), json.dumps([packing.images.identity, *listing]))
    return from_packing("glyphs", rendered.class_names, rendered.image_names, rendered.labels, packing)


def _rendered_before(folder: Path) -> Dataset | None:
    """Open the images that were rendered before; None if there are none. What is damaged is set aside."""
    listing = _listing_path(folder)
    try:
        identity, class_names, image_names, labels = json.loads(listing.read_bytes())
        ranks = np.asarray(labels, dtype=np.int64)
        images = sound_pack(folder, str(identity))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        put_away(listing, "the list of rendered images")
        return None
    if images is None:
        return None
    packing = Packing(images, (), str(images.description["content"]))
    return from_packing("glyphs", tuple(class_names), image_names, ranks, packing)


def _listing_path(folder: Path) -> Path:
    return folder.with_name(folder.name + ".names.json")


def _stamp() -> str:
    sources = [Path(str(module.__file__)).read_bytes() for module in (glyphs, glyph_alphabet)]
    versions = [metadata.version(package).encode() for package in ("matplotlib", "pillow", "fonttools")]
    return hashlib.sha256(b"\0".join(sources + versions)).hexdigest()[:16]
