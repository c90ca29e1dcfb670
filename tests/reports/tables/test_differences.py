"""The table of differences between methods."""

import re
from dataclasses import replace

import numpy as np
import pytest

from reports.headline import comparison_lines, headline
from reports.tables.differences import differences
from reports.tables.formats import to_markdown
from reports.tables.table import cell_text
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.measured_experiment import read
from tests.support.sample_records import changed_plan, some_plan, some_run
from tests.support.sample_searches import searched

TITLES = {"a": "Anna", "b": "Bert", "c": "Cora"}
FROZEN = MeasuredExperiment.kept("mlrc_frozen_cub200_subset")


def world(values, compare="all", reproductions=None, **search):
    """Methods with these concatenated MAP@R in percent; with searches, each value is that of one search."""
    searches = search.get("searches", 1)
    records = [
        some_run(
            key,
            run=number if searches == 1 else 0,
            search=0 if searches == 1 else number,
            separated=4 * value / 100 - 0.1,
            fingerprint=f"{key}-{number}",
        )
        for key, own in values.items()
        for number, value in enumerate(own)
    ]
    planned = reproductions or (1 if searches > 1 else max(map(len, values.values())))
    settings = {"search": {"trials": 0, **search}, "primary": {"compare": compare}}
    methods = {key: TITLES[key] for key in values}
    return MeasuredExperiment(some_plan(settings, methods=methods, reproductions=planned), tuple(records))


# Cases 1 to 3 of the design: A above B and C, which cannot be told apart unless C is the named one.
SEARCHES = {"a": (30.0, 30.6, 30.3), "b": (29.1, 29.5, 29.0), "c": (27.9, 28.4, 28.6)}


def rows(table):
    lines = (line for line in to_markdown(table).splitlines() if re.match(r"\|.* − .*\|", line))
    return {cells[1].strip(): [cell.strip() for cell in cells[2:-1]] for cells in (line.split("|") for line in lines)}


