"""Numbers and lists in sentences."""

from collections.abc import Iterable, Mapping, Sequence


def plural(thing: str) -> str:
    """Write the plural of `run`, `search`, `query`, `epoch` and the like."""
    if thing.endswith("y") and thing[-2:-1] not in ("a", "e", "o", "u"):
        return f"{thing[:-1]}ies"
    return f"{thing}es" if thing.endswith(("ch", "s", "sh", "x")) and not thing.endswith("epoch") else f"{thing}s"


def verb(count: int, of_many: str) -> str:
    """Write the form of a verb, given as of many things, that fits their number: `are` or `is`, `lie` or `lies`."""
    if count != 1:
        return of_many
    first, *rest = of_many.split(" ")
    forms = {"are": "is", "were": "was", "have": "has", "do": "does"}
    return " ".join([forms.get(first, plural(first)), *rest])


def things(count: int, thing: str) -> str:
    """Write the singular or the plural, as it stands behind a number."""
    return thing if count == 1 else plural(thing)


def counted(count: int, thing: str) -> str:
    """Write a number of things, such as `1 run` or `3 searches`."""
    return f"{count:,} {things(count, thing)}"


def every(count: int, thing: str) -> str:
    """Write that all of some things are meant: `all 3 searches`, or `the only search`."""
    return f"the only {thing}" if count == 1 else f"all {counted(count, thing)}"


def counted_span(counts: Iterable[int], thing: str) -> str:
    """Write a range of numbers of things, such as `2 to 3 runs`, or `1 run`."""
    known = list(counts)
    return f"{span(known)} {things(max(known), thing)}"


def capitalized(text: str) -> str:
    """Begin a text with a capital letter, and keep the others as they are."""
    return text[:1].upper() + text[1:]


def distinct(titles: Mapping[str, str]) -> dict[str, str]:
    """Return titles by key, with the key beside a title that several have."""
    known = list(titles.values())
    return {key: title if known.count(title) == 1 else f"{title} ({key})" for key, title in titles.items()}


def joined(names: Sequence[str]) -> str:
    """Join names with commas, or with semicolons if a name has a comma."""
    return ("; " if any("," in name for name in names) else ", ").join(names)


def listed(names: Sequence[str]) -> str:
    """Join at least one name as in `a, b and c`, or as in `a, 1; b; and c` if a name has a comma."""
    *first, last = names
    if not first:
        return last
    return f"{joined(first)}{'; and' if any(',' in name for name in names) else ' and'} {last}"


def first_of(names: Sequence[str], most: int) -> list[str]:
    """Return the first names and how many more there are, as in `a`, `b`, `3 more`."""
    return [*names[:most], f"{len(names) - most} more"] if len(names) > most else [*names]


def span(counts: Iterable[int]) -> str:
    """Write a range of numbers, as `2 to 3`, or one number."""
    known = list(counts)
    return " to ".join(dict.fromkeys(f"{end:,d}" for end in (min(known), max(known))))


def few(names: Sequence[str], things: str = "methods", most: int = 3) -> str:
    """List a few names, or count more of them, as in `a, b and c` or `12 methods`."""
    return listed(names) if len(names) <= most else f"{len(names)} {things}"


def some(names: Sequence[str], most: int = 8) -> str:
    """Join the first names and say how many more there are, as in `a, b and 3 more`."""
    return joined(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def place_words(places: tuple[int, int]) -> str:
    """Write the places that a method can have: `2`, or `1 to 3`."""
    low, high = places
    return f"{low}" if low == high else f"{low} to {high}"


def first_line(error: object) -> str:
    """Return the first line of an error's message; without a message the name of its class."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def in_words(seconds: float | None) -> str:
    """Format a duration in seconds for people: `40 s`, `7 min`, `3 h 20 min`, `2 days 4 h`, `340 days`."""
    if seconds is None:
        return "not known yet"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    if hours >= 240:
        return f"{round(hours / 24):,} days"
    days, hours = divmod(hours, 24)
    return f"{days} days {hours} h"
