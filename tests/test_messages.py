"""Every message that has a number: its noun and its verb come from the one function that makes them fit."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from results.wording import plural

ROOT = Path(__file__).parents[1]
ROOMS = ("losses", "protocols", "results", "reports", "reproduce")

COUNTED = (
    *("batch", "cell", "class", "claim", "column", "commit", "comparison", "dataset", "epoch", "experiment", "figure"),
    *("file", "fold", "image", "key", "label", "method", "model", "pair", "query", "row", "run", "sample", "score"),
    *("search", "step", "table", "trial", "training", "verdict"),
)
"""What the suite counts. Where it is one, a plural is wrong."""
NOUNS = {plural(noun) for noun in COUNTED}
FOLLOWING = {
    *("a", "among", "and", "at", "by", "each", "for", "from", "in", "of", "on", "per", "so", "the", "with", "without"),
    *("can", "give", "it", "may", "that", "would", "answered", "kept", "made", "published", "read"),
}
"""Words behind a number of things that fit one and many. What is not here may be a verb of one of the two."""
FITTING = {"counted", "counted_span", "every"}
ALWAYS_MANY = {
    "entry.input.channels": "names what a trunk takes",
    "looks": "are several numbers",
    "listed(one.not_compared)": "are names",
}
"""Values that are no numbers of things."""


def parts(file: Path) -> Iterator[tuple[int, ast.FormattedValue, str]]:
    """Every value in an f-string, with the text right behind it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            for value, text in zip(node.values, node.values[1:], strict=False):
                if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                    yield node.lineno, value, str(text.value)


def unfitting(value: ast.FormattedValue, text: str) -> bool:
    """Whether a plural stands behind a number that can be one, or a fixed verb behind a number of things."""
    if (
        not (words := re.match(r",? (?:which )?([A-Za-z]+)(?: ([A-Za-z]+))?", text))
        or ast.unparse(value.value) in ALWAYS_MANY
    ):
        return False
    called = value.value.func.id if isinstance(value.value, ast.Call) and isinstance(value.value.func, ast.Name) else ""
    if called in FITTING:
        return words[1] not in FOLLOWING
    # A page's caption can name things behind a text, such as a title.
    number = called == "len" or (not called and not isinstance(value.value, ast.Constant))
    return number and text.startswith(" ") and (words[1] in NOUNS or (called == "len" and words[2] in NOUNS))


@pytest.mark.parametrize("room", ROOMS)
def test_a_number_has_the_noun_and_the_verb_that_fit_it(room):
    found = [
        f"{file.relative_to(ROOT)}:{line}: {ast.unparse(value.value)}{text[:40]}"
        for file in sorted((ROOT / room).rglob("*.py"))
        for line, value, text in parts(file)
        if unfitting(value, text)
    ]
    assert found == [], "results.wording has counted, every and verb"


def test_templates_count_by_the_same_function():
    fixed = re.compile(r"\{\{[^}]*\}\}(?:</\w+>)? ([a-z]+)\b")
    found = [
        f"{file.name}: {match[0]}"
        for file in sorted((ROOT / "reports").rglob("*.html"))
        for match in fixed.finditer(file.read_text(encoding="utf-8"))
        if match[1] in NOUNS
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("f'{n} runs'", True),
        ("f'{len(found)} test classes'", True),
        ("f\"{counted(n, 'run')} lie far below\"", True),
        ("f\"{counted(n, 'run')} {verb(n, 'lie')} far below\"", False),
        ("f'{title} is better'", False),
    ],
)
def test_the_walk_sees_what_does_not_fit(source, wrong, tmp_path):
    (tmp_path / "one.py").write_text(source, encoding="utf-8")
    assert any(unfitting(value, text) for _, value, text in parts(tmp_path / "one.py")) is wrong