def test_differences_are_those_of_the_experiments_comparison():
    measured = world(SEARCHES, trials=10, searches=3)
    frame, expected = read(differences(answer_of(measured))), answer_of(measured).pairs
    assert list(zip(frame["a"], frame["b"], strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    for column in ("difference", "degrees", "p", "p_better", "p_beyond", "p_equal", "smallest"):
        assert list(frame[column]) == pytest.approx([getattr(pair, column) for pair in expected]), column
    assert list((frame["high"] - frame["low"]) / 2) == pytest.approx([pair.half_width for pair in expected])
    assert list(frame["p_better"]) == pytest.approx([0.021898, 0.002509, 0.052673], abs=1e-6)
    assert list(frame["direction"]) == ["a better", "a better", "cannot tell"]
    assert list(frame["size"]) == ["cannot tell", "beyond", "cannot tell"]
    assert set(frame["unit"]) == {"search"}
    assert {*frame["units_a"], *frame["runs_b"]} == {3}


def test_direction_and_size_stand_apart_and_the_higher_mean_comes_first():
    shown = rows(differences(answer_of(world(SEARCHES, trials=9, searches=3))))
    assert shown["Anna − Bert"][1:] == ["Anna better", "cannot tell", "0.022", "3", "1.26"]
    assert shown["Bert − Cora"][1:3] == ["cannot tell", "cannot tell"]
    turned = {"c": SEARCHES["c"], "b": SEARCHES["b"], "a": SEARCHES["a"]}
    assert rows(differences(answer_of(world(turned, trials=9, searches=3)))) == shown
    steps = np.array([-1, 0, 1, 0, 1, -1, 0, 1, -1, 0]) * 0.04
    equal = rows(differences(answer_of(world({"a": 50 + steps, "b": 50 + steps[::-1]}))))
    assert [row[1:3] for row in equal.values()] == [["cannot tell", "within 0.5"]]


def test_a_difference_is_beyond_the_margin_only_if_its_direction_is_shown():
    spread = np.array([-4.52, 0, 4.52])
    (row,) = rows(differences(answer_of(world({"a": 60.4 + spread, "b": 50 + spread}, trials=10, searches=3)))).values()
    assert row[1:3] == ["cannot tell", "cannot tell"]


def test_the_pairs_are_those_that_were_asked_for_and_the_caption_says_which():
    def asked(compare):
        table = differences(answer_of(world(SEARCHES, compare, trials=10, searches=3)))
        return list(rows(table)), table.caption

    pairs, caption = asked("all")
    assert pairs == ["Anna − Bert", "Anna − Cora", "Bert − Cora"]
    assert "in percentage points: all pairs, over means of complete searches." in caption
    pairs, caption = asked("best")
    assert pairs == ["Anna − Bert", "Anna − Cora"]
    assert "points: each method with Anna, which has the highest mean, over" in caption
    pairs, caption = asked("c")
    assert pairs == ["Cora − Anna", "Cora − Bert"]
    assert "points: each method with Cora, over" in caption


def test_pairs_without_a_test_say_why():
    half = differences(answer_of(world({**SEARCHES, "c": (27.9, 28.4)}, trials=10, searches=3)))
    assert rows(half)["Anna − Cora"][1:] == ["searches missing", "", "", "3, 2", ""]
    assert rows(half)["Anna − Bert"][1:3] == ["cannot tell", "cannot tell"]
    assert half.caption.startswith("Interim. ")
    assert "Not finished: Cora has 2 of 3 searches. The results can change." in half.notes
    assert not any("Groups" in remark for remark in half.remarks)
    runs = {"a": (30, 31), "b": (20, 21), "c": (25,)}
    assert rows(differences(answer_of(world(runs))))["Cora − Bert"][1] == "runs missing"
    single = differences(answer_of(world({"a": (30,), "b": (20,)}, reproductions=1)))
    assert rows(single)["Anna − Bert"] == ["+10.00", "single runs", "1"]
    assert not any("at most 5 %" in remark for remark in single.remarks)


def test_one_search_without_a_record_has_verdicts_about_settings_only():
    table = differences(answer_of(world(SEARCHES, trials=5)))
    assert [column.name for column in table.columns] == ["difference", "verdict", "runs", "settings found"]
    assert rows(table)["Anna − Cora"] == ["+2.00", "search not known", "3", "Anna's setting better"]
    assert any("It says nothing about the methods" in remark for remark in table.remarks)
    assert set(read(table)["direction"]) == {"cannot tell"}
    assert list(read(table)["settings_direction"]) == ["a better", "a better", "cannot tell"]


def test_a_setting_whose_trainings_were_cut_off_is_not_called_worse():
    measured = world(SEARCHES, trials=5)
    cut = {run.fingerprint: len(run.specs) for run in measured.records if run.method == "c"}
    table = differences(answer_of(replace(measured, cut_off=cut)))
    words = [cells[-1] for cells in rows(table).values()]
    assert words[:2] == ["Anna's setting better", "Anna's setting ahead after 100,000 steps"]
    assert list(read(table)["settings_direction"]) == ["a better", "cannot tell", "cannot tell"]


def test_one_search_with_a_record_names_it_and_tells_nothing_apart_on_frozen_features():
    table = differences(answer_of(FROZEN))
    frame = read(table)
    searched = frame[~frame[["a", "b"]].isin(["untrained", "pretrained_pca"]).any(axis=1)]
    assert len(searched) == 171
    assert set(searched["direction"]) == {"cannot tell"}
    assert (searched["settings_direction"] != "cannot tell").sum() > 100
    assert "assumed to be twice the 0.61 points of results/measured/search_variance_birds_subset" in table.remarks[0]


def test_pairs_of_runs_with_class_scores_have_a_second_interval():
    found = answer_of(FROZEN)
    table = differences(found)
    pair, cells = found.pair("proxy_anchor", "contrastive"), table.row("Proxy-Anchor − Contrastive")
    assert cell_text(cells["± over classes"]) == f"{100 * pair.over_classes:.2f}"
    frame = read(table).set_index(["a", "b"])
    assert frame.loc[("proxy_anchor", "contrastive"), "over_classes"] == pytest.approx(pair.over_classes)
    assert "± over classes: half its 95 % interval if other test classes were drawn." in table.remarks


def test_given_settings_are_compared_by_their_runs():
    table = differences(answer_of(world({"a": (30.0, 30.1, 30.2), "b": (20.0, 20.1, 20.3)})))
    assert "over runs of the given settings" in table.caption
    cells = table.row("Anna − Bert")
    assert (cells["verdict"].value, cells["size"].value) == ("Anna better", "beyond 0.5")
    assert "runs" in cells


def test_fewer_than_two_methods_are_said():
    for records in ((), world({"a": (30.0, 30.1)}).records):
        table = differences(answer_of(MeasuredExperiment(world({"a": (30.0, 30.1)}).plan, records)))
        assert (table.rows, table.caption) == ((), "Fewer than two methods are compared.")


@pytest.mark.parametrize(("own", "verdict"), [(0.101, "A better"), (0.195, "cannot tell")])
def test_one_method_is_compared_with_its_own_default(own, verdict):
    found = searched({"a": [[0.20, 0.20], [0.21, 0.21], [0.19, 0.19]], "a_default": [[own, 0.2 - own]]}, searches=3)
    plan = changed_plan(found.plan, runs={"a": 6, "a_default": 2}, defaults={"a_default": "a"})
    found = answer_of(replace(found, plan=plan))
    table, (gain,) = differences(found), found.gains
    (row,) = rows(table).values()
    assert row[1:3] == [verdict, ""], "the size against the margin is not tested"
    assert "own setting, over means of complete searches" in table.caption
    assert dict(read(table).iloc[0])["p_better"] == pytest.approx(gain.p_better, rel=1e-9)
    said = "A beats A Default by 10.0 ±" if gain.better else "A is 10.0 ±"
    assert headline(found).startswith(said)
    assert comparison_lines(found) == [headline(found).removesuffix(".")]
