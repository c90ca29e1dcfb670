"""Methods that their cards leave at a disadvantage, and readings of an open recipe, with what depends on them."""

from dataclasses import replace

import pytest

from reports.tables.result_table import table_of
from results.findings.experiment import answer_of, handicaps
from results.spec.experiment_spec import Contrast
from results.spec.method import BATCHES, LOSS_LR
from results.spec.plan import Recipe
from results.spec.range import Range
from tests.support.page_material import MLRC, searched
from tests.support.sample_records import some_plan

PROXIES = Recipe(samples_per_class=1, parameters="proxies", loss_lr=0.01, searched=(LOSS_LR, "loss.scale"))
PAIRS = Recipe(samples_per_class=4, searched=("loss.margin",))


def found(*others: Recipe, **changes: object) -> list[str]:
    rows = {"mine": PROXIES.model_copy(update=changes), **{f"other_{n}": one for n, one in enumerate(others)}}
    plan = some_plan(methods={key: key.capitalize() for key in rows}, recipes=rows)
    return [finding.sentences for finding in handicaps(plan)]


RATES = "Learning rates of a loss's own parameters that are not searched: Mine "
BATCH = "Images of a class in a batch: 4 for Mine; 1 for Other_0."


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"searched": ("loss.scale",)}, f"{RATES}0.01. Those of 2 other methods are searched (loss_optimizer.lr)."),
        ({"searched": (), "loss_lr": None}, f"{RATES}that of the network. Those of 2 other methods are searched"),
        ({"fixed": {"margin": 0.5, "m": 2}}, "Arguments of losses that are not searched: Mine margin 0.5, m 2."),
        ({"falls": False}, "Losses that do not fall while random embeddings are trained with them: Mine. What "),
    ],
)
def test_each_kind_is_named_with_the_row(changes: dict[str, object], said: str) -> None:
    (text,) = found(PROXIES, PROXIES, **changes)
    assert text.startswith(said)


def test_nothing_is_said_where_no_row_is_behind() -> None:
    assert found(PROXIES, PROXIES, falls=True) == []
    unsearched = PROXIES.model_copy(update={"searched": ()})
    assert found(unsearched, searched=(), fixed={"margin": 0.5}) == [], "nobody searches"


def test_images_of_a_class_in_a_batch_are_said_where_they_differ() -> None:
    assert found(PROXIES, samples_per_class=4)[0].startswith(BATCH)
    (searched,) = found(PROXIES, searched=(LOSS_LR, BATCHES), samples_per_class=4)
    assert searched.startswith("Images of a class in a batch: searched for Mine; 1 for Other_0.")
    four = PROXIES.model_copy(update={"samples_per_class": 4})
    assert found(four, samples_per_class=4) == []


def test_ranges_of_rates_are_named_where_they_differ() -> None:
    """Rows that are not searched, or not compared, have none."""
    pairs = PAIRS.model_copy(update={"samples_per_class": 1})
    rows = {"mine": PROXIES, "a": PROXIES, "b": PROXIES, "pairs": pairs, "mine_default": PROXIES}
    wide, narrow = ({LOSS_LR: Range(scale="log", low=low, high=1.0)} for low in (1e-6, 1e-5))
    common = {"methods": {key: key.upper() for key in rows}, "recipes": rows, "defaults": {"mine_default": "mine"}}
    assert list(handicaps(some_plan(ranges={"mine": wide, "a": wide, "mine_default": narrow}, **common))) == []
    (finding,) = handicaps(some_plan(ranges={"mine": wide, "a": narrow, "b": wide}, **common))
    said = "are searched in 2 ranges: 1e-06 to 1 for MINE and B; 1e-05 to 1 for A."
    assert finding.text == f"Learning rates of a loss's own parameters {said}"


def test_rows_that_are_not_compared_do_not_count() -> None:
    rows = {"mine": PROXIES.model_copy(update={"samples_per_class": 4}), "mine_default": PROXIES}
    plan = some_plan(methods=dict.fromkeys(rows, "M"), recipes=rows, defaults={"mine_default": "mine"})
    assert list(handicaps(plan)) == []


def test_a_recipe_in_words_says_what_is_searched_and_what_is_fixed() -> None:
    words = PROXIES.model_copy(update={"fixed": {"margin": 0.5}, "warmup_passes": 1}).words()
    searched = f"2: {LOSS_LR}, scale"
    assert list(words.values()) == ["1", "proxies", "searched", searched, "margin 0.5", "1 pass"]
    ranges = {LOSS_LR: Range(scale="log", low=1e-6, high=1.0)}
    assert PROXIES.words(ranges)["learning rate of these"] == "searched, 1e-06 to 1"
    drawn = Recipe(samples_per_class=0, parameters="others", loss_lr=0.5, warmup_steps=7).words()
    assert list(drawn.values()) == ["drawn at random", "parameters", "0.5", "-", "-", "7 steps"]


