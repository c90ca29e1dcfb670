"""Readings of an open recipe: their range, what depends on them, and other variants that are no readings."""

from reports.tables.result_table import table_of
from results.findings.experiment import answer_of
from tests.support.page_material import MLRC, searched

SETTINGS = {**MLRC, "dataset": {"name": "glyphs"}}


def world(**means):
    """Two readings of pfml, a variant that is none, and other methods."""
    variants = [
        {"of": "cards/pfml.yaml", "key": "by_sum", "title": "Sum", "set": {"loss.reduction": "sum"}, "reading": True},
        {
            "of": "cards/pfml.yaml",
            "key": "by_mean",
            "title": "Mean",
            "set": {"loss.reduction": "mean"},
            "reading": True,
        },
        {"of": "cards/pfml.yaml", "key": "ablated", "title": "Ablated", "set": {"loss.alpha": 0.0}},
    ]
    return searched(settings={**SETTINGS, "variants": variants}, **means).measured


def sentences(measured):
    return [one.sentences for one in answer_of(measured).findings if one.text.startswith("The reading")]


def test_the_reading_decides_and_verdicts_depend_on_it():
    measured = world(by_sum=(30, 31, 32), by_mean=(10, 11, 12), ablated=(5, 6, 7), a=(20, 21, 22), b=(40, 41, 42))
    assert sentences(measured) == [
        "The reading of pfml decides 20.0 points: its 2 readings have 11.0 to 31.0 %, 3 other rows 6.0 to 41.0 %. "
        "Of 1 pair of readings 1 differ. The verdict against A depends on the reading."
    ]
    notes = {row.key: row.cells[6].note for row in table_of(answer_of(measured)).rows}
    assert notes["by_sum"] == "rank 2, readings 11.0 to 31.0"
    assert notes["by_mean"] == "rank 4, readings 11.0 to 31.0"
    assert notes["ablated"] == "rank 5"


def test_readings_that_agree_and_readings_alone():
    measured = world(by_sum=(30, 31, 32), by_mean=(30.1, 31.1, 32.1), a=(10, 11, 12))
    assert sentences(measured) == [
        "The reading of pfml decides 0.1 points: its 2 readings have 31.0 to 31.1 %, 1 other row 11.0 %. "
        "Of 1 pair of readings 0 differ. No verdict against another row depends on the reading."
    ]
    assert sentences(world(by_sum=(30, 31, 32), a=(10, 11, 12))) == [], "one reading is no family"
    (alone,) = sentences(world(by_sum=(30, 31, 32), by_mean=(10, 11, 12)))
    assert alone.endswith("its 2 readings have 11.0 to 31.0 %. Of 1 pair of readings 1 differ.")
