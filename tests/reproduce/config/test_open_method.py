"""A card opened for one experiment: published values, settings, ranges."""

from pathlib import Path

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from protocols.search.proposals import distribution_of
from reproduce.commands.new import write_method
from reproduce.config.open_method import load_card, open_method, variant_card
from reproduce.errors import InputError
from results.spec.experiment_spec import Variant
from tests.support.command_line import one_line
from tests.support.experiment_files import load_experiment
from tests.support.panels import written


def test_no_search_takes_the_published_values(tmp_path):
    card = load_card("cosface")
    birds = written(tmp_path, dataset={"name": "cub200"})
    opened = open_method(birds, card)
    assert opened.ranges == {}
    assert opened.given == card.published["cub200"]
    assert opened.method.loss.arguments["margin"] == card.published["cub200"]["loss.margin"]
    glyphs = open_method(written(tmp_path), card)
    assert glyphs.given == {}
    assert glyphs.method.loss == card.method.loss


def test_a_hyperparameter_with_a_setting_is_not_searched(tmp_path):
    experiment = written(tmp_path, search={"trials": 2}, settings={"cosface": {"loss.margin": 0.25}})
    opened = open_method(experiment, load_card("cosface"))
    assert opened.method.loss.arguments["margin"] == 0.25
    assert set(opened.ranges) == {"loss_optimizer.lr", "loss.scale"}
    assert opened.given == {"loss.margin": 0.25}


@pytest.mark.parametrize("target", ["loss.marginn", "miner.epsilon", "loss_optimizer.momentum", "los.margin", "loss"])
def test_a_setting_or_range_that_the_method_does_not_have_gives_one_line(tmp_path, target):
    with pytest.raises(InputError, match="settings of method 'cosface': "):
        open_method(written(tmp_path, settings={"cosface": {target: 1.0}}), load_card("cosface"))
    search = {"trials": 2, "ranges": {"cosface": {target: {"low": 0.0, "high": 1.0}}}}
    with pytest.raises(InputError, match=f"search.ranges of method 'cosface': there is no searched '{target}'"):
        open_method(written(tmp_path, search=search), load_card("cosface"))


def test_ranges_replace_the_cards_bounds(tmp_path):
    search = {"trials": 2, "ranges": {"cosface": {"loss.scale": {"low": 1.0, "high": 2.0}}}}
    space = open_method(written(tmp_path, search=search), load_card("cosface")).ranges
    assert (space["loss.scale"].low, space["loss.scale"].high) == (1.0, 2.0)
    assert (space["loss.margin"].low, space["loss.margin"].high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("method", "target", "change", "distribution"),
    [
        ("cosface", "loss_optimizer.lr", {"low": 1e-4, "high": 1e-2}, FloatDistribution(1e-4, 1e-2, log=True)),
        ("cosface", "loss_optimizer.lr", {"low": 1e-4}, FloatDistribution(1e-4, 1.0, log=True)),
        ("cosface", "loss.margin", {"step": 0.25}, FloatDistribution(0, 1, step=0.25)),
        ("cosface", "loss.margin", {"scale": "log", "low": 0.1}, FloatDistribution(0.1, 1.0, log=True)),
        ("cosface", "loss.scale", {"scale": "int", "low": 1, "high": 9, "step": 2}, IntDistribution(1, 9, step=2)),
        ("cosface", "loss.margin", {"choices": [0.1, "x"]}, CategoricalDistribution([0.1, "x"])),
        ("fastap", "loss.num_bins", {"choices": [5, 10]}, CategoricalDistribution([5, 10])),
        ("fastap", "loss.num_bins", {"low": 2, "high": 8, "step": 3}, IntDistribution(2, 8, step=3)),
    ],
)
def test_ranges_change_what_they_name_and_leave_the_rest_to_the_card(tmp_path, method, target, change, distribution):
    experiment = written(tmp_path, search={"trials": 50, "ranges": {method: {target: change}}})
    found = open_method(experiment, load_card(method)).ranges[target]
    assert distribution_of(found) == distribution
    assert not found.exhaustive


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scale": "linear", "low": 2.0}, "loss.margin: the range is 2 to 1; give low < high"),
        ({"scale": "log"}, "loss.margin: a log scale needs low > 0"),
        ({"scale": "choice"}, "loss.margin: needs either choices or a scale of numbers with low and high"),
        ({"step": 0.3}, "loss.margin: high must be low and 1 to 999 whole steps of 0.3"),
    ],
)
def test_a_changed_range_that_does_not_fit_the_card_gives_one_line(tmp_path, change, said):
    experiment = written(tmp_path, search={"trials": 2, "ranges": {"cosface": {"loss.margin": change}}})
    with pytest.raises(InputError, match=f"^search.ranges of method 'cosface': {said}"):
        open_method(experiment, load_card("cosface"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"choices": [0.1], "high": 0.2}, "needs either choices or a scale of numbers with low and high"),
        ({"choices": [0.1, 0.1]}, "the choice 0.1 equals one before it; name each once"),
        ({"scale": "log", "exhaustive": True}, "exhaustive needs scale int"),
    ],
)
def test_a_changed_range_that_no_card_fits_is_refused_when_the_file_is_read(tmp_path, change, said):
    with pytest.raises(InputError, match=f"key 'search.ranges.cosface.loss.margin': {said}"):
        written(tmp_path, search={"trials": 2, "ranges": {"cosface": {"loss.margin": change}}})


