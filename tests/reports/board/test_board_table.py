"""The table and the page of a board: numbers, verdicts, words, origins."""

import json
import re

import pytest

from reports.board.board_table import board_page, board_table, means_table
from reports.board.boards import boards_of
from reports.tables.formats import WRITERS
from reports.tables.table import cell_text
from tests.benchmarks.kept_tables import SCRATCH, kept_board
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
    return {row.head: [cell_text(cell) for cell in row.cells] for row in table.rows}


def test_rows_have_each_dataset_the_mean_and_the_verdict(board):
    table = board_table(board)
    rows = words(table)
    assert [column.name for column in table.columns] == [
        *("CUB-200-2011", "Cars196", "Stanford Online Products", "In-Shop", "mean", "predicted", "verdict")
    ]
    assert list(rows) == ["CosFace − Margin <b>", "Triplet − Margin <b>", "CosFace − Triplet"], "answers first"
    row = rows["CosFace − Triplet"]
    assert row[0] == "+2.00 ± 0.43"
    assert row[4:] == ["+1.00 ± 3.18", "+1.00 ± 7.12", "depends on the dataset"]
    assert [row[-1] for row in rows.values()] == ["consistent", "consistent", "depends on the dataset"]


def test_the_leaders_come_first_then_the_verdicts_then_the_agreement(board):
    first, on_cub, *_, verdicts, correlations, meaning = board_table(board).notes
    assert first == "CosFace has the best mean rank over the datasets."
    assert on_cub == "On CUB-200-2011, CosFace is highest; 0 others of 2 are not shown to be worse."
    assert verdicts == "Of 3 comparisons: 2 consistent and 1 depends on the dataset."
    assert "CUB-200-2011 and Stanford Online Products 0.50" in correlations
    assert "also ahead on another in 83 % of cases. A coin has 50 %." in meaning
    of_91 = board_table(kept_board(SCRATCH)).notes[3]
    assert of_91.startswith("Of 91 comparisons: 25 same on both and 66 cannot tell. Each verdict is for one comparison")


def test_origins_have_place_commit_and_budget(board):
    first = "CUB-200-2011: on_cub200 from ours.sqlite, commit 000000000000, 3 x 20 trials, 1 run each: 3 methods."
    assert first in board_table(board).remarks


def test_two_datasets_have_no_mean():
    (board,) = boards_of([source("cub200"), source("sop", OTHER_WAY)]).boards
    table = board_table(board, "cosface")
    assert [column.name for column in table.columns] == ["CUB-200-2011", "Stanford Online Products", "verdict"]
    assert "Two datasets show directions only" in table.caption


def test_the_means_mark_the_highest_and_those_not_shown_to_be_worse(board):
    table = means_table(board)
    assert table.rows[0].key == "cosface"
    assert [row.cells[0].mark for row in table.rows] == ["best", "", ""]
    marks = [row.cells[1].mark for row in means_table(kept_board(SCRATCH)).rows]
    assert (marks.count("best"), "tied" in marks) == (1, True)


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
    assert first["mean"] == pytest.approx(0.01)


def test_a_mixed_board_names_the_conditions_in_the_columns_and_the_caption():
    table = board_table(kept_board(), "proxy_isa")
    assert table.columns[0].name == "part of CUB-200-2011; frozen efficientnet_lite0, imagenet weights"
    assert "Mixed on request: the datasets differ in trunk too" in table.caption
    assert {row[-1] for row in words(table).values()} == {"cannot tell"}


def test_the_page_is_whole_and_escaped(board):
    page = board_page(board, made="Drawn today.")
    assert "Margin &lt;b&gt;" in page
    assert "<b>" not in page
    assert "Drawn today." in page
    assert not re.search(r'(?:src|href)="https?://', page)
    assert page.index("The methods on each dataset") < page.index("which differences hold") < page.index("consistent")
