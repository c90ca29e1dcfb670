"""The embedded dataset `glyphs`: characters in the sixteen typefaces of matplotlib.

A class is a character. A sample is the character in one typeface: DejaVu Sans, DejaVu Sans Mono, DejaVu Serif and STIX
General, each in four styles. Every sample has its own fixed perspective, rotation, scale and shift, so that comparing
raw pixels does not solve the task: it reaches a MAP@R of about 0.04. The pictures were drawn once and are kept in
`glyphs.png`, so they are the same on every machine: white on black, 32 x 32 pixels, one row per character and one
column per typeface. A cell without ink is a character that the typeface does not have.
"""

import hashlib
import unicodedata
from pathlib import Path

import numpy as np
from PIL import Image

from protocols.datasets.dataset import DataRequest, Dataset, from_packing
from protocols.datasets.listing import ImageListing
from protocols.images.packed_images import PackedImages
from protocols.images.packing import cached, write_arrays

SHEET = Path(__file__).with_name("glyphs.png")
SIDE = 32

# The protocol trains on the first half of the class ids and tests on the second. Sorted by script, the two halves would
# have different scripts. These are sorted by a hash of the code point, so both halves have all.
ALPHABET = (
    "ԷДЭɭȼЊփΩϘՉ9ΦVʫᴖƺȜჶƑɛჳφջPƢცЂᴗʁϠϞXæɀ7eδɘɕՔՃȤƦϟҗRz3ՇʣʭრgƸǂშϡჭჴლЫCǶŒბԻJÆyʕ"
    "ՌთɔHWԹƁ0ԲჰζɽʩՀƊ4ǁնჲʬ8Yɰ1აᴝŊɚԳʦՆʐƕEϻΔʔrճƈAmϗςøѣ2ԶЉƪsჹƵЪეn6қჯkყЯβʇaƱΨλƓƾ"
    "ზαკʒƋⱾՂԿҳʤʞǃtdɝɬչՊձԸÞЖȸჵҕჟҒɧЮⱵMЛUҙԾխbᵷՎՖȴTʨɣpɢტfϚɨʠგLЧѪʎШ5დɥΞᴟფɮωΣKN"
)

FACES = (
    *(f"DejaVuSans{style}" for style in ("", "-Oblique", "-Bold", "-BoldOblique")),
    *(f"DejaVuSansMono{style}" for style in ("", "-Oblique", "-Bold", "-BoldOblique")),
    *(f"DejaVuSerif{style}" for style in ("", "-Italic", "-Bold", "-BoldItalic")),
    *(f"STIXGeneral{style}" for style in ("", "Italic", "Bol", "BolIta")),
)


def open_glyphs(request: DataRequest) -> Dataset:
    """Open `glyphs`. Its pictures are copied into the cache if they are not there."""
    with Image.open(SHEET) as sheet:
        cells = np.asarray(sheet).reshape(len(ALPHABET), SIDE, len(FACES), SIDE).swapaxes(1, 2)
    labels, columns = np.nonzero(cells.any(axis=(2, 3)))
    pixels = np.ascontiguousarray(cells[labels, columns])
    content = hashlib.sha256(pixels.data).hexdigest()
    folder = cached(request.cache / f"glyphs-{content[:16]}", lambda partial: write_arrays(pixels[..., None], partial))
    codes = [f"U+{ord(character):04X}" for character in ALPHABET]
    class_names = [f"{code} {unicodedata.name(character)}" for code, character in zip(codes, ALPHABET, strict=True)]
    names = [f"{codes[label]}/{FACES[column]}" for label, column in zip(labels, columns, strict=True)]
    listing = ImageListing("glyphs", Path(), tuple(class_names), tuple(names), labels)
    return from_packing(listing, PackedImages(folder), content)
