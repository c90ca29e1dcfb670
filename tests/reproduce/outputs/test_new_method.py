"""`new method` writes a card and a loss that pass every check."""

from pathlib import Path

import pytest

from reproduce.config.checked_card import load_card
from reproduce.errors import InputError
from reproduce.outputs.new_method import write_method


@pytest.mark.parametrize(("name", "cls"), [("my_own_loss", "MyOwnLoss"), ("yes", "Yes"), ("_3d", "Loss3d")])
def test_the_card_is_valid_and_the_loss_short(tmp_path: Path, name: str, cls: str) -> None:
    card, loss = write_method(name, tmp_path)
    assert load_card(str(card)).key == name
    assert load_card(str(card)).loss.name.endswith(f"{name}.py:{cls}")
    assert len(loss.read_text().splitlines()) <= 20


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write_method("my_own_loss", tmp_path)
    with pytest.raises(InputError, match=r"my_own_loss\.yaml: exists already and is not overwritten"):
        write_method("my_own_loss", tmp_path)
    (tmp_path / "other.py").write_text("x = 1\n")
    with pytest.raises(InputError, match=r"other\.py: exists already"):
        write_method("other", tmp_path)
    assert not (tmp_path / "other.yaml").exists()
    assert (tmp_path / "other.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my loss", "use letters, digits and underscores"),
        ("../x", "use letters, digits and underscores"),
        ("proxy_anchor", "there is a method of this name already"),
        ("torch", "torch.py would hide the Python module of this name"),
        ("losses", "losses.py would hide the Python module of this name"),
    ],
)
def test_bad_names_are_one_line(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        write_method(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none: no such folder; make it first"):
        write_method("my_own_loss", tmp_path / "none")
