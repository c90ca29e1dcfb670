"""The option --weights: missing weights give one line, and other weights change the fingerprints of trainings."""

import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.support.command_line import TINY, Answer, ask

FILE = "bn_inception-52deb4733.pth"
VARIABLE = "METRIC_LEARNING_WEIGHTS"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new working folder with an experiment file, and no access to the network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("torch.hub.urlopen", Mock(side_effect=OSError("no network")))
    # Set and deleted, so that monkeypatch removes the option's value after the test.
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)
    (tmp_path / "tiny.yaml").write_text(TINY)
    (tmp_path / "inception.yaml").write_text(
        TINY.replace("small_conv, weights: random", "bn_inception, weights: imagenet")
    )
    return tmp_path


@pytest.fixture
def say(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    return lambda *arguments: ask(*arguments, capsys=capsys, monkeypatch=monkeypatch)


def refused(answer: Answer) -> str:
    assert answer.code == 2, answer
    assert len(answer.err.splitlines()) == 1, answer.err
    assert answer.err.startswith("error: ")
    assert answer.out == ""
    return answer.err


def test_without_weights_and_network_the_error_is_one_line(say, here: Path) -> None:
    line = refused(say("run", "inception.yaml"))
    assert f"there is no file {here / 'home' / 'hub' / 'checkpoints' / FILE}" in line
    assert f"; put {FILE} there, or name the file, or its folder, with --weights" in line
    assert not (here / "runs" / "store.sqlite").exists()


@pytest.mark.parametrize("name", ["plan", "run"])
def test_missing_and_unneeded_weights_files_give_one_line(say, here: Path, name: str) -> None:
    line = refused(say(name, "inception.yaml", "--weights", "nowhere.pth"))
    assert f"there is no file {here / 'nowhere.pth'}; put {FILE} there" in line
    line = refused(say(name, "tiny.yaml", "--weights", "nowhere.pth"))
    assert "--weights nowhere.pth: trunk small_conv with random weights reads no file" in line
    assert not (here / "runs" / "store.sqlite").exists()


def test_a_plan_needs_neither_images_nor_weights_nor_torchvision_and_a_run_names_it(say, here, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    experiment = (here / "inception.yaml").read_text().replace("bn_inception", "resnet50")
    (here / "resnet.yaml").write_text(experiment)
    (here / "birds.yaml").write_text(experiment.replace("{name: glyphs}", "{name: cub200}"))
    planned = say("plan", "birds.yaml", "--device", "cpu", "--methods", "contrastive")
    assert "how long they take is not known" in planned.out, planned.err
    missing = "trunk resnet50 needs the package torchvision: pip install -e '.[torchvision]'"
    assert missing in refused(say("run", "resnet.yaml"))
