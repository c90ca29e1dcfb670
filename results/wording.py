"""Numbers and lists in sentences."""

from collections.abc import Sequence

from results.statistics.intervals import Interval


def plural(thing: str) -> str:
    """Write the plural of `run`, `search` and the like."""
    return f"{thing}es" if thing.endswith("ch") else f"{thing}s"


def counted(count: int, thing: str) -> str:
    """Write a number of things, such as `1 run` or `3 searches`."""
    return f"{count:,} {thing if count == 1 else plural(thing)}"


def capitalized(text: str) -> str:
    """Begin a text with a capital letter, and keep the others as they are."""
    return text[:1].upper() + text[1:]


def percent(interval: Interval) -> str:
    """Write a mean in percent, with the half width of its interval if there is one."""
    mean = f"{100 * interval.mean:.2f}"
    return f"{mean} %" if interval.half_width is None else f"{mean} ± {100 * interval.half_width:.2f} %"


def joined(names: Sequence[str]) -> str:
    """Join names with commas, or with semicolons if a name has a comma."""
    return ("; " if any("," in name for name in names) else ", ").join(names)


def listed(names: Sequence[str]) -> str:
    """Join at least one name as in `a, b and c`, or as in `a, 1; b; and c` if a name has a comma."""
    *first, last = names
    if not first:
        return last
    return f"{joined(first)}{'; and' if any(',' in name for name in names) else ' and'} {last}"
