"""The command line lists its contents. Bad input gives one clear line and exit code 2, and nothing is written."""

import json

import pytest

from protocols.datasets.dataset_registry import DATASETS
from reproduce.config.experiment_file import experiment_names
from reproduce.config.method_card import card_names
from reproduce.config.strict_yaml import read_yaml
from results.store.database import Database
from results.store.store import Store
from tests.support.command_line import TINY, refused

COMMANDS = ("run", "plan", "status", "table", "methods", "datasets", "experiments", "data")


pytestmark = pytest.mark.usefixtures("same_threads_afterwards")


def test_every_command_has_help(say):
    for name in COMMANDS:
        answer = say(name, "--help")
        assert answer.code == 0
        assert "Usage" in answer.out
    for name in ("run", "plan"):
        text = say(name, "--help").out
        for option in ("methods", "trials", "reproductions", "searches", "seed", "device", "workers", "store", "set"):
            assert f"--{option}" in text, option
    nothing = say()
    assert nothing.code == 2
    assert "Commands" in nothing.out + nothing.err


@pytest.mark.parametrize("name", ["untrained", "soft_triple"])
def test_a_method_is_shown_as_its_card(say, tmp_path, name):
    answer = say("methods", name)
    assert answer.code == 0
    own = tmp_path / f"{name}.yaml"
    own.write_text(answer.out)
    assert read_yaml(answer.out)["key"] == name
    assert say("methods", str(own)).out == answer.out


def test_methods_datasets_and_experiments_are_listed(say):
    assert all(name in say("methods").out for name in card_names()[:3])
    datasets, experiments = say("datasets"), say("experiments")
    assert (datasets.code, experiments.code) == (0, 0)
    assert all(name in datasets.out for name in DATASETS)
    assert all(name in experiments.out for name in experiment_names())


BAD = {
    "unknown command": (["rnu", "quickstart"], "rnu"),
    "no experiment": (["run"], "experiment"),
    "unknown option": (["run", "quickstart", "--trails", "3"], "--trails"),
    "unknown experiment": (["run", "quikstart"], "unknown experiment 'quikstart'; did you mean quickstart"),
    "no method": (["run", "tiny.yaml", "--methods", ","], "'methods'"),
    "dataset without its folder": (["run", "mlrc_cub200"], "--data"),
    "misspelt hyperparameter": (["run", "tiny.yaml", "--methods", "card.yaml"], "takes no argument 'margn'"),
    "no workers": (["run", "tiny.yaml", "--workers", "0"], "--workers"),
    "device that is not there": (["run", "tiny.yaml", "--device", "cuda:99"], "there is no device 'cuda:99'"),
    "weights that are not there": (
        ["run", "tiny.yaml", "--weights", "nowhere.pth", "--set", "trunk={name: bn_inception, weights: imagenet}"],
        "nowhere.pth; put bn_inception-52deb4733.pth there",
    ),
    "status without a store": (["status"], "runs/store.sqlite: there is no store yet"),
    "store that is no URL": (["status", "--store", "martian://me:secret@x"], "--store martian://...: a store is"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_nothing_is_written(say, tmp_path, case, monkeypatch):
    monkeypatch.setenv("METRIC_LEARNING_WEIGHTS", "")  # So that what --weights sets ends with the test.
    (tmp_path / "tiny.yaml").write_text(TINY)
    loss = {"name": "TripletMarginLoss", "arguments": {"margn": 0.1}}
    (tmp_path / "card.yaml").write_text(json.dumps({"key": "card", "title": "C", "source": "S", "loss": loss}))
    before = sorted(tmp_path.rglob("*"))
    arguments, said = BAD[case]
    answer = say(*arguments)
    assert said in refused(answer)
    assert answer.out == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_gives_one_line_and_the_run_can_continue_afterwards(say, tmp_path):
    """With different limits, trainings, trials and runs meet the full disk."""
    (tmp_path / "tiny.yaml").write_text(TINY)
    arguments = ("run", "tiny.yaml", "--methods", "contrastive", "--workers", "1", "--store", "s.sqlite")
    extra = [0]

    def full(self, mode="rw"):
        connection = connect(self, mode)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {max(1, pages + extra[0])}")
        return connection

    Store("s.sqlite", tmp_path)
    trained, refusals, connect = [], [], Database._connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "_connect", full)
        for extra[0] in range(0, 8, 2):
            answer = say(*arguments)
            if answer.code == 0:
                break
            refusals.append(refused(answer))
            trained.append(len(Store("s.sqlite", tmp_path).table("folds")))
    assert len(refusals) >= 2
    assert all("disk is full" in line and "is kept" in line for line in refusals)
    assert trained == sorted(trained)
    answer = say(*arguments).done()
    assert len(Store("s.sqlite", tmp_path).table("folds")) == 6
