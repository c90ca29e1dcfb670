"""`new method` writes a card and a loss that pass every check, and that no other card leaves at a disadvantage."""

from pathlib import Path

import pytest

from losses.bridge import THREE
from reproduce.commands.new import KINDS, write_method
from reproduce.config.open_method import checked_card
from reproduce.errors import InputError
from tests.support.command_line import refused


@pytest.mark.usefixtures("forked_processes")
@pytest.mark.parametrize(
    ("kind", "like", "name", "cls"),
    [
        pytest.param(
            *("proxy", "normalized_softmax", "my_own_loss", "MyOwnLoss"),
            marks=pytest.mark.skipif(THREE, reason="version 3 of pytorch-metric-learning refuses this card"),
        ),
        ("pairs", "contrastive", "_3d", "Loss3d"),
    ],
)
def test_the_card_is_as_fair_as_a_card_of_the_suite_and_the_loss_short(
    tmp_path: Path, kind: str, like: str, name: str, cls: str
) -> None:
    card, loss = write_method(name, tmp_path, kind)
    read, (source,), recipe = checked_card(str(card))
    assert read.key == name
    assert source.endswith(f"{name}.py:{cls}")
    assert len(loss.read_text().splitlines()) <= 20
    (suites, _, theirs), rate = checked_card(like), "loss_optimizer.lr"
    assert recipe.falls
    assert recipe.model_copy(update={"searched": (), "falls": None}) == theirs.model_copy(update={"searched": ()})
    assert len(recipe.searched) == len(theirs.searched)
    rates = [one.search[rate].model_copy(update={"published_as": None}) for one in (read, suites) if rate in one.search]
    assert len(set(map(repr, rates))) == (kind == "proxy")
    with pytest.raises(InputError, match=rf"{name}\.yaml: exists already and is not overwritten"):
        write_method(name, tmp_path, kind)


def test_the_kind_is_asked_for_where_somebody_can_answer(say, tmp_path: Path, monkeypatch) -> None:
    new = ("new", "method", "my_new_loss")
    refused(say(*new), *(f"--kind {kind}: {what}" for kind, what in KINDS.items()))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda *_: "pairs")
    assert all(what in say(*new).out for what in KINDS.values())
    assert "samples_per_class: 4" in (tmp_path / "my_new_loss.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../x", "use letters, digits and underscores"),
        ("proxy_anchor", "there is a method of this name already"),
        ("losses", "losses.py would hide the Python module of this name"),
        ("mine", r"mine\.py: exists already"),
        *((taken, "choose another name") for taken in ("None", "none", "all", "best", "Null", "true", "NaN")),
        *((word, "has another meaning in Python") for word in ("lambda", "class", "True", "async")),
    ],
)
def test_bad_names_are_one_line_and_nothing_is_written(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    with pytest.raises(InputError, match=message):
        write_method(name, tmp_path, "proxy")
    with pytest.raises(InputError, match="none: no such folder; make it first"):
        write_method("my_own_loss", tmp_path / "none", "proxy")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("mine.py", "x = 1\n")]
