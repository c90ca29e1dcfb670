"""Reads files of claims: "a is better than b on this dataset, by so many points", one claim a line.

`claims.csv` holds the main claims of the papers. `docs/claims.md` explains the columns.
"""

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import get_args

from results.published.rows import SpreadKind
from results.published.tables import DATASETS, Kind, metric_name

COLUMNS = (
    *("source", "place", "a", "b", "dataset", "score", "value_a", "value_b", "difference"),
    *("runs", "plus_minus", "plus_minus_kind", "setting"),
)
"""The columns of a file of claims."""

_NEEDED = ("a", "b", "dataset", "score")
_KINDS: tuple[Kind, ...] = get_args(Kind)
_SPREADS: tuple[SpreadKind, ...] = get_args(SpreadKind)
_SHARES = ("precision_at_1", "r_precision", "map_at_r", "map@1000", "nmi")
"""Scores in percent of which more is better, beside recall@K."""


class ClaimsFileError(ValueError):
    """A file of claims cannot be read. The message names the line and the remedy."""


@dataclass(frozen=True)
class ClaimedValue:
    """One of the two sides of a claim.

    Attributes:
        method: Key of a method card or of a variant, or any name of a method that the suite does not have.
        value: The printed value in percent; None if only the difference is given.
        runs: Number of runs behind the value; None if the source does not say.
        plus_minus: The number behind ±, in percentage points; None without one.
    """

    method: str
    value: float | None
    runs: int | None
    plus_minus: float | None


@dataclass(frozen=True)
class Claim:
    """The claim that method a is better than method b.

    Attributes:
        kind: Which embeddings were tested; `single` is one model.
        score: The score as the file names it.
        difference: Claimed difference in percentage points, more than 0.
        digits: Number of printed digits after the point.
        setting: Name of the published table that has the values, or any text.
    """

    line: int
    source: str
    place: str
    a: ClaimedValue
    b: ClaimedValue
    dataset: str
    metric: str
    kind: Kind
    score: str
    difference: float
    digits: int
    spread: SpreadKind
    setting: str


@cache
def shipped_claims() -> tuple[Claim, ...]:
    """Return the main claims of the papers."""
    text = resources.files("results").joinpath("published", "claims.csv").read_text(encoding="utf-8")
    return read_claims(text, "claims.csv")


def read_claims(text: str, name: str) -> tuple[Claim, ...]:
    """Read a file of claims; messages of `ClaimsFileError` call it `name`."""
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), skipinitialspace=True, strict=True)
    try:
        header = [column.strip() for column in reader.fieldnames or []]
    except csv.Error as error:
        raise ClaimsFileError(f"{name}, line 1: {error}; check the quotes") from error
    reader.fieldnames = header
    known = f"the columns are {', '.join(COLUMNS)}"
    if missing := [column for column in _NEEDED if column not in header]:
        raise ClaimsFileError(f"{name}, line 1: column {missing[0]!r} is missing; {known}")
    if unknown := [column for column in header if column not in COLUMNS]:
        raise ClaimsFileError(f"{name}, line 1: column {unknown[0]!r} is unknown; {known}")
    try:
        claims = tuple(_claim(reader.line_num, _stripped(fields, len(header))) for fields in reader)
    except ValueError as error:
        raise ClaimsFileError(f"{name}, line {reader.line_num}: {error}") from error
    except csv.Error as error:
        raise ClaimsFileError(f"{name}, line {reader.line_num}: {error}; check the quotes") from error
    if not claims:
        raise ClaimsFileError(f"{name}, line 2: there is no claim; write one claim a line below the header")
    return claims


def _stripped(fields: Mapping[str | None, str | list[str] | None], needed: int) -> dict[str, str]:
    stripped = {key: value.strip() for key, value in fields.items() if key is not None and isinstance(value, str)}
    if len(stripped) != needed or len(fields) != needed:
        raise ValueError(f"{needed} fields are needed; put a text with a comma into double quotes")
    return stripped


