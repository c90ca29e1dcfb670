"""Lists of names in sentences. Titles of methods can hold commas, so a list must not rely on them."""

from collections.abc import Sequence


def joined(names: Sequence[str]) -> str:
    """Join names with commas, or with semicolons if a name has a comma."""
    return _separator(names).join(names)


def joined_with_and(names: Sequence[str]) -> str:
    """Join at least one name as in `a, b and c`, or as in `a, 1; b; and c` if a name has a comma."""
    *first, last = names
    separator = _separator(names)
    and_word = "; and" if separator == "; " else " and"
    return f"{separator.join(first)}{and_word} {last}" if first else last


def joined_groups(groups: Sequence[Sequence[str]]) -> str:
    """Join groups of names as in `a, b; c, d`, or as in `(a, 1; b); (c; d)` if a name has a comma."""
    if any("," in name for group in groups for name in group):
        return "; ".join(f"({'; '.join(group)})" for group in groups)
    return "; ".join(", ".join(group) for group in groups)


def _separator(names: Sequence[str]) -> str:
    return "; " if any("," in name for name in names) else ", "
