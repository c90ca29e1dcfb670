"""Reads files of claims: "a is better than b on this dataset, by so many points", one claim a line.

`claims.csv` holds the main claims of the papers. `docs/papers.md` explains the columns.
"""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib import resources
from itertools import product
from typing import Annotated, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from results import InputError
from results.published.tables import (
    DATASETS,
    Kind,
    PublishedCell,
    PublishedColumn,
    PublishedRow,
    SpreadKind,
    published_table,
    published_tables,
    read_published,
)

_METRICS = {
    # Recall@1 is precision@1: whether the nearest image is of the query's class.
    **dict.fromkeys(("P@1", "R@1", "Recall@1"), "precision_at_1"),
    **dict.fromkeys(("RP", "P@R"), "r_precision"),
    **{"MAP@R": "map_at_r", "mAP@1000": "map@1000", "NMI": "nmi"},
}
"""Scores in percent of which more is better, by their names in the papers, beside recall@K."""

_LEAST_SPREAD = 0.01
"""Percentage points: a smaller ± is a fraction, since one query of 10,000 is as much."""

_Percent = Annotated[Decimal, Field(ge=0, le=100)]
_Dataset = Annotated[str, AfterValidator(lambda name: DATASETS.get(name, name))]


class ClaimsFileError(InputError, ValueError):
    """A file of claims cannot be read. The message names the line and the remedy."""


class Claim(BaseModel):
    """The claim that method a is better than method b: a line of a file.

    Attributes:
        a: Key of a method card or of a variant, or any name of a method that the suite does not have; likewise `b`. A
            file may have the name in print.
        score: The score as the file names it.
        value_a: The printed value of a in percent; None if only the difference is given.
        difference: The printed difference; None if it follows from the values.
        runs: Number of runs behind the values of a and of b; None if the source does not say. A file has one number for
            both methods, or two with a slash.
        plus_minus: The numbers behind ±, in percentage points, likewise; None without one.
        setting: Name of the published table that has the values, or any text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    source: str = ""
    place: str = ""
    a: str
    b: str
    dataset: _Dataset
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
            if 0 < min(a, b) <= 1 and not 1 < max(a, b) <= 20 * min(a, b):
                raise ValueError(f"value_a {a:g} and value_b {b:g} look like fractions; write both in percent")
            if self.difference is not None and abs(a - b - self.difference) > Decimal("0.051"):
                raise ValueError(f"the difference is {self.difference:g}, but the values differ by {a - b:.2f}")
        if fractions := [one for one in self.plus_minus if one and one < _LEAST_SPREAD]:
            raise ValueError(f"plus_minus {fractions[0]:g} looks like a fraction; write percentage points")
        if self.points <= 0:
            raise ValueError(f"the difference is {self.points:g}; a must be the method that is claimed to be better")
        _kind_and_metric(self.score)
        return self

    @property
    def points(self) -> float:
        """The claimed difference in percentage points: that of the values if they are given."""
        if self.value_a is None or self.value_b is None:
            return float(self.difference or 0)
        return float(self.value_a - self.value_b)

    @property
    def digits(self) -> int:
        """Number of printed digits after the point."""
        printed = [number for number in (self.value_a, self.value_b, self.difference) if number is not None]
        return max(-int(number.as_tuple().exponent) for number in printed)

    @property
    def kind(self) -> Kind:
        """Which embeddings were tested; `single` is one model."""
        return _kind_and_metric(self.score)[0]

    @property
    def metric(self) -> str:
        """Our name of the score's metric."""
        return _kind_and_metric(self.score)[1]


COLUMNS = tuple(Claim.model_fields)
"""The columns of a file of claims."""


@cache
def shipped_claims() -> tuple[Claim, ...]:
    """Return the main claims of the papers."""
    text = resources.files("results").joinpath("published", "claims.csv").read_text(encoding="utf-8")
    return read_claims(text, "claims.csv")


def read_claims(text: str, name: str, key_of: Callable[[str], str] = str) -> tuple[Claim, ...]:
    """Read a file of claims.

    Args:
        text: The content of the file.
        name: What messages of `ClaimsFileError` call it.
        key_of: Returns the key of a method from its name in the file.
    """
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), skipinitialspace=True, strict=True)
    claims = []
    try:
        header = [column.strip() for column in next(reader, [])]
        for fields in reader:
            claims += [_claim(header, fields, key_of)] if fields else []
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


def _claim(header: Sequence[str], fields: Sequence[str], key_of: Callable[[str], str]) -> Claim:
    written = {column: text.strip() for column, text in zip(header, fields, strict=True)}
    written |= {column: key_of(written[column]) for column in ("a", "b") if column in written}
    return Claim.model_validate({column: text for column, text in written.items() if text})


def key_by_print(titles: Mapping[str, str]) -> Callable[[str], str]:
    """Return what finds the key of a method by its name in print, whatever its capitals, blanks and hyphens.

    Titles come before the labels of published tables, of which those that name several methods mean none. What is no
    name of a method stays as it is.

    Args:
        titles: Titles of methods by key.
    """
    labels: dict[str, set[str]] = {}
    for label, key in read_published("cells")[["label", "key"]].itertuples(index=False):
        if key:
            labels.setdefault(_plain(label), set()).add(key)
    known = {label: min(keys) for label, keys in labels.items() if len(keys) == 1}
    known |= {_plain(title): key for key, title in titles.items()}
    return lambda name: name if name in titles else known.get(_plain(name), name)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum() or letter == "+")


def _kind_and_metric(score: str) -> tuple[Kind, str]:
    """Kind and metric of a score such as `R@1` or `MAP@R concatenated`."""
    title, _, named = score.partition(" ")
    recall = re.fullmatch(r"(R|Recall)@([0-9]+)", title)
    metric = f"recall@{recall[2]}" if recall else ""
    kinds: tuple[Kind, ...] = get_args(Kind)
    for kind in kinds:
        if kind == (named or "single") and (found := _METRICS.get(title, metric)):
            return kind, found
    raise ValueError(
        f"score {score!r} is unknown; use R@1, R@K for another K, P@1, RP, MAP@R, mAP@1000 or NMI, then "
        f"{', '.join(kinds)} or nothing"
    )


def claimed_cells(claim: Claim) -> tuple[tuple[PublishedRow, PublishedCell], tuple[PublishedRow, PublishedCell]] | None:
    """Return the row and cell of a's and of b's value in the published table that the claim names; None without."""
    if claim.setting not in published_tables():
        return None
    table, column = published_table(claim.setting), PublishedColumn(claim.dataset, claim.metric, claim.kind)
    a, b = (
        [
            (row, cell)
            for row in table.rows
            if row.key == method and value is not None
            if (cell := row.cells.get(column)) and cell.value == float(value)
        ]
        for method, value in ((claim.a, claim.value_a), (claim.b, claim.value_b))
    )
    # Rows of other networks may have equal values by chance.
    pairs = sorted(product(a, b), key=lambda pair: _likeness(pair[0][0], pair[1][0]), reverse=True)
    return pairs[0] if pairs else None


def _likeness(a: PublishedRow, b: PublishedRow) -> int:
    return (a.trunk == b.trunk) + (a.dimensions == b.dimensions) + (a.setting == b.setting)


def quoted_values(claim: Claim) -> dict[str, str]:
    """Return the sources of values that the claim's own source did not measure, by method."""
    return {
        row.key or "": cell.origin.quoted_from or "an unclear source"
        for row, cell in claimed_cells(claim) or ()
        if cell.origin.kind != "measured"
    }
