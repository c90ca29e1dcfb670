"""Cards from outside the suite: classes from files beside them, and classes of packages whose names are taken."""

from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from protocols.training import build_method as methods
from protocols.training.build_method import component_class
from reproduce.commands.new import write_method
from reproduce.config.checked_card import load_card, users_sources
from reproduce.config.method_card import card_file
from reproduce.errors import InputError

PLUGIN = "users_package:Other"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Pretend that a package adds `PLUGIN` under a name."""

    def add(name: str) -> None:
        group = methods.ENTRY_POINTS
        points = EntryPoints([EntryPoint(name, PLUGIN, group)])
        monkeypatch.setattr(methods.metadata, "entry_points", lambda **selected: points.select(**selected))

    return add


def test_a_path_in_a_card_is_relative_to_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card, _ = write_method("users_own", tmp_path)
    monkeypatch.chdir("/")
    loaded = load_card(str(card))
    assert loaded.loss is not None
    assert loaded.loss.name == f"{tmp_path}/users_own.py:UsersOwn"
    (source,) = users_sources(loaded)
    assert source.startswith("users_own.py:UsersOwn (sha256 ")


def test_a_package_s_loss_is_not_shadowed_in_cards_from_outside(
    tmp_path: Path, installed: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed("ContrastiveLoss")
    (tmp_path / "users_package.py").write_text("class Other: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    card = tmp_path / "users_own.yaml"
    card.write_text("key: users_own\ntitle: Own\nsource: none\nloss: {name: ContrastiveLoss}\n")
    with pytest.raises(InputError, match="users_package:Other: a loss must be a class derived"):
        load_card(str(card))


def test_the_suite_s_cards_mean_what_they_meant(installed: Callable[[str], None]) -> None:
    installed("ContrastiveLoss")
    loss = load_card("contrastive").loss
    assert card_file("contrastive").is_file()
    assert loss is not None
    assert component_class("loss", loss.name) is methods.pml_losses.ContrastiveLoss


def test_an_unknown_loss_is_refused_with_every_way_to_name_one(tmp_path: Path) -> None:
    card = tmp_path / "users_own.yaml"
    card.write_text("key: users_own\ntitle: Own\nsource: none\nloss: {name: NoLoss}\n")
    with pytest.raises(InputError) as caught:
        load_card(str(card))
    for part in ("in this suite, in pytorch-metric-learning or in an installed package", "./my_file.py:NoLoss"):
        assert part in str(caught.value)
    for part in ("relative to the card", "my_package.module:NoLoss", "`reproduce new method my_loss`"):
        assert part in str(caught.value)
