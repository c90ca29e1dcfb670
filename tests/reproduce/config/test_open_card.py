"""Cards from outside the suite: classes from files beside them, and what an unknown one is told."""

from pathlib import Path

import pytest

from reproduce.commands.new import write_method
from reproduce.config.open_method import load_card
from reproduce.errors import InputError


@pytest.mark.usefixtures("forked_processes")
def test_a_path_in_a_card_is_relative_to_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card, _ = write_method("users_own", tmp_path)
    monkeypatch.chdir("/")
    loaded = load_card(str(card))
    assert loaded.loss is not None
    assert loaded.loss.name == f"{tmp_path}/users_own.py:UsersOwn"


def test_an_unknown_loss_is_refused_with_every_way_to_name_one(tmp_path: Path) -> None:
    card = tmp_path / "users_own.yaml"
    card.write_text("key: users_own\ntitle: Own\nsource: none\nloss: {name: NoLoss}\n")
    with pytest.raises(InputError) as caught:
        load_card(str(card))
    for part in ("in this suite or in pytorch-metric-learning", "./my_file.py:NoLoss"):
        assert part in str(caught.value)
    for part in ("relative to the card", "my_package.module:NoLoss", "`reproduce new method my_loss`"):
        assert part in str(caught.value)
