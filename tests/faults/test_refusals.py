"""What a method's code refuses: told before the first training, else a failed trial, and never the run's end."""

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from protocols.study import RunningSearch, Study
from protocols.training.build_method import MethodError, RefusedError, refusals
from protocols.training.monitor import NotFiniteError
from protocols.training.train_fold import train_fold
from protocols.users_code.sources import hashed_name, load_source
from reproduce.errors import InputError
from reproduce.outputs.export_studies import _trials
from reproduce.run.open_sessions import check_settings
from reproduce.run.session import Session, open_session
from reproduce.storage import storage_paths
from results.spec.component import Component, SourceName
from results.spec.method import Method
from results.spec.range import Range
from results.spec.search_settings import SamplerSettings
from results.store.searches import StoredStudy
from tests.support.experiment_files import load_experiment
from tests.support.feature_files import some_features, write_features
from tests.support.labs import InventedLab, TrialsInMemory
from tests.support.small_setup import TRIPLET, small_setup
from tests.support.studies import study_of
from tests.support.toys import made_up_result, pattern_dataset, settings, toy_fold

EXPERIMENT = """title: small
dataset: {{name: features, root: feat}}
methods: [{methods}]
embedding_size: 4
folds: 2
training: {{batch_size: {batch}, iterations_per_epoch: 2, max_epochs: 20, optimizer: {{name: Adam, arguments: {{}}}}}}
search: {search}
reproductions: 1
"""
EVEN = """key: even
title: Takes no batch of 8
source: a test
loss: {name: ./even.py:Even, arguments: {}}
"""
EVEN_LOSS = """import torch

class Even(torch.nn.Module):
    def forward(self, embeddings, labels, indices_tuple=None):
        if len(labels) == 8:
            raise ValueError("Takes no numbers")
        return embeddings.square().mean()
"""


def opened(folder: Path, methods: str, batch: int = 8, search: str = "{trials: 2}") -> Session:
    write_features(folder / "feat", some_features(), np.repeat(np.arange(16), 4))
    (folder / "even.yaml").write_text(EVEN)
    (folder / "even.py").write_text(EVEN_LOSS)
    (folder / "small.yaml").write_text(EXPERIMENT.format(methods=methods, batch=batch, search=search))
    experiment = load_experiment(str(folder / "small.yaml"), {})
    return open_session("small", experiment, storage_paths(str(folder / "s.sqlite")), None)


def refused(folder: Path, *arguments: Any) -> str:
    with pytest.raises(InputError) as raised:
        check_settings([opened(folder, *arguments)])
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("error", [ValueError("x"), TypeError("x"), Exception("x"), RuntimeError("shapes differ")])
def test_an_error_of_the_methods_code_is_a_refusal(error):
    with pytest.raises(RefusedError, match=r"^MyLoss: "), refusals("MyLoss"):
        raise error


@pytest.mark.parametrize(
    "error",
    [
        *(MemoryError(), OSError(errno.ENOSPC, "full"), torch.OutOfMemoryError("CUDA out of memory")),
        *(RuntimeError("CUDA error: launch failure"), RuntimeError("DefaultCPUAllocator: can't allocate memory")),
        *(RuntimeError("can't start new thread"), NotFiniteError("loss", 3)),
        MethodError("no loss class 'X'"),
    ],
)
def test_an_error_of_the_machine_or_the_data_is_none(error):
    with pytest.raises(type(error)) as raised, refusals("MyLoss"):
        raise error
    assert raised.value is error


def test_a_refusal_names_the_line_of_a_users_file(tmp_path):
    (tmp_path / "mine.py").write_text("def fail():\n    raise ValueError('too large')\n")
    fail = load_source(SourceName.parse(hashed_name(f"{tmp_path}/mine.py:fail")))
    with pytest.raises(RefusedError, match=r"^MyLoss: too large \(mine.py, line 2\)$"), refusals("MyLoss"):
        fail()


def test_what_a_loss_refuses_in_a_step_is_a_refusal_of_the_training(tmp_path):
    queue = Method(name="xbm", loss=Component(name="XBMLoss", arguments={"base": "c1", "memory_size": 4}))
    spec, data = toy_fold(pattern_dataset(tmp_path), queue, settings(batch_size=8))
    with pytest.raises(RefusedError, match=r"^XBMLoss: a batch of 8 does not fit into a memory of 4$"):
        train_fold(spec, data)


def test_batches_are_checked_for_all_methods_at_once(tmp_path):
    text = refused(tmp_path, "contrastive, normalized_softmax, triplet", 9)
    assert "contrastive, triplet: batch size 9 is no multiple of 4 images per class" in text


def test_a_batch_that_no_stream_of_images_fills_is_refused(tmp_path):
    assert "batch size 120000 is above 99984, the largest of these 24 images" in refused(
        tmp_path, "contrastive", 120_000
    )


