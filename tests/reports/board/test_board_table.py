"""The table and the page of a board: numbers, verdicts, words, origins."""

import json
import re

import pytest

from reports.board.board_page import board_content, board_page
from reports.board.board_table import board_table
from reports.board.boards import boards_of
from reports.tables.formats import WRITERS
from reports.tables.table import cell_text
from tests.benchmarks.board_calibration import kept_board
from tests.benchmarks.kept_findings import SCRATCH
from tests.support.several_datasets import LEVELS, source

OTHER_WAY = {"cosface": 0.58, "triplet": 0.60, "margin": 0.50}


@pytest.fixture
def board():
    sources = [
        source("cub200", place="ours.sqlite"),
        source("cars196", {**LEVELS, "margin": 0.51}, place="lab.zip"),
        source("sop", OTHER_WAY, place="lab.zip"),
        source("inshop", LEVELS, place="lab.zip"),
    ]
    return boards_of(sources).boards[0]


def words(table):
    return {row.head: [cell_text(cell) for cell in row.lines[0].cells] for row in table.rows}


def test_rows_have_each_dataset_the_mean_and_the_verdict(board):
    table = board_table(board)
    rows = words(table)
    assert [column.name for column in table.columns] == [
        *("cub200", "cars196", "sop", "inshop", "mean", "predicted", "mean, units", "predicted, units"),
        *("ahead", "verdict", "origin"),
    ]
    assert list(rows) == ["CosFace − Margin <b>", "Triplet − Margin <b>", "CosFace − Triplet"], "answers first"
    row = rows["CosFace − Triplet"]
    assert row[0] == "+2.00 ± 0.43"
    assert row[4:6] == ["+1.00 (-2.18 to +4.18)", "-6.12 to +8.12"]
    assert row[-3:] == ["CosFace on 3 of 4, one opposite", "depends on the dataset", "1, 2, 3, 4"]
    assert [row[-2] for row in rows.values()] == ["consistent", "consistent", "depends on the dataset"]


def test_origins_are_numbered_with_place_commit_and_budget(board):
    remarks = board_table(board).remarks
    first = "[1] cub200: on_cub200 from ours.sqlite, commit 000000000000, 3 x 20 trials, 1 run each: 3 methods."
    assert first in remarks
    assert remarks[0].startswith("Units of the datasets are the median differences")


def test_the_rank_correlations_come_with_what_they_mean_elsewhere(board):
    correlations, meaning = board_table(board).notes
    assert "cub200 and sop 0.50" in correlations
    assert "also ahead on another of them in 83 % of cases, where a coin has 50 %" in meaning


def test_a_small_agreement_can_be_chance():
    _, meaning = board_table(kept_board(("reality_check_birds_subset", "reality_check_glyphs"))).notes[:2]
    assert "in 60 % of cases, where a coin has 50 %, and random orders agree as much in 1" in meaning
    assert meaning.endswith("so this may be chance: measure there.")


def test_two_datasets_have_no_mean():
    (board,) = boards_of([source("cub200"), source("sop", OTHER_WAY)]).boards
    table = board_table(board, "cosface")
    assert [column.name for column in table.columns] == ["cub200", "sop", "ahead", "verdict", "origin"]
    assert "Two datasets show directions only" in table.caption
    assert words(table)["CosFace − Triplet"][2] == "1 of 2 each"
    assert words(table)["CosFace − Margin <b>"][2] == "CosFace on 2 of 2"


def test_no_test_of_ranks_is_printed(board):
    text = WRITERS["markdown"](board_table(board)) + board_page(board)
    assert not re.search(r"\bp [<=]|Friedman|Nemenyi|Wilcoxon|sign test|critical", text)


def test_the_sheet_has_a_line_for_each_dataset_of_a_pair(board):
    rows = json.loads(WRITERS["json"](board_table(board)))
    assert len(rows) == 3 * 4
    first = next(row for row in rows if (row["a"], row["b"], row["dataset"]) == ("cosface", "triplet", "sop"))
    assert first["difference"] == pytest.approx(-0.02)
    assert first["high"] - first["difference"] == pytest.approx(first["difference"] - first["low"])
    assert (first["experiment_a"], first["from_a"], first["verdict"]) == ("on_sop", "lab.zip", "depends on the dataset")
    assert (first["ahead_a"], first["ahead_b"], first["trunk"]) == (3, 1, "trained small_conv, random weights")
    assert first["mean_value"] == pytest.approx(0.01)


def test_a_mixed_board_names_the_conditions_in_the_columns_and_the_caption():
    table = board_table(kept_board(), "proxy_isa")
    assert table.columns[0].name == "part of cub200; frozen efficientnet_lite0, imagenet weights"
    assert "Mixed on request: the datasets differ in trunk too" in table.caption
    assert {row[-2] for row in words(table).values()} == {"cannot tell"}


def test_the_page_draws_intervals_on_an_axis_around_zero(board):
    content = board_content(board, "all", "")
    groups = {group.title: group for group in content.groups}
    assert list(groups) == ["Consistent", "Depends on the dataset"]
    (row,) = groups["Depends on the dataset"].rows
    assert [cell.side for cell in row.cells] == ["above", "above", "below", "above", ""]
    for cell in row.cells:
        place, low, high = cell.places
        assert 0 <= low < place < high <= 100
        assert {"above": low > 50, "below": high < 50, "": low < 50 < high}[cell.side]
    assert "on_sop from lab.zip" in row.cells[2].detail


def test_the_page_is_whole_and_escaped(board):
    page = board_page(board, made="Drawn today.")
    assert "Margin &lt;b&gt;" in page
    assert "<b>" not in page
    assert "Drawn today." in page
    assert not re.search(r'(?:src|href)="https?://', page)
    assert page.count('class="board"') == 2
    assert 'download="board.csv"' in page


def test_rows_that_cannot_be_told_are_folded_if_there_are_others():
    content = board_content(kept_board(SCRATCH), "all", "")
    assert [(group.title, len(group.rows), group.folded) for group in content.groups] == [
        ("Same on both", 25, False),
        ("Cannot tell", 66, True),
    ]
    assert not board_content(kept_board(), "proxy_isa", "").groups[0].folded
    assert content.headline == (
        "Of 91 comparisons, 25 are the same on both datasets, 0 are opposite on two, and 66 cannot be told."
    )


def test_many_verdicts_come_with_their_chance():
    warning = "Each verdict is for one comparison alone; of 91, some can be wrong by chance."
    assert warning in board_content(kept_board(SCRATCH), "all", "").limits
    assert "by chance" not in board_content(kept_board(SCRATCH), "proxy_isa", "").limits
