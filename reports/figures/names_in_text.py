"""Names that the font of figures cannot draw: figures show a number for each, and the text beside them the name.

The font is the same on every machine, and has Latin, Greek, Cyrillic and a few more scripts, but no Chinese, Japanese,
Korean, Thai or Indic letters and few emoji. Without this, such names would be rows of boxes.
"""

import re
from functools import cache
from textwrap import fill

from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.text import Text

from reports.figures.style import FONT

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe]")
"""Hebrew, Arabic and their like: letters that are joined and run the other way only with a recent matplotlib."""


def is_drawable(text: str) -> bool:
    """Return whether figures can show a text as it is."""
    return not _RIGHT_TO_LEFT.search(text) and all(ord(letter) in _letters() or letter.isspace() for letter in text)


def wrapped(text: str, width: int) -> str:
    """Break a text into lines of at most so many characters, but not the inside of a name that becomes a number."""
    return fill(text, width) if is_drawable(text) else text


def names_in_text(figure: Figure) -> dict[str, str]:
    """Put numbers, such as `[1]`, in the place of words that cannot be drawn, before a figure is saved.

    Returns:
        The words by number. Neighbouring ones are one name. Equal names have one number.
    """
    numbers: dict[str, str] = {}
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = [label.get_text() for label in axis.get_ticklabels()]
            if not all(map(is_drawable, labels)):
                # Labels of ticks are made anew for each drawing, so that new texts alone would not last.
                axis.set_ticks(axis.get_ticklocs(), labels=[_numbered(label, numbers) for label in labels])
    for text in figure.findobj(Text):
        if isinstance(text, Text):
            text.set_text(_numbered(text.get_text(), numbers))
    return {number: name for name, number in numbers.items()}


def names_words(names: dict[str, str]) -> str:
    """Write the names by number, as in `[1] is 日本語; [2] is हिन्दी.`; empty without names."""
    return "; ".join(f"{number} is {name}" for number, name in names.items()) + "." if names else ""


def _numbered(text: str, numbers: dict[str, str]) -> str:
    if is_drawable(text):
        return text
    shown, name = "", ""
    for word in [*re.findall(r"\s+|[^\s]+", text), ""]:
        if word and (not is_drawable(word) or (name and word.isspace())):
            name += word
            continue
        if name:
            kept = name.rstrip(" \n:;,.)")
            shown += numbers.setdefault(" ".join(kept.split()), f"[{len(numbers) + 1}]") + name[len(kept) :]
        shown, name = shown + word, ""
    return shown


@cache
def _letters() -> frozenset[int]:
    return frozenset(get_font(findfont(FONT)).get_charmap())
