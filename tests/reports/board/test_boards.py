"""What may stand on one board, and what stays apart, with a line that says why."""

from dataclasses import replace

import pytest

from reports.board.board_table import headline, ranking_table
from reports.board.boards import boards_of
from tests.support.sample_records import changed_plan, with_own_loss
from tests.support.several_datasets import LEVELS, source

FROZEN = {"trunk": {"name": "efficientnet_lite0", "weights": "imagenet", "frozen": True}}


def names(board):
    return [dataset.title for dataset in board.datasets]


def test_datasets_under_the_same_conditions_stand_together():
    boards, lines = boards_of([source("cub200"), source("cars196"), source("sop")])
    (board,) = boards
    assert (names(board), list(board.methods), lines) == (
        ["CUB-200-2011", "Cars196", "Stanford Online Products"],
        list(LEVELS),
        [],
    )
    assert {pair.verdict for pair in board.pairs()} == {"consistent"}
    assert len(board.pairs()) == 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (FROZEN, "trunk.name efficientnet_lite0, trunk.weights imagenet, trunk.frozen True"),
        ({"trunk": {"name": "small_conv", "weights": "random", "pooling": "average_max"}}, "trunk.pooling average_max"),
        ({"embedding_size": 64}, "embedding_size 64"),
        ({"training": {"max_epochs": 7}}, "training.max_epochs 7"),
        ({"training": {"schedule": {"milestones": [2], "factor": 0.1}}}, "training.schedule.factor 0.1"),
        ({"embedder": {"init": "pca"}}, "embedder.init pca"),
        ({"normalization": "ball"}, "normalization ball"),
        ({"protocol": "standard"}, "protocol standard"),
        ({"primary": {"metric": "precision_at_1"}}, "score concatenated P@1"),
    ],
)
def test_unlike_things_stay_apart_and_a_line_says_why(settings, said):
    unlike = source("sop", None, settings)
    boards, lines = boards_of([source("cub200"), source("cars196"), unlike])
    assert [names(board) for board in boards] == [["CUB-200-2011", "Cars196"]]
    (line,) = lines
    assert "on_sop on Stanford Online Products stands alone" in line
    assert said in line


def test_methods_of_one_key_whose_own_code_differs_are_kept_apart():
    first, same, other = (source(name, {**LEVELS, "mine": 0.7}) for name in ("cub200", "cars196", "sop"))
    first, same, other = (
        replace(one, measured=with_own_loss(one.measured, "mine", code))
        for one, code in zip((first, same, other), "aab", strict=True)
    )
    assert "mine" in boards_of([first, same])[0][0].methods
    (board,) = boards_of([first, same, other])[0]
    assert (list(board.methods), board.left_out) == (list(LEVELS), {"mine": "mine"})


def test_a_second_experiment_with_other_settings_is_named():
    longer = source("cub200", None, {"seed": 1}, name="other_seed")
    boards, lines = boards_of([source("cub200"), longer, source("sop")])
    assert names(boards[0]) == ["CUB-200-2011", "Stanford Online Products"]
    assert "other_seed (store.sqlite) is not drawn: on_cub200 is on CUB-200-2011 too" in lines[0]


def test_two_experiments_of_one_name_are_told_apart_by_their_budgets():
    one = source("cub200")
    plan = changed_plan(one.measured.plan, trials={"cosface": 30})
    longer = replace(one, measured=replace(one.measured, plan=plan))
    _, lines = boards_of([one, longer, source("sop")])
    assert lines == [
        "on_cub200 with 3 x 30 trials, 1 run each (store.sqlite) is not drawn: that with 3 x 20 trials, 1 run each is "
        "on CUB-200-2011 too; name one of them by its identity, which `reproduce status` lists"
    ]


def test_other_data_of_one_name_is_no_second_dataset_and_no_part_of_the_first():
    other = source("cub200", {"mine": 0.7}, data_fingerprint="changed images")
    assert "not drawn" in boards_of([source("cub200"), other, source("sop")])[1][0]


