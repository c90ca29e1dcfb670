"""What a method's values are, in one place: how they are compared, and every word that depends on it.

A new kind of sample is one entry of `_SAMPLES`. Nothing else asks which kind it is; it asks for a rule or a word.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from results.wording import plural

Unit = Literal["search", "single search", "run", "block", "fold", "dataset", "summary", "uncounted summary"]
"""What a method's values are: means of repeated searches, the runs of its only search, or runs of a given setting.

In scores that were measured elsewhere also runs on blocks that all methods share (splits, subjects, seeds), folds of a
cross-validation, one score on each of several datasets, or a mean of runs with its deviation. An uncounted summary is
of a number of runs that nothing says.
"""

Test = Literal["pooled", "assumed", "paired", "welch", "ranks"]
"""How two methods are tested: by variances pooled over methods, with an assumed deviation of searches, within what
methods share, by each method's own deviation, or by signed ranks."""

About = Literal["methods", "settings", "this dataset", "datasets like these"]


@dataclass(frozen=True)
class Sample:
    """One kind of values.

    In its texts `{word}` and `{words}` are the word and its plural, `{n}` is the number of values.

    Attributes:
        word: What an answer is over, such as `search`.
        value: What a single value is: runs, where each method was searched once.
        test: How two methods are tested.
        about: What an answer is about.
        over: What differences are over, in the caption of pairs.
        means: What means are over, in the caption of results.
        point: What a point and an interval of the ranking are.
        given: What a claim rests on, behind it in a headline.
        test_words: The test, in a sentence for a paper.
        interval_words: The method of an interval, for a record.
        may_err: Where wrong claims are more likely than the level says (docs: How it is tested).
        of_searches: Whether a value is the mean of a whole search.
        takes_more: Whether more values show smaller differences: folds and datasets are no more data.
        counted: Whether it is known how many values there are. If not, an answer says how many would show a difference.
    """

    word: str
    test: Test
    about: About
    over: str
    means: str
    point: str
    value: str = "{word}"
    given: str = ""
    test_words: str = "t test"
    interval_words: str = "Student's t over {word} values"
    may_err: str = ""
    of_searches: bool = False
    takes_more: bool = True
    counted: bool = True

    @property
    def words(self) -> str:
        """What an answer is over, of several: `searches`."""
        return plural(self.word)

    @property
    def values(self) -> str:
        """What several values are."""
        return plural(self.value)

    @property
    def paired(self) -> bool:
        """Whether the values of the methods belong together, one by one."""
        return self.test in ("paired", "ranks")

    @property
    def each(self) -> str:
        """Write ` of each` behind a number of values that every method has for itself."""
        return "" if self.paired else " of each"


_SIMULATED = (
    "; in simulations it was higher where one method varied ten times as much as the others, had two modes, or failed "
    "in two of five {words}"
)
_POOLED = (
    "Student's t over {words}; variance pooled over methods, or the method's own if larger, times 1 + 1 / (S - 1)^2 "
    "for S {words}"
)
_RUNS = Sample(
    "run",
    "pooled",
    "settings",
    over="runs of the given settings",
    means="n runs",
    point="The points are single runs, and the intervals are over runs of the settings.",
    given=" at the given settings",
    interval_words=_POOLED,
    may_err=_SIMULATED,
)
_SUMMARY = Sample(
    "run",
    "welch",
    "settings",
    over="means and deviations of {words}",
    means="n runs",
    point="The intervals are of means over {words}.",
    given=" at the given settings",
    test_words="Welch's t test from means and deviations",
)
_FOLDS = Sample(
    "fold",
    "paired",
    "this dataset",
    over="the folds of a cross-validation of one dataset",
    means="n folds, which share training data",
    point="The points are single folds, and the intervals are over folds, which share training data.",
    given=" on this dataset, over its folds",
    test_words="corrected t test of cross-validation (Nadeau and Bengio, 2003)",
    interval_words="Student's t over folds of a cross-validation, corrected as by Nadeau and Bengio (2003)",
    takes_more=False,
)
_OF_FOLDS = replace(
    _SUMMARY,
    word="fold",
    about="this dataset",
    means=_FOLDS.means,
    given=_FOLDS.given,
    test_words=f"{_SUMMARY.test_words}, corrected for folds that share training data,",
    interval_words=_FOLDS.interval_words,
    takes_more=False,
)
_UNCOUNTED: Mapping[str, Any] = MappingProxyType(
    {"counted": False, "means": "an unknown number of {words}", "point": "The points are means over {words}."}
)

_SAMPLES: Mapping[str, Sample] = MappingProxyType(
    {
        "search": replace(
            _RUNS,
            word="search",
            about="methods",
            over="means of complete searches",
            means="{n}",
            point="A point is the mean of one search's runs; the intervals are over searches.",
            given="",
            of_searches=True,
        ),
        "single search": replace(
            _RUNS,
            word="search",
            value="run",
            test="assumed",
            point=f"{_RUNS.point.removesuffix('.')}: another search is not in them.",
            about="methods",
            over="runs of the settings that one search of each method found",
            means="n runs of the settings that one search found",
            given=", with one search of each",
            interval_words="Student's t over {word} values",
            takes_more=False,
        ),
        "run": _RUNS,
        "block": Sample(
            "block",
            "paired",
            "settings",
            over="runs paired by {word}",
            means="n {word} values that all methods share, so differences are surer than these",
            point="The points are single runs, one for each {word}; differences are within it, so they are surer than "
            "the intervals.",
            given=" at the given settings",
            test_words="paired t test over {words}",
            may_err="; in simulations it was 8 % for 14 methods on three blocks if one varied five times as much",
        ),
        "fold": _FOLDS,
        "dataset": Sample(
            "dataset",
            "ranks",
            "datasets like these",
            over="datasets, one score of each method on each (median difference)",
            means="the datasets, and the mean of the method's ranks on them",
            point="The points are single datasets.",
            given=" over {n}",
            test_words="Wilcoxon's signed-rank test; the difference is the median of Hodges and Lehmann",
            takes_more=False,
        ),
        "summary": _SUMMARY,
        "summary of folds": _OF_FOLDS,
        "uncounted summary": replace(_SUMMARY, **_UNCOUNTED),
        "uncounted summary of folds": replace(_OF_FOLDS, **_UNCOUNTED),
    }
)


@cache
def sample_of(unit: Unit, shared: str = "", *, folds: bool = False) -> Sample:
    """Return the sample of a unit with its words filled in.

    Args:
        unit: What a method's values are.
        shared: What the column of blocks is called.
        folds: Whether the values are of folds of a cross-validation.
    """
    sample = _SAMPLES[f"{unit} of folds" if folds and f"{unit} of folds" in _SAMPLES else unit]
    word = shared if unit == "block" and shared else sample.word
    filled: dict[str, Any] = {"word": word}
    for name, text in ((one.name, getattr(sample, one.name)) for one in fields(sample) if one.name != "word"):
        if isinstance(text, str):
            filled[name] = text.replace("{words}", plural(word)).replace("{word}", word)
    return replace(sample, **filled)