@pytest.mark.usefixtures("forked_processes")
def test_the_faults_of_all_methods_are_named_in_the_middle_and_at_the_ends_of_their_ranges(tmp_path):
    both = "c1_xbm: {loss.memory_size: {low: 4, high: 90}}, c2_xbm: {loss.memory_size: {low: 3, high: 5}}"
    ranges = f"{{trials: 2, ranges: {{{both}}}}}"
    text = refused(tmp_path, "c1_xbm, c2_xbm, ./even.yaml", 8, ranges)
    assert "c1_xbm: at loss.memory_size 4: XBMLoss: a batch of 8 does not fit into a memory of 4;" in text
    assert "c2_xbm: XBMLoss: a batch of 8 does not fit into a memory of 4" in text
    assert "even: " in text
    assert "Takes no numbers" in text


@pytest.mark.usefixtures("forked_processes")
def test_every_choice_and_both_ends_are_tried_and_a_user_s_loss_may_be_flat_there(tmp_path):
    (tmp_path / "flat.py").write_text(
        "import torch\n\nclass Flat(torch.nn.Module):\n    def __init__(self, weight, kind):\n"
        "        super().__init__()\n        self.weight, self.kind = weight, {'a': 1.0, 'b': 2.0}[kind]\n\n"
        "    def forward(self, embeddings, labels, indices_tuple=None):\n"
        "        return self.weight * self.kind * embeddings.square().mean()\n"
    )
    card = """key: flat
title: No gradient at the low end
source: a test
loss: {name: ./flat.py:Flat, arguments: {weight: 1.0, kind: a}}
batch: {samples_per_class: 4}
search:
  loss.weight: {low: 0.0, high: 1.0}
  loss.kind: {scale: choice, choices: [KINDS]}
  batch.samples_per_class: {scale: int, low: LOW, high: HIGH}
"""
    (tmp_path / "flat.yaml").write_text(card.replace("KINDS", "c, a, b").replace("LOW", "3").replace("HIGH", "4"))
    text = refused(tmp_path, "./flat.yaml")
    assert "flat: at loss.kind c: " in text
    assert "KeyError: 'c'" in text
    assert "at batch.samples_per_class 3: batch size 8 is no multiple of 3 images per class" in text
    (tmp_path / "flat.yaml").write_text(card.replace("KINDS", "a, b").replace("LOW", "1").replace("HIGH", "2"))
    assert check_settings([opened(tmp_path, "./flat.yaml")]) == ()


def test_the_batch_size_can_be_a_bound_of_a_cards_range(tmp_path):
    session = opened(tmp_path, "c1_xbm", 128)
    space = session.plan.rows["c1_xbm"].ranges
    assert (space["loss.memory_size"].low, space["loss.memory_size"].high) == (128, 8192)
    check_settings([session])
    with pytest.raises(
        InputError, match=r"c1_xbm.*range is 9000 to 8192; .*c2_xbm.*range is 9000 to 8192; give low < high"
    ):
        opened(tmp_path, "c1_xbm, c2_xbm", 9000)


def search_of(setup: Any, refuse: Any, log: TrialsInMemory | None = None) -> tuple[Study, list[int]]:
    """Run a search of four trials whose settings are refused as told; return it and the numbers of trained trials."""
    margin = {"loss.margin": Range(scale="linear", low=0.0, high=1.0)}
    study = study_of(setup, TRIPLET, margin, log, trials=4, sampler=SamplerSettings(startup_trials=2))
    trained = []

    class RefusingLab(InventedLab):
        def train(self, jobs):
            number = len([trial for trial in study.trials() if trial.state != "running"])
            trained.append(number)
            if refuse(number):
                raise RefusedError(f"refused {number}")
            return [made_up_result(job.spec, 0.1 * number) for job in jobs]

    RunningSearch(study).best_hyperparameters(RefusingLab(None))
    return study, trained


def test_a_refused_setting_is_a_failed_trial_and_the_search_goes_on(tmp_path):
    setup, log = small_setup(tmp_path), TrialsInMemory()
    study, _ = search_of(setup, lambda number: number in (0, 2), log)
    trials = study.trials()
    assert [(trial.state, trial.reason) for trial in trials[:3:2]] == [("failed", "refused 0"), ("failed", "refused 2")]
    assert study.found_hyperparameters() == trials[3].setting
    assert study.skipped() == 2 * setup.folds
    assert len(study.known_trainings()) == 2 * setup.folds
    _, trained = search_of(setup, lambda number: False, log)
    assert len(trained) == 2, "a failed trial is not trained again"
    told = _trials(StoredStudy("f", study.identity, trials))
    assert [(trial.state.name, trial.user_attrs.get("reason")) for trial in told[:2]] == [
        ("FAIL", "refused 0"),
        ("COMPLETE", None),
    ]
