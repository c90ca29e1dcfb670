"""Devices, paths, the store and sessions, made from values of the command line."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from reproduce.commands.new import write_method
from reproduce.errors import InputError
from reproduce.run import devices
from reproduce.run.devices import check_device, default_workers
from reproduce.run.session import data_of, open_session
from reproduce.storage import only_run_of, open_store, storage_paths
from results.findings.experiment import answer_of
from results.store import StoreError
from results.store.experiment_results import MeasuredExperiment
from tests.support.command_line import one_line
from tests.support.experiment_files import load_experiment
from tests.support.feature_files import feature_setup, opened_features, some_features, write_features
from tests.support.sample_records import some_run


@pytest.mark.parametrize("device", ["tpu", "mps", "meta", "cuda:99", "cpu:1", "cuda:-1", "gpu", "", "cuda:x"])
def test_a_missing_device_gives_one_line(device):
    with one_line(repr(device), "cpu"):
        check_device(device)


def test_available_devices_are_accepted():
    assert check_device("cpu") == "cpu"
    assert check_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")


def test_the_default_number_of_workers(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(devices, "threads_per_training", lambda: 2)
    # On a CPU, on one of the eight GPUs, on all of them: two cores for each training, and no GPU without one.
    for cores, workers in ((1, (1, 1, 8)), (2, (1, 1, 8)), (16, (8, 4, 8)), (128, (64, 4, 32))):
        monkeypatch.setattr(devices, "granted_cores", lambda cores=cores: cores)
        assert tuple(map(default_workers, ("cpu", "cuda:1", "cuda"))) == workers


@pytest.mark.parametrize(
    ("store", "place", "base"),
    [
        ("runs/store.sqlite", Path("runs/store.sqlite"), "runs"),
        ("store.sqlite", Path("store.sqlite"), "."),
        ("sqlite:///x/y.sqlite", Path("x/y.sqlite"), "x"),
    ],
)
def test_default_folders_are_beside_the_store(store, place, base):
    where = storage_paths(store)
    assert where.store == place
    assert (where.artifacts, where.cache, where.tables) == tuple(
        Path(base) / x for x in ("artifacts", "cache", "tables")
    )
    chosen = storage_paths(store, Path("a"), Path("c"))
    assert (chosen.artifacts, chosen.cache) == (Path("a"), Path("c"))


def test_a_store_folder_that_cannot_be_made_gives_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with one_line("cannot be made", "--store"):
        open_store(storage_paths(str(tmp_path / "file" / "store.sqlite")))


def test_a_folder_or_another_file_as_store_says_what_to_name(tmp_path):
    with one_line("is a folder; name a file", "store.sqlite"):
        open_store(storage_paths(str(tmp_path)))
    (tmp_path / "notes.txt").write_text("no database " * 100)
    with pytest.raises(StoreError, match="not a database; name a store with --store"):
        open_store(storage_paths(str(tmp_path / "notes.txt")))


def test_half_written_files_of_killed_runs_go_when_a_run_starts(tmp_path):
    where = storage_paths(str(tmp_path / "store.sqlite"))
    (where.artifacts / "ab").mkdir(parents=True)
    old, new = (where.artifacts / "ab" / f".{name}.pt.1234.partial" for name in ("old", "new"))
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    with only_run_of(where, "e"):
        assert not old.exists()
        assert new.exists(), "it may belong to a run beside this one"


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    return storage_paths(str(tmp_path_factory.mktemp("runs") / "store.sqlite"))


def quickstart(**overrides):
    own = {"methods": ["untrained", "contrastive", "proxy_anchor"], "search.searches": 3, "search.trials": 15}
    return load_experiment("quickstart", own | {key.replace("__", "."): value for key, value in overrides.items()})


def test_a_session_has_the_experiments_setup(where):
    opened = open_session("quickstart", quickstart(folds=3, seed=4), where, None)
    setup = opened.setup
    assert (setup.dataset.name, setup.folds, setup.seed, setup.conditions.embedding_size) == ("glyphs", 3, 4, 128)
    assert setup.dataset.n_classes >= 200
    assert list(opened.plan.rows) == list(quickstart().methods)
    kept = opened.plan.model_dump(mode="json")
    assert list(kept) == [
        *("methods", "runs", "experiment", "interim_looks", "data", "ranges", "transductive", "recipes")
    ]
    assert kept["experiment"] == opened.experiment.without_folder()
    assert "untrained" not in kept["ranges"]
    assert kept["ranges"]["contrastive"] == {
        "loss.pos_margin": {"scale": "linear", "low": -0.2, "high": 2.0, "least": -0.2, "most": 2.0},
        "loss.neg_margin": {"scale": "linear", "low": -0.2, "high": 2.0, "least": -0.2, "most": 2.0},
    }
    nothing_searched = open_session("quickstart", quickstart(search__trials=0), where, None).plan
    assert nothing_searched.model_dump()["ranges"] == {}


def fixed(target, value):
    arguments = {"fixed_params": {target: value}, "base_sampler": {"name": "RandomSampler"}}
    return {"search__sampler": {"name": "PartialFixedSampler", "arguments": arguments}}


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"methods": ["contrastive", "triplet", "contrastive"]}, "'contrastive' is named twice"),
        ({"methods": ["tripet"]}, "unknown method 'tripet'"),
        ({"dataset__name": "folder"}, "--data FOLDER"),
        ({"dataset__name": "folder", "dataset__root": "nowhere"}, "nowhere: no such folder"),
        ({"search__enqueue": [{"loss.pos_margin": 3.0}]}, "search.enqueue: loss.pos_margin 3.0 is outside its range"),
        (
            {"search__enqueue": [{"loss.neg_margn": 0.5}]},
            "search.enqueue: there is no searched 'loss.neg_margn'; did you mean loss.neg_margin or loss",
        ),
        (
            {"methods": ["contrastive", "triplet"], "search__enqueue": [{"loss.neg_margin": 0.5, "loss.margin": 0.1}]},
            "search.enqueue: no method searches loss.neg_margin and loss.margin; searched here are loss.margin",
        ),
        (
            {"methods": ["whitened_pca"], "embedding_size": 900},
            "there are only 128 features, fewer than the 900 dimensions that are asked; give --set",
        ),
        (
            {"embedder": {"init": "lda"}},
            "contrastive: a fold has only 78 training classes, so at most 77 discr",
        ),
        ({"metrics": ["recall@1000000"]}, "recall@1000000: the test has only 1497 references, so every query would be"),
        ({"search__sampler": {"name": "BruteForceSampler"}}, "search.sampler: BruteForceSampler: "),
        (
            fixed("loss.pos_margn", 0.1),
            "fixed_params: there is no searched 'loss.pos_margn'; did you mean loss.pos_margin or loss",
        ),
        (fixed("loss.pos_margin", 9), "search.sampler: fixed_params: loss.pos_margin 9 is outside its range"),
    ],
)
def test_an_experiment_that_cannot_be_opened_gives_one_line(where, overrides, said):
    with one_line(said):
        open_session("quickstart", quickstart(**overrides), where, None)


def test_a_plan_computes_an_image_with_a_trunk_of_ones_own(tmp_path, where):
    (tmp_path / "big.py").write_text(
        "from torch import nn\nINPUT_FORMAT = {'channels': 'RGB', 'mean': [0, 0, 0], 'std': [1, 1, 1]}\n"
        "def build():\n    layer = nn.Conv2d(3, 6, 99)\n    layer.features = 6\n    return layer\n"
    )
    experiment = quickstart(trunk={"name": f"{tmp_path}/big.py:build", "weights": "random"})
    with pytest.raises(InputError, match=r"big\.py:build.*: cannot compute images of \d+ x \d+ pixels"):
        open_session("quickstart", experiment, where, outline=True)


def test_the_key_stands_beside_a_title_that_two_methods_have(tmp_path, where):
    for key in ("mine", "mine_too"):
        (tmp_path / f"{key}.yaml").write_text(
            f"key: {key}\ntitle: Mine\nsource: me\nloss: {{name: TripletMarginLoss, arguments: {{margin: 0.1}}}}\n"
        )
    methods = [str(tmp_path / "mine.yaml"), "contrastive", str(tmp_path / "mine_too.yaml")]
    titles = open_session("quickstart", quickstart(methods=methods), where).plan.titles
    assert list(titles.values()) == ["Mine (mine)", "Contrastive", "Mine (mine_too)"]


def test_features_of_a_user_are_no_untrained_trunk(tmp_path, where):
    write_features(tmp_path / "data", some_features(), [number // 4 for number in range(64)])
    file = tmp_path / "own.yaml"
    file.write_text(
        f"title: T\ndataset: {{name: features, root: {tmp_path / 'data'}}}\nmethods: [untrained, contrastive]\n"
        "embedding_size: 8\n"
    )
    assert (
        open_session("own", load_experiment(str(file), {}), where, None).plan.titles["untrained"] == "Features as given"
    )
    assert open_session("quickstart", quickstart(), where, None).plan.titles["untrained"] == "Untrained trunk"


def test_equal_rows_in_another_order_and_under_other_labels_are_the_same_content(tmp_path):
    rows, labels = some_features(), [number // 4 for number in range(64)]
    folders = {
        "given": (rows, labels),
        "renamed": (rows[::-1], [f"class {label}" for label in labels[::-1]]),
        "other": (some_features(seed=1), labels),
    }
    found = {}
    for name, (features, given) in folders.items():
        dataset = opened_features(write_features(tmp_path / name, features, given), tmp_path / "cache")
        setup = feature_setup(tmp_path)
        found[name] = data_of(replace(setup, dataset=dataset))
    assert found["given"].content == found["renamed"].content != found["other"].content
    assert found["given"].fingerprint != found["renamed"].fingerprint


def test_enqueued_settings_belong_to_an_experiment_only_where_there_are_any(where):
    plain, enqueued = quickstart(), quickstart(search__enqueue=[{"loss.pos_margin": 0.1}])
    assert "enqueue" not in plain.without_folder()["search"]
    assert plain.fingerprint("q", "d") != enqueued.fingerprint("q", "d")
    studies = open_session("quickstart", enqueued, where).studies()
    ours = open_session("quickstart", plain, where).studies()
    assert {key for key, study in studies.items() if study.name != ours[key].name} == {"contrastive"}


@pytest.mark.usefixtures("forked_processes")
def test_printed_scores_of_a_card_become_a_note_of_the_tables(tmp_path, where):
    card, _ = write_method("own", tmp_path, "proxy")
    card.write_text(card.read_text() + "printed: {glyphs: {precision_at_1: 65.9}, cub200: {map_at_r: 20.0}}\n")
    opened = open_session("quickstart", quickstart(methods=["contrastive", str(card)]), where)
    plan = opened.plan
    assert plan.rows["own"].printed == {"precision_at_1": 65.9}
    (found,) = [
        one for one in answer_of(MeasuredExperiment(plan, (some_run("own"),))).findings if "Printed" in one.text
    ]
    assert found.text == "Printed by the methods' sources: Own P@1 65.9."
    assert "printed" not in open_session("quickstart", quickstart(), where).plan.model_dump()
