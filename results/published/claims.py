"""Reads files of claims: "a is better than b on this dataset, by so many points", one claim a line.

`claims.csv` holds the main claims of the papers. `docs/claims.md` explains the columns.
"""

import csv
import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from results.published.rows import SpreadKind
from results.published.tables import DATASETS, Kind, metric_name

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


_Percent = Annotated[float, Field(ge=0, le=100)]


class _Line(BaseModel):
    """A line as it is written; `runs` and `plus_minus` have one entry for both methods, or two with a slash."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    source: str = ""
    place: str = ""
    a: str
    b: str
    dataset: str
    score: str
    value_a: _Percent | None = None
    value_b: _Percent | None = None
    difference: _Percent | None = None
    runs: tuple[PositiveInt | None, PositiveInt | None] = (None, None)
    plus_minus: tuple[NonNegativeFloat | None, NonNegativeFloat | None] = (None, None)
    plus_minus_kind: SpreadKind = "not stated"
    setting: str = ""

    @field_validator("runs", "plus_minus", mode="before")
    @classmethod
    def _of_both(cls, text: str) -> tuple[str | None, ...]:
        parts = [part.strip() or None for part in text.split("/", 1)]
        return parts[0], parts[-1]

    @model_validator(mode="after")
    def _is_a_claim(self) -> Self:
        a, b = self.value_a, self.value_b
        if self.a == self.b:
            raise ValueError(f"a and b are both {self.a!r}; name two methods")
        if (a is None) != (b is None) or a is b is self.difference is None:
            raise ValueError("give value_a and value_b, or the difference")
        if a is not None and b is not None:
            if 0 < a <= 1 and 0 < b <= 1:
                raise ValueError(f"value_a {a:g} and value_b {b:g} look like fractions; write percent")
            if self.difference is not None and abs(a - b - self.difference) > 0.051:
                raise ValueError(f"the difference is {self.difference:g}, but the values differ by {a - b:.2f}")
        if self.points <= 0:
            raise ValueError(f"the difference is {self.points:g}; a must be the method that is claimed to be better")
        return self

    @property
    def points(self) -> float:
        """The claimed difference: that of the values if they are given."""
        if self.value_a is None or self.value_b is None:
            return self.difference or 0.0
        return round(self.value_a - self.value_b, 6)


COLUMNS = tuple(_Line.model_fields)
"""The columns of a file of claims."""


def read_claims(text: str, name: str) -> tuple[Claim, ...]:
    """Read a file of claims; messages of `ClaimsFileError` call it `name`."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), skipinitialspace=True, strict=True)
    claims = []
    try:
        header = [column.strip() for column in next(reader, [])]
        for fields in reader:
            claims += [_claim(reader.line_num, header, fields)] if fields else []
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        column = f"{first['loc'][0]}: " if first["loc"] else ""
        reason = first["msg"].removeprefix("Value error, ")
        known = f"; the columns are {', '.join(COLUMNS)}" if first["type"] in ("missing", "extra_forbidden") else ""
        raise ClaimsFileError(f"{name}, line {reader.line_num}: {column}{reason}{known}") from error
    except (ValueError, csv.Error) as error:
        raise ClaimsFileError(f"{name}, line {reader.line_num}: {error}; check commas and quotes") from error
    if not claims:
        raise ClaimsFileError(f"{name}: there is no claim; write one claim a line below the names of the columns")
    return tuple(claims)


def _claim(number: int, header: Sequence[str], fields: Sequence[str]) -> Claim:
    written = {column: text.strip() for column, text in zip(header, fields, strict=True)}
    line = _Line.model_validate({column: text for column, text in written.items() if text})
    kind, metric = _score(line.score)
    return Claim(
        line=number,
        source=line.source,
        place=line.place,
        a=ClaimedValue(line.a, line.value_a, line.runs[0], line.plus_minus[0]),
        b=ClaimedValue(line.b, line.value_b, line.runs[1], line.plus_minus[1]),
        dataset=DATASETS.get(line.dataset, line.dataset),
        metric=metric,
        kind=kind,
        score=line.score,
        difference=line.points,
        digits=max(len(written.get(column, "").partition(".")[2]) for column in ("value_a", "value_b", "difference")),
        spread=line.plus_minus_kind,
        setting=line.setting,
    )


def _score(text: str) -> tuple[Kind, str]:
    """Kind and metric of a score such as `R@1` or `MAP@R concatenated`."""
    title, _, named = text.partition(" ")
    kinds: tuple[Kind, ...] = get_args(Kind)
    metric = ""
    with suppress(ValueError):
        metric = metric_name(title)
    kind = next((one for one in kinds if one == (named or "single")), None)
    if kind is None or (metric not in _SHARES and not metric.startswith("recall@")):
        raise ValueError(
            f"score {text!r} is unknown; use R@1, R@K for another K, P@1, RP, MAP@R, mAP@1000 or NMI, then "
            f"{', '.join(kinds)} or nothing"
        )
    return kind, metric