def test_a_users_folders_are_datasets_of_their_own():
    folders = [source("folder", name=name, data_fingerprint=name) for name in ("my_shop/shoes", "my_shop/hats")]
    assert names(boards_of(folders)[0][0]) == ["shoes", "hats"]


def test_equal_files_under_several_names_are_one_dataset():
    data = {"fingerprint": "", "samples": 100, "classes": 10, "content": "equal"}
    twice = [source("folder", name=name, data_fingerprint=name) for name in ("first", "renamed")]
    equal = []
    for one in twice:
        plan = one.measured.plan
        plan = plan.model_copy(update={"data": plan.data.model_copy(update=data)})
        equal.append(replace(one, measured=replace(one.measured, plan=plan)))
    boards, lines = boards_of(equal)
    assert boards == []
    assert lines[0] == "renamed (store.sqlite) is not drawn: first has the same data; name one of them"


def test_tied_methods_have_no_best_and_no_rank_correlation():
    tied = [source(name, dict.fromkeys(("cosface", "triplet", "margin"), 0.5)) for name in ("cub200", "sop")]
    (board,) = boards_of(tied)[0]
    assert board.best == ("cosface", "triplet", "margin")
    said = " ".join(ranking_table(board).notes)
    assert said.startswith("The 3 methods are tied: all have the mean rank 2.0; ")
    assert "Rank correlation: CUB-200-2011 and Stanford Online Products none, as all methods of one are tied." in said
    with pytest.raises(ValueError, match="CosFace, Triplet and Margin <b> are tied, so none is the best"):
        board.pairs("best")
    some = [source(name, {"cosface": 0.6, "triplet": 0.6, "margin": 0.1}) for name in ("cub200", "sop")]
    assert headline(boards_of(some)[0][0]).startswith("CosFace and Triplet share the best mean rank (1.5)")


def test_a_part_of_a_dataset_says_so():
    part = source("cub200", None, {"dataset": {"name": "cub200", "subset": True}})
    assert names(boards_of([part, source("sop")])[0][0]) == ["part of CUB-200-2011", "Stanford Online Products"]


def test_methods_that_train_nothing_or_are_not_everywhere_are_not_on_the_board():
    levels = {"untrained": 0.3, **LEVELS}
    (board,) = boards_of([source("cub200", {**levels, "arcface": 0.5}), source("sop", levels)])[0]
    assert list(board.methods) == list(LEVELS)
    assert board.left_out == {"arcface": "arcface"}


def test_datasets_without_common_methods_are_no_board():
    boards, lines = boards_of([source("cub200", {"triplet": 0.5}), source("sop", {"cosface": 0.5})])
    assert boards == []
    assert "CUB-200-2011, Stanford Online Products have fewer than two trained methods in common" in lines[0]


def test_the_best_is_best_by_mean_rank():
    sources = [
        source("cub200", {"cosface": 0.6, "triplet": 0.5, "margin": 0.59}),
        source("sop", {"cosface": 0.3, "triplet": 0.29, "margin": 0.1}),
        source("cars196", {"cosface": 0.3, "triplet": 0.9, "margin": 0.1}),
    ]
    (board,) = boards_of(sources)[0]
    assert next(iter(board.mean_ranks)) == "cosface", "the plain average is highest for triplet"
    assert [(pair.a, pair.b) for pair in board.pairs("best")] == [("cosface", "triplet"), ("cosface", "margin")]
    assert board.pairs("best")[0].verdict == "depends on the dataset"
    assert [pair.a for pair in board.pairs("margin")] == ["margin", "margin"]


def test_missing_searches_are_no_finished_experiment():
    one = source("cub200")
    assert not one.answer.interim
    fewer = replace(one, measured=replace(one.measured, records=one.measured.records[:-1]))
    assert fewer.answer.interim
    (board,) = boards_of([fewer, source("sop")])[0]
    assert {pair.on[0].untested for pair in board.pairs()} == {None, "searches missing"}
