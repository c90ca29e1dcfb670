"""`new method` writes a card and a loss that pass every check."""

from pathlib import Path

import pytest

from reproduce.commands.new import write_method
from reproduce.config.open_method import load_card
from reproduce.errors import InputError


@pytest.mark.usefixtures("forked_processes")
@pytest.mark.parametrize(("name", "cls"), [("my_own_loss", "MyOwnLoss"), ("_3d", "Loss3d")])
def test_the_card_is_valid_and_the_loss_short(tmp_path: Path, name: str, cls: str) -> None:
    card, loss = write_method(name, tmp_path)
    assert load_card(str(card)).key == name
    assert load_card(str(card)).loss.name.endswith(f"{name}.py:{cls}")
    assert len(loss.read_text().splitlines()) <= 20
    with pytest.raises(InputError, match=rf"{name}\.yaml: exists already and is not overwritten"):
        write_method(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../x", "use letters, digits and underscores"),
        ("proxy_anchor", "there is a method of this name already"),
        ("losses", "losses.py would hide the Python module of this name"),
        ("mine", r"mine\.py: exists already"),
    ],
)
def test_bad_names_are_one_line_and_nothing_is_written(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    with pytest.raises(InputError, match=message):
        write_method(name, tmp_path)
    with pytest.raises(InputError, match="none: no such folder; make it first"):
        write_method("my_own_loss", tmp_path / "none")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("mine.py", "x = 1\n")]