SETTINGS = {**MLRC, "dataset": {"name": "glyphs"}}


def world(**means):
    """Two readings of pfml, a variant that is none, and other methods."""
    card = "cards/pfml.yaml"
    variants = [
        *(
            {"of": card, "key": f"by_{how}", "title": how, "set": {"loss.reduction": how}, "reading": True}
            for how in ("sum", "mean")
        ),
        {"of": card, "key": "ablated", "title": "Ablated", "set": {"loss.alpha": 0.0}},
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
    table = table_of(answer_of(measured))
    shown = {row.key: table.row(row.key) for row in table.rows}
    notes = {key: cells["concatenated MAP@R"].note for key, cells in shown.items()}
    assert notes["by_sum"] == notes["by_mean"] == "readings 11.0 to 31.0"
    assert notes["ablated"] == ""
    assert [shown[key]["rank"].value for key in ("by_sum", "by_mean", "ablated")] == ["2", "4", "5"]


def test_readings_that_agree_and_readings_alone():
    measured = world(by_sum=(30, 31, 32), by_mean=(30.1, 31.1, 32.1), a=(10, 11, 12))
    assert sentences(measured) == [
        "The reading of pfml decides 0.1 points: its 2 readings have 31.0 to 31.1 %, 1 other row 11.0 %. "
        "Of 1 pair of readings 0 differ. No verdict against another row depends on the reading."
    ]
    assert sentences(world(by_sum=(30, 31, 32), a=(10, 11, 12))) == [], "one reading is no family"
    (alone,) = sentences(world(by_sum=(30, 31, 32), by_mean=(10, 11, 12)))
    assert alone.endswith("its 2 readings have 11.0 to 31.0 %. Of 1 pair of readings 1 differ.")


def test_readings_that_were_cut_off_differ_all_the_same():
    measured = world(by_sum=(30, 31, 32), by_mean=(10, 11, 12), a=(5, 6, 7), b=(40, 41, 42))
    cut = {run.fingerprint: len(run.specs) for run in measured.records if run.method == "by_mean"}
    (said,) = sentences(replace(measured, cut_off=cut))
    assert said.endswith(
        " Of 1 pair of readings 1 differ, all only after 100,000 steps. "
        "No verdict against another row depends on the reading."
    )


def test_contrasts_of_the_experiments_file_are_answered_in_its_table():
    high, low = (30.0, 30.1, 30.2), (10.0, 10.1, 10.2)
    asked = [
        {"title": "first", "a": ["a", "b"], "b": ["c", "d"]},
        {"title": "second", "a": ["a", "c"], "b": ["b", "d"]},
        {"title": "third", "a": ["a"], "b": ["e"]},
    ]
    settings = {**SETTINGS, "contrasts": asked}
    found = answer_of(searched(settings=settings, a=high, b=high, c=low, d=low).measured)
    said = [one.sentences for one in found.findings if one.text.startswith("Contrast")]
    assert said[0].startswith("Contrast, first: the mean of A and B minus the mean of C and D is +20.00 ± 0.1")
    assert said[0].endswith(" points, shown (p < 0.001, corrected for 3 contrasts).")
    assert said[1].startswith("Contrast, second: the mean of A and C minus the mean of B and D is +0.00 ± 0.1")
    assert said[1].endswith(" points, cannot tell (p 1.000, corrected for 3 contrasts; 0.3 would have shown).")
    assert said[2] == "Contrast, third: no answer, because it lacks e."
    assert set(said) <= set(table_of(found).notes)
    one = answer_of(searched(settings={**SETTINGS, "contrasts": asked[:1]}, a=high, b=high, c=low, d=low).measured)
    (alone,) = (found.text for found in one.findings if found.text.startswith("Contrast"))
    assert alone.endswith("points, shown (p < 0.001).")


def test_while_searches_are_missing_no_contrast_is_shown_and_no_reading_differs():
    measured = world(by_sum=(30, 31, 32), by_mean=(10, 11, 12), a=(20, 21))
    asked = Contrast(title="t", a=("by_sum",), b=("by_mean",))
    settings = measured.plan.experiment.model_copy(update={"contrasts": (asked,)})
    plan = measured.plan.model_copy(update={"experiment": settings})
    found = answer_of(replace(measured, plan=plan))
    assert not [one for one in found.findings if one.text.startswith("Contrast")]
    (reading,) = [one for one in found.findings if one.text.startswith("The reading of pfml decides 20.0 points")]
    assert reading.detail == ""