def _claim(line: int, fields: Mapping[str, str]) -> Claim:
    if empty := [column for column in _NEEDED if not fields[column]]:
        raise ValueError(f"{empty[0]} is empty; every claim needs {', '.join(_NEEDED)}")
    if fields["a"] == fields["b"]:
        raise ValueError(f"a and b are both {fields['a']!r}; name two methods")
    kind, metric = _score(fields["score"])
    a, b = (
        ClaimedValue(
            fields[side],
            _number(f"value_{side}", fields.get(f"value_{side}", ""), "write percent such as 66.5"),
            _count(_of_side(fields, "runs", index)),
            _number("plus_minus", _of_side(fields, "plus_minus", index), "write points, as 0.3 or 0.3/0.2", least=0),
        )
        for index, side in enumerate(("a", "b"))
    )
    difference = _number("difference", fields.get("difference", ""), "write points such as 1.5")
    return Claim(
        line=line,
        source=fields.get("source", ""),
        place=fields.get("place", ""),
        a=a,
        b=b,
        dataset=DATASETS.get(fields["dataset"], fields["dataset"]),
        metric=metric,
        kind=kind,
        score=fields["score"],
        difference=_difference(a.value, b.value, difference),
        digits=max(len(fields.get(name, "").partition(".")[2]) for name in ("value_a", "value_b", "difference")),
        spread=_spread(fields.get("plus_minus_kind", "")),
        setting=fields.get("setting", ""),
    )


def _score(text: str) -> tuple[Kind, str]:
    """Kind and metric of a score such as `R@1` or `MAP@R concatenated`."""
    title, _, kind = text.partition(" ")
    if kind and kind not in _KINDS:
        raise ValueError(f"score {text!r}: {kind!r} is unknown; write a score, then {', '.join(_KINDS)} or nothing")
    try:
        metric = metric_name(title)
    except ValueError:
        metric = ""
    if metric not in _SHARES and not metric.startswith("recall@"):
        raise ValueError(f"score {text!r} is unknown; use R@1, R@K for another K, P@1, RP, MAP@R, mAP@1000 or NMI")
    return next((known for known in _KINDS if known == kind), "single"), metric


def _of_side(fields: Mapping[str, str], column: str, index: int) -> str:
    """One entry for both methods, or two with a slash between them."""
    parts = [part.strip() for part in fields.get(column, "").split("/", 1)]
    return parts[min(index, len(parts) - 1)]


def _number(column: str, text: str, hint: str, least: float = -math.inf) -> float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < least:
        needed = "a number" if least < 0 else "a number of 0 or more"
        raise ValueError(f"{column} {text!r} is not {needed}; {hint}, or leave it empty")
    return number


def _count(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"runs {text!r}: write the number of runs behind each value, as 5 or 5/3, or leave it empty")
    return int(text)


def _spread(text: str) -> SpreadKind:
    for spread in _SPREADS:
        if text == spread:
            return spread
    if text:
        raise ValueError(f"plus_minus_kind {text!r} is unknown; use {', '.join(_SPREADS)} or nothing")
    return "not stated"


def _difference(a: float | None, b: float | None, difference: float | None) -> float:
    if (a is None) != (b is None):
        raise ValueError("only one of value_a and value_b is given; give both, or the difference")
    if a is None or b is None:
        if difference is None:
            raise ValueError("the claim has no number; give value_a and value_b, or the difference")
    else:
        if 0 < a <= 1 and 0 < b <= 1:
            raise ValueError(f"value_a {a:g} and value_b {b:g} look like fractions; write percent")
        if difference is not None and abs(a - b - difference) > 0.051:
            raise ValueError(f"the difference is {difference:g}, but the values differ by {a - b:.2f}; correct one")
        difference = round(a - b, 6)
    if difference <= 0:
        raise ValueError(f"the difference is {difference:g}; a must be the method that is claimed to be better")
    return difference