def test_the_networks_learning_rate_is_searched_for_every_method_with_a_loss(tmp_path):
    search = {"trials": 2, "network_lr": {"low": 1e-6, "high": 1e-3}}
    experiment = written(tmp_path, search=search, settings={"cosface": {"optimizer.lr": 1e-4}})
    rate = open_method(experiment, load_card("triplet")).ranges["optimizer.lr"]
    assert distribution_of(rate) == FloatDistribution(1e-6, 1e-3, log=True)
    assert open_method(experiment, load_card("untrained")).ranges == {}
    fixed = open_method(experiment, load_card("cosface"))
    assert fixed.method.optimizer.lr == 1e-4
    assert "optimizer.lr" not in fixed.ranges


def test_a_variant_cannot_set_the_networks_learning_rate():
    variant = Variant(of="triplet", key="fast", title="Fast", set={"optimizer.lr": 1e-3})
    with pytest.raises(InputError, match=r"`with: \{fast: \{training\.optimizer\.lr"):
        variant_card(variant)


def test_the_learning_rate_of_proxies_is_a_multiple_of_the_networks_rate(tmp_path):
    experiment = written(tmp_path, search={"trials": 2}, proxies={"lr_multiplier": 100.0, "warmup_passes": 1})
    proxies, pairs = (open_method(experiment, load_card(name)) for name in ("proxy_anchor", "contrastive"))
    assert proxies.method.loss_optimizer.lr == pytest.approx(0.1)
    assert proxies.method.warmup.passes == 1
    assert "loss_optimizer.lr" not in proxies.ranges
    assert pairs.method.loss_optimizer.lr is None
    assert pairs.method.warmup.passes is None


def test_shuffled_images_and_classes_once_come_in_whole_passes(tmp_path):
    def passes(**settings):
        return open_method(written(tmp_path, settings={"cosface": settings}), card).method.batch.whole_passes

    card = load_card("cosface")
    assert not passes()
    assert passes(**{"batch.samples_per_class": 0})
    batch = card.method.batch.model_copy(update={"classes": "once"})
    once = card.model_copy(update={"method": card.method.model_copy(update={"batch": batch})})
    assert open_method(written(tmp_path), once).method.batch.whole_passes


@pytest.mark.parametrize("card", ["c1_ccp", "triplet_ccp"])
def test_ccp_is_refused_under_standard_because_its_final_training_has_no_validation(card):
    """CCP would stay in its first problem, so its row would show the proxy loss without CCP."""
    under_mlrc = load_experiment("mlrc_cub200", {})
    assert open_method(under_mlrc, load_card(card)).method.name == card
    under_standard = under_mlrc.model_copy(update={"protocol": "standard"})
    for other in ("nir_soft_triple", "c2_xbm"):
        assert open_method(under_standard, load_card(other)).method.name == other
    with pytest.raises(InputError, match=f"{card}.* acts on validation scores.* use protocol mlrc"):
        open_method(under_standard, load_card(card))


@pytest.mark.usefixtures("forked_processes")
def test_a_path_in_a_card_is_relative_to_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card, _ = write_method("users_own", tmp_path, "proxy")
    monkeypatch.chdir("/")
    loaded = load_card(str(card))
    assert loaded.method.loss is not None
    assert loaded.method.loss.name == f"{tmp_path}/users_own.py:UsersOwn"


def test_an_unknown_loss_is_refused_with_every_way_to_name_one(tmp_path: Path) -> None:
    card = tmp_path / "users_own.yaml"
    card.write_text("key: users_own\ntitle: Own\nsource: none\nloss: {name: NoLoss}\n")
    ways = ("in this suite or in pytorch-metric-learning", "./my_file.py:NoLoss", "my_package.module:NoLoss")
    with one_line(*ways, "relative to the card", "`reproduce new method my_loss`"):
        load_card(str(card))
