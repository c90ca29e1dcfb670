"""`reproduce board`: which experiments stand on it, from the store and from records; files and messages."""

import json
from dataclasses import replace

import pytest

from reproduce.outputs.tables import FILES
from results.store.store import Store
from tests.support.sample_records import put_experiment
from tests.support.several_datasets import LEVELS, experiment


def keep(folder, name, *datasets, **changes):
    """Put an experiment on each of these datasets into a store."""
    path = folder / "runs" / "store.sqlite"
    path.parent.mkdir(exist_ok=True)
    store = Store(path, path.parent / "artifacts")
    for dataset in datasets:
        measured = experiment(dataset, **changes)
        panel = f"{name}/{dataset}"
        fingerprint = measured.plan.experiment.fingerprint(panel, dataset)[:16]
        put_experiment(store, fingerprint, panel, measured.plan, measured.records)


def datasets_of(answer):
    assert answer.code == 0, answer.err
    return {name for row in json.loads(answer.out) for name in row} & {
        "CUB-200-2011",
        "Stanford Online Products",
        "Cars196",
    }


def test_without_names_the_latest_finished_experiment_of_each_dataset_is_drawn(say, tmp_path):
    keep(tmp_path, "earlier", "cub200", settings={"seed": 1})
    keep(tmp_path, "mine", "cub200", "cars196", "sop")
    assert datasets_of(say("board", "mine/cub200", "mine/sop", "--format", "json")) == {
        "CUB-200-2011",
        "Stanford Online Products",
    }
    unfinished = experiment("inshop").plan
    Store(tmp_path / "runs" / "store.sqlite", tmp_path).put_experiment("0" * 16, "begun", unfinished)
    answer = say("board", "--format", "json")
    assert datasets_of(answer) == {"CUB-200-2011", "Cars196", "Stanford Online Products"}
    assert answer.err == (
        "earlier/cub200 (runs/store.sqlite) is not drawn: mine/cub200 is on CUB-200-2011 too; name one of them\n"
    )


def test_records_stand_beside_the_store(say, tmp_path):
    keep(tmp_path, "mine", "cub200", levels={**LEVELS, "my_loss": 0.7})
    keep(tmp_path, "theirs", "sop", levels={**LEVELS, "my_loss": 0.6})
    (tmp_path / "cars.json").write_text(experiment("cars196", {**LEVELS, "my_loss": 0.7}).to_json())
    answer = say("board", "mine", "theirs", "cars.json", "--compare", "my_loss", "--format", "json")
    assert datasets_of(answer) == {"CUB-200-2011", "Cars196", "Stanford Online Products"}
    assert {row["Methods"].partition(" ")[0] for row in json.loads(answer.out)} == {"my_loss"}


def test_a_dataset_without_the_compared_method_is_named_and_left_out(say, tmp_path):
    keep(tmp_path, "mine", "cub200", "cars196", levels={**LEVELS, "my_loss": 0.7})
    keep(tmp_path, "mine", "sop")
    answer = say("board", "mine", "--compare", "my_loss", "--format", "json")
    assert datasets_of(answer) == {"CUB-200-2011", "Cars196"}
    assert {row["Methods"].partition(" ")[0] for row in json.loads(answer.out)} == {"my_loss"}
    assert answer.err == "mine/sop (runs/store.sqlite) is not drawn: it has no my_loss\n"
    assert len(datasets_of(say("board", "mine", "--format", "json"))) == 3


@pytest.mark.parametrize("runs", [0, 4, 8])
def test_an_unfinished_experiment_that_is_named_is_left_out_with_a_line(say, tmp_path, runs):
    keep(tmp_path, "mine", "cub200", "sop")
    begun = experiment("cars196")
    begun = replace(begun, records=tuple(sorted(begun.records, key=lambda run: run.search)[:runs]))
    (tmp_path / "begun.json").write_text(begun.to_json())
    answer = say("board", "mine", "begun.json", "--format", "json")
    assert datasets_of(answer) == {"CUB-200-2011", "Stanford Online Products"}
    line = "begun (begun.json) is not drawn: searches or runs are missing; finish it with `reproduce run`"
    assert answer.err == f"{line}\n"
    alone = say("board", "begun.json", "begun.json")
    assert (alone.code, alone.err.splitlines()[:2]) == (2, [line, line])
    assert alone.err.splitlines()[-1].startswith("error: no two datasets can stand on one board")


def test_files_of_all_formats_and_the_page_are_written(say, tmp_path):
    keep(tmp_path, "mine", "cub200", "sop")
    answer = say("board", "--to", "board").done()
    names = {f"{table}.{suffix}" for table in ("ranking", "pairs") for suffix in FILES.values()}
    names |= {f"ranks.{suffix}" for suffix in ("svg", "png", "pdf")}
    assert {path.name for path in (tmp_path / "board").iterdir()} == {"index.html", *names}
    assert answer.out.startswith("Stanford Online Products, CUB-200-2011: board/index.html; beside it ")
    page = (tmp_path / "board" / "index.html").read_text()
    assert "from mine/cub200" not in page
    assert "mine/cub200 from runs/store.sqlite" in page
    assert '<img src="data:image/png;base64,' in page


def test_unlike_boards_have_folders_of_their_own(say, tmp_path):
    for size in (64, 128):
        keep(tmp_path, f"of_{size}", "cub200", "sop", settings={"embedding_size": size})
    assert say("board", "--to", "board").code == 0
    assert {path.name for path in (tmp_path / "board").iterdir()} == {"board_1", "board_2"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--format", "xml"), "Invalid value for '--format': 'xml' is not one of 'terminal'"),
        (("--compare", "arcface"), "--compare arcface: is not on all datasets; use all, best, or one of cosface"),
        (("nothing",), "no experiment 'nothing' in runs/store.sqlite; `reproduce status` lists all"),
        (("mine", "none.json"), "none.json: cannot be read"),
        (("mine", "bad.json"), "bad.json: is no record; write one with `reproduce table NAME --format json`"),
        (("mine/sop",), "no two datasets can stand on one board; run an experiment on a second one"),
        (("--store", "nowhere.sqlite"), "no two datasets can stand on one board"),
        (("mine", "--store", "nowhere.sqlite"), "mine: there is no store to read it from; name one with --store"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(say, tmp_path, asked, said):
    keep(tmp_path, "mine", "cub200", "sop")
    (tmp_path / "bad.json").write_text("{}")
    answer = say("board", *asked)
    assert answer.code == 2
    assert answer.err.splitlines()[-1].startswith(f"error: {said}"), answer.err
