"""The embedded dataset `glyphs`: characters drawn in the sixteen typefaces of matplotlib.

A class is a character. A sample is the character in one typeface: DejaVu Sans, DejaVu Sans Mono, DejaVu Serif and STIX
General, each in four styles. Every sample has its own fixed perspective, rotation, scale and shift, so that comparing
raw pixels does not solve the task. Nothing is downloaded: the font files come with matplotlib, and the classes are a
fixed table here. The drawing depends on the FreeType library in the installed Pillow, so single grey
levels may differ between machines. On one machine the images are always the same; the dataset's fingerprint records
their content.
"""

import hashlib
import importlib.util
import json
import math
import unicodedata
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
from fontTools.ttLib import TTFont
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from protocols.datasets.dataset import DataRequest, Dataset, from_packing
from protocols.datasets.listing import ImageListing, half_of
from protocols.images.packed_images import PIXELS, PackedImages
from protocols.images.packing import Packing, cache_lock, write_arrays
from results.atomic_files import atomic_folder

_LISTING = "names.json"

_CHARACTERS = (
    "0123456789"
    "ACEHJKLMNPRTUVWXYabdefgkmnprstyz"
    "ÆÞæøŊŒƁƈƊƋƑƓƕƢƦƪƱƵƸƺƾǁǂǃǶȜȤȴȸȼɀɔɕɘɚɛɝɢɣɥɧɨɬɭɮɰɽʁʇʎʐʒʔʕʞʠʣʤʦʨʩʫʬʭᴖᴗᴝᴟᵷⱵⱾ"
    "ΔΞΣΦΨΩαβδζλςφωϗϘϚϞϟϠϡϻ"
    "ЂЉЊДЖЛЧШЪЫЭЮЯѣѪҒҕҗҙқҳ"
    "ԲԳԶԷԸԹԻԾԿՀՂՃՆՇՉՊՌՎՔՖխձճնչջփ"
    "აბგდეზთკლჟრტფყშცჭჯჰჲჳჴჵჶჹ"
)


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


# The protocol trains on the first half of the class ids and tests on the second. If the classes were sorted by script,
# the two halves would have different scripts. They are sorted by a hash of the code point, so both halves have all.
ALPHABET = tuple(sorted(_CHARACTERS, key=lambda character: hashlib.sha256(_code(character).encode()).digest()))


def open_glyphs(request: DataRequest) -> Dataset:
    """Open `glyphs`. It is rendered if it is not in the cache.

    The name of the cache is a hash of everything that decides the pixels: the code that draws, and the versions of the
    packages with the typefaces and the rasteriser.
    """
    versions = [metadata.version(package).encode() for package in ("matplotlib", "pillow", "fonttools")]
    stamp = hashlib.sha256(b"\0".join([Path(__file__).read_bytes(), *versions])).hexdigest()[:16]
    folder = request.cache / f"glyphs-{stamp}"
    with cache_lock(folder):
        if not folder.exists():
            rendered = render()
            with atomic_folder(folder) as partial:
                write_arrays(rendered.images[..., None], partial)
                described = [rendered.class_names, rendered.image_names, rendered.labels.tolist()]
                (partial / _LISTING).write_text(json.dumps(described))
    class_names, names, labels = json.loads((folder / _LISTING).read_bytes())
    content = hashlib.sha256((folder / PIXELS).read_bytes()).hexdigest()
    listing = ImageListing(
        "glyphs", Path(), tuple(class_names), tuple(names), np.asarray(labels), half_of(len(class_names))
    )
    return from_packing(listing, Packing(PackedImages(folder), (), content))


SIDE = 32

FACES = (
    *(f"DejaVuSans{style}" for style in ("", "-Oblique", "-Bold", "-BoldOblique")),
    *(f"DejaVuSansMono{style}" for style in ("", "-Oblique", "-Bold", "-BoldOblique")),
    *(f"DejaVuSerif{style}" for style in ("", "-Italic", "-Bold", "-BoldItalic")),
    *(f"STIXGeneral{style}" for style in ("", "Italic", "Bol", "BolIta")),
)

# The warp is drawn at OVERSAMPLING times the final side and then averaged, so that thin strokes stay smooth.
OVERSAMPLING = 4
FONT_SIZE = 96
BLEED = 16  # empty pixels around the ink, which the bicubic filter reads

# The ranges of the warp, in pixels of the final image, in degrees, and in fractions of the glyph's width and height.
# They were chosen by measurement: raw pixels reach a MAP@R of about 0.04 over all classes, and the characters stay
# readable. There are no mirror images and no half turns, since they would make two characters equal.
MARGIN = 1.5
LONGEST_SIDE = (20.0, 26.0)
MAX_ROTATION = 15.0
MAX_SHEAR = 0.15
MAX_STRETCH = 0.15
MAX_CORNER_JITTER = 0.10
# A thinner glyph (a click letter in a light typeface) is widened to this, or the warp would make it a hairline.
MIN_ASPECT = 0.25


