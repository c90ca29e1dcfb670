"""Names: how long they may be, and which one was meant by one that is unknown."""

from collections.abc import Iterable
from difflib import get_close_matches

MOST_BYTES = 128
"""Longest name of an experiment, in UTF-8. Files of tables and pages have it as a part of their names, of at most 255
bytes on most disks."""

MOST_CHARACTERS_OF_A_ROW = 64
"""Longest name of a method or a variant."""


def why_unknown(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the known one that is most like it; empty if none is."""
    # By lower case, so that only the case may differ.
    spelled = {other.casefold(): other for other in known}
    alike = get_close_matches(name.casefold(), spelled, n=1, cutoff=0.75)
    return f"; did you mean {spelled[alike[0]]!r}?" if alike else ""
