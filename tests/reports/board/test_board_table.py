"""The table and the page of a board: numbers, verdicts, words, origins."""

import json
import re
from dataclasses import replace

import pytest

from benchmarks.kept_tables import kept_board
from reports.board.board_table import board_page, headline, pairs_table, places_of, ranking_table, ranks_figure
from reports.board.boards import boards_of
from reports.tables.formats import WRITERS
from reports.tables.table import cell_text
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
    return boards_of(sources)[0][0]


def test_the_figure_has_the_places_of_the_ranking(board):
    table = ranking_table(board)
    for dataset in board.datasets:
        for key, places in zip(board.methods, places_of(dataset.answer, board.methods).values(), strict=True):
            ends = dict.fromkeys(map(str, (places.first, places.last)))
            assert cell_text(table.row(key)[f"{dataset.title} rank"]) == " to ".join(ends)
    assert [places.of_mean for places in places_of(board.datasets[2].answer, board.methods).values()] == [2, 1, 3]
    assert ranks_figure(board).image in board_page(board, figure=ranks_figure(board))
    assert ranks_figure(replace(board, datasets=board.datasets * 2)) is None


def words(table):
    rows = {row.head: table.row(row.head) for row in table.rows}
    return {head: {title: cell_text(cell) for title, cell in row.items()} for head, row in rows.items()}


def test_rows_have_each_dataset_the_mean_and_the_verdict(board):
    table = pairs_table(board)
    rows = words(table)
    assert [column.name for column in table.columns] == [
        *("CUB-200-2011", "Cars196", "Stanford Online Products", "In-Shop", "mean", "predicted", "verdict")
    ]
    assert list(rows) == ["CosFace − Margin <b>", "Triplet − Margin <b>", "CosFace − Triplet"], "answers first"
    row = rows["CosFace − Triplet"]
    assert row["CUB-200-2011"] == "+2.00 ± 0.45"
    assert (row["mean"], row["predicted"]) == ("+1.00 ± 3.18", "+1.00 ± 7.12")
    assert [row["verdict"] for row in rows.values()] == ["consistent", "consistent", "depends on the dataset"]
    assert any(note.startswith("Of 3 pairs: 2 consistent and 1 depends on the dataset. ") for note in table.notes)
    first = "CUB-200-2011: on_cub200 from ours.sqlite, commit 000000000000, 3 x 20 trials, 1 run each."
    assert first in table.remarks


def test_the_ranking_has_the_places_that_a_method_can_have_on_each_dataset_and_on_all(board):
    table = ranking_table(board)
    datasets = ("CUB-200-2011", "Cars196", "Stanford Online Products", "In-Shop")
    of_datasets = [f"{dataset} {name}" for dataset in datasets for name in ("MAP@R", "rank")]
    assert [column.title for column in table.columns] == [*of_datasets, "mean rank", "rank on all"]
    assert [row.key for row in table.rows] == ["cosface", "triplet", "margin"], "by mean rank"
    best = {title: cell_text(cell) for title, cell in table.row("cosface").items()}
    assert [best[title] for title in of_datasets] == ["60.00", "1", "60.00", "1", "58.00", "2", "60.00", "1"]
    assert (best["mean rank"], best["rank on all"]) == ("1.2", "1 to 2")
    assert cell_text(table.row("margin")["rank on all"]) == "3"
    assert headline(board) == (
        "CosFace has the best mean rank (1.2); on CUB-200-2011 CosFace can be the best; on Cars196 CosFace can be the "
        "best; on Stanford Online Products Triplet can be the best; on In-Shop CosFace can be the best."
    )
    assert any("CUB-200-2011 and Stanford Online Products 0.50" in note for note in table.notes)
    assert headline(board) in table.notes
    assert headline(board) not in ranking_table(board, with_headline=False).notes


def test_of_many_datasets_the_headline_counts_where_the_first_can_be_the_best(board, monkeypatch):
    monkeypatch.setattr("reports.board.board_table.MOST_DATASETS", 3)
    assert headline(board) == ("CosFace has the best mean rank (1.2); CosFace can be the best on 3 of the 4 datasets.")


def test_the_kept_board_says_what_holds_on_both_and_which_search_is_set_aside():
    board = kept_board()
    assert headline(board) == (
        "Proxy-Anchor has the best mean rank (1.5); on glyphs any of the 14 methods can be the best; on handwriting "
        "any of the 14 methods can be the best."
    )
    assert {cell.value for cell in ranking_table(board).column("rank on all")} == {"1 to 14"}, "all after 400 steps"
    decided = pairs_table(board, decided=True)
    assert decided.notes == (
        "Of 91 pairs: 91 cannot tell. None survive a correction over all 91.",
        "On handwriting, 1 of 3 searches of Contrastive found no good setting (14.1) and is set aside.",
    )
    assert decided.rows == ()
    notes = [cell.note for row in pairs_table(board).rows for cell in row.cells if cell.note]
    assert any(note.endswith(" better after 400 steps)") for note in notes), "how far a lead goes"


def test_two_datasets_have_no_mean():
    (board,) = boards_of([source("cub200"), source("sop", OTHER_WAY)])[0]
    table = pairs_table(board, "cosface")
    assert [column.name for column in table.columns] == ["CUB-200-2011", "Stanford Online Products", "verdict"]
    assert "which a third dataset can still turn around" in table.caption


def test_the_sheet_has_each_difference_with_its_half_width(board):
    row = next(row for row in json.loads(WRITERS["json"](pairs_table(board))) if "Triplet" in row["Methods"][-7:])
    assert row["Stanford Online Products"] == pytest.approx(-2)
    assert (row["mean"], row["mean ±"]) == (pytest.approx(1), pytest.approx(3.18, abs=0.01))


def test_the_page_is_whole_and_escaped(board):
    page = board_page(board, made="Drawn today.")
    assert "Margin &lt;b&gt;" in page
    assert "<b>" not in page
    assert "Drawn today." in page
    assert not re.search(r'(?:src|href)="https?://', page)
    assert page.index('class="headline"') < page.index("rank on all") < page.index("consistent")
    assert not re.search(r"\bp [<=]|Friedman|Nemenyi|Wilcoxon|sign test|critical", page)
