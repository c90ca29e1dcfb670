"""Names as people and file systems write them: too long for a file, or equal to another one but for their spelling."""

import unicodedata
from collections.abc import Callable, Iterable

MOST_BYTES = 128
"""Longest name of an experiment, in UTF-8. Files of tables and pages have it as a part of their names, of at most 255
bytes on most disks, and the store keeps 128 characters of it."""

MOST_CHARACTERS_OF_A_ROW = 64
"""Longest name of a method or a variant: what the store keeps of it."""

_SPELLINGS: dict[str, Callable[[str], str]] = {
    "Unicode form (an accented letter as one sign or two)": lambda name: unicodedata.normalize("NFC", name),
    "\\ for /": lambda name: name.replace("\\", "/"),
    # Signs without width count as blanks.
    "blanks": lambda name: "".join(c for c in name if not c.isspace() and unicodedata.category(c) != "Cf"),
    "upper and lower case": str.casefold,
}


def why_unknown(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the known one that looks like it, and what differs.

    Args:
        name: The name that is not among the known ones.
        known: The known names.

    Returns:
        A text that begins with a semicolon, with all signs outside of ASCII escaped, since the names can look the same;
        empty if no known name is like it.
    """
    wanted = _plain(name)
    for other in known:
        if other != name and _plain(other) == wanted:
            causes = [cause for cause in _SPELLINGS if _differs_in(name, other, cause)]
            return f"; {name!a} and {other!a} differ only in {' and '.join(causes)}"
    return ""


def _plain(name: str) -> str:
    for spelled in _SPELLINGS.values():
        name = spelled(name)
    # A letter can have another form after the change of its case.
    return unicodedata.normalize("NFC", name)


def _differs_in(name: str, other: str, cause: str) -> bool:
    """Tell whether two names that are alike still differ when everything but one cause is made equal."""
    for another, spelled in _SPELLINGS.items():
        if another != cause:
            name, other = spelled(name), spelled(other)
    return name != other