@dataclass(frozen=True)
class Glyphs:
    """The rendered dataset of N images of C classes, sorted by class and, within a class, in the order of `FACES`.

    Attributes:
        images: White ink on black, uint8 (N, SIDE, SIDE).
        labels: Classes in 0..C-1, int64 (N,).
        class_names: C names such as `U+0041 LATIN CAPITAL LETTER A`.
        image_names: N names such as `U+0041/DejaVuSans-Bold`.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    image_names: tuple[str, ...]


def load_typefaces() -> dict[str, tuple[ImageFont.FreeTypeFont, frozenset[str]]]:
    """Return the sixteen typefaces by name, each with the characters that it has a glyph for.

    They lie in matplotlib's folder, which is found without importing matplotlib. The layout engine is that which does
    not need libraqm. Other characters would be drawn as empty boxes.
    """
    spec = importlib.util.find_spec("matplotlib")
    assert spec is not None, "matplotlib is a dependency"
    folder = Path(str(spec.origin)).parent / "mpl-data" / "fonts" / "ttf"
    faces = {}
    for face in FACES:
        path = folder / f"{face}.ttf"
        with TTFont(path, lazy=True) as font:
            characters = frozenset(map(chr, font.getBestCmap()))
        faces[face] = ImageFont.truetype(str(path), FONT_SIZE, layout_engine=ImageFont.Layout.BASIC), characters
    return faces


def draw_upright(character: str, font: ImageFont.FreeTypeFont) -> Image.Image:
    """Draw a character upright and crop it to its ink."""
    left, top, right, bottom = font.getbbox(character)
    # One pixel more on each side than the font's box, since antialiasing can cross its edges.
    image = Image.new("L", (math.ceil(right - left) + 2, math.ceil(bottom - top) + 2))
    ImageDraw.Draw(image).text((1 - left, 1 - top), character, font=font, fill=255)
    box = image.getbbox()
    if box is None:
        raise ValueError(f"the typeface {font.getname()} draws nothing for {character!r}")
    return image.crop(box)


def _uniforms(key: str) -> NDArray[np.float64]:
    """Return sixteen numbers in [0, 1) that depend only on `key`, not on a generator or a library's version."""
    digest = hashlib.sha512(key.encode()).digest()
    return np.asarray(np.frombuffer(digest, dtype=">u4"), dtype=np.float64) / 2.0**32


def _corners(width: int, height: int, key: str) -> NDArray[np.float64]:
    """Return the warped corners of the ink's box: (4, 2), clockwise from the top left, in pixels of the final image."""
    uniform = _uniforms(key)
    signed = 2 * uniform - 1
    aspect = max(width, MIN_ASPECT * height) / max(height, MIN_ASPECT * width)
    aspect *= (1 + MAX_STRETCH) ** signed[0]
    longest = LONGEST_SIDE[0] + (LONGEST_SIDE[1] - LONGEST_SIDE[0]) * uniform[1]
    size = longest * np.array([min(1.0, aspect), min(1.0, 1 / aspect)])
    corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]) * size
    corners += MAX_CORNER_JITTER * signed[2:10].reshape(4, 2) * size
    angle = math.radians(MAX_ROTATION * signed[10])
    shear = np.array([[1.0, MAX_SHEAR * signed[11]], [0.0, 1.0]])
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    corners = corners @ (turn @ shear).T
    return _shifted_inside(corners, uniform[12:14])


def _shifted_inside(corners: NDArray[np.float64], position: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move the corners to a position in the frame: (0, 0) is the top left corner, (1, 1) the bottom right.

    A quadrilateral that does not fit is made smaller first, so that no ink is cut off.
    """
    room = SIDE - 2 * MARGIN
    corners = corners * min(1.0, room / float(np.ptp(corners, axis=0).max()))
    low = corners.min(axis=0)
    shifted: NDArray[np.float64] = corners - low + MARGIN + position * (room - np.ptp(corners, axis=0))
    return shifted


def _perspective(
    target: NDArray[np.float64], source: NDArray[np.float64]
) -> tuple[float, float, float, float, float, float, float, float]:
    """Return Pillow's eight coefficients of the perspective that maps the points `target` (4, 2) to `source` (4, 2)."""
    rows, values = [], []
    for (x, y), (u, v) in zip(target, source, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    a, b, c, d, e, f, g, h = (float(value) for value in np.linalg.solve(np.array(rows), np.array(values)))
    return a, b, c, d, e, f, g, h


def draw_sample(character: str, face: str, font: ImageFont.FreeTypeFont) -> NDArray[np.uint8]:
    """Draw one sample: a character in one typeface, with the fixed warp of this pair.

    Returns:
        The image, uint8 (SIDE, SIDE).
    """
    ink = draw_upright(character, font)
    width, height = ink.size
    padded = Image.new("L", (width + 2 * BLEED, height + 2 * BLEED))
    padded.paste(ink, (BLEED, BLEED))
    box = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float64) + BLEED
    corners = _corners(width, height, f"{_code(character)}/{face}") * OVERSAMPLING
    frame = (SIDE * OVERSAMPLING, SIDE * OVERSAMPLING)
    warped = padded.transform(frame, Image.Transform.PERSPECTIVE, _perspective(corners, box), Image.Resampling.BICUBIC)
    return np.asarray(warped.reduce(OVERSAMPLING), dtype=np.uint8)


def render() -> Glyphs:
    """Render the dataset: every character of `ALPHABET` in every typeface that has it.

    The result depends only on the installed fonts and Pillow. Rendering takes a few seconds.
    """
    faces = load_typefaces()
    images, labels, names = [], [], []
    for label, character in enumerate(ALPHABET):
        for face, (font, characters) in faces.items():
            if character in characters:
                images.append(draw_sample(character, face, font))
                labels.append(label)
                names.append(f"{_code(character)}/{face}")
    class_names = tuple(f"{_code(character)} {unicodedata.name(character)}" for character in ALPHABET)
    return Glyphs(np.stack(images), np.array(labels, dtype=np.int64), class_names, tuple(names))
