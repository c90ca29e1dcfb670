"""The experiment files of the papers' figures of embeddings: they open, and they ask for what their figure draws."""

from functools import cache
from pathlib import Path

import pytest

from protocols import mlrc
from reproduce.config.experiment_file import load_experiments
from reproduce.run.session import Session, open_session
from reproduce.storage import storage_paths
from results.spec.experiment_spec import RecordingSettings
from results.spec.training_spec import FoldSpec

pytestmark = pytest.mark.late

FILES = ("proxy_isa_figure2", "proxy_isa_figure6", "proxy_isa_figure7", "ccp_figure1", "ccp_figure2", "ccp_figure3")
NAMES = tuple(name for file in FILES for name in load_experiments(file, {}))


@cache
def session(name: str, folder: Path) -> Session:
    (experiment,) = load_experiments(name, {}).values()
    where = storage_paths(str(folder / "store.sqlite"), None, None, None)
    return open_session(name, experiment, where, None, outline=True)


def final_trainings(name: str, folder: Path, key: str) -> set[str]:
    """Fingerprints of the first run's training on all classes after every epoch that can be chosen."""
    opened = session(name, folder)
    study = opened.studies()[key]
    epochs = range(1, opened.experiment.conditions.training.max_epochs + 1)
    return {opened.setup.final_spec(study.method.method, 0, epoch).fingerprint for epoch in epochs}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


def test_every_file_opens_with_all_its_methods(folder: Path) -> None:
    for name in NAMES:
        opened = session(name, folder)
        methods = opened.methods
        assert set(methods) == set(opened.experiment.methods), name
        for key, settings in opened.experiment.settings.items():
            if key in methods:
                assert {target: methods[key].given[target] for target in settings} == settings, name
                assert methods[key].at(settings) == methods[key].method, name


def test_stages_are_epochs_of_their_training() -> None:
    for name in NAMES:
        (experiment,) = load_experiments(name, {}).values()
        recordings = experiment.recordings or RecordingSettings(epochs=(0,))
        assert all(0 <= epoch <= experiment.conditions.training.max_epochs for epoch in recordings.epochs)
        # A training that only makes recordings has one epoch to choose, its last one.
        if experiment.protocol == "standard" and experiment.recordings is not None:
            assert (
                experiment.conditions.training.validate_every
                == experiment.conditions.training.max_epochs
                == max(recordings.epochs)
            )


@pytest.mark.parametrize("key", ["proxy_anchor", "proxy_isa"])
def test_the_final_networks_of_figure_6_are_those_of_table_1(folder: Path, key: str) -> None:
    table = final_trainings("proxy_isa_table1/cars196", folder, key)
    assert final_trainings("proxy_isa_figure6/cars196_final", folder, key) == table


def test_recorded_trainings_are_shared_with_no_other_file(folder: Path) -> None:
    # A training that another file has put into the store would have no recording.
    names = ("proxy_isa_table1/cars196", "proxy_isa_figure6/cars196_stages", "proxy_isa_figure7")
    trained = [final_trainings(name, folder, "proxy_isa") for name in names]
    assert not trained[0] & trained[1]
    assert not trained[0] & trained[2]
    assert not trained[1] & trained[2]


def first_fold(name: str, folder: Path) -> FoldSpec:
    opened = session(name, folder)
    study = opened.studies()["c2_ccp"]
    return mlrc.reproductions(study, study.method.given)[0][0]


def test_figure_2_of_ccp_is_drawn_from_a_training_of_table_2(folder: Path) -> None:
    spec = first_fold("ccp_table2/cub200", folder)
    assert first_fold("ccp_figure2", folder).fingerprint == spec.fingerprint
    # The search of Figure 3 has the same conditions, but other hyperparameters.
    searched = session("ccp_figure3", folder).setup.fold_specs(spec.method, "reproduction", 0)[0]
    assert searched.fingerprint == spec.fingerprint
