"""The methods that each protocol accepts."""

import pytest

from reproduce.config.checked_card import load_card
from reproduce.config.method_on_dataset import open_method
from reproduce.errors import InputError
from tests.support.experiment_files import load_experiment


@pytest.mark.parametrize("card", ["c1_ccp", "c2_ccp", "ms_ccp", "triplet_ccp"])
def test_ccp_is_refused_under_standard_because_its_final_training_has_no_validation(card: str) -> None:
    """CCP would stay in its first problem, so its row would show the proxy loss without CCP."""
    under_mlrc = load_experiment("mlrc_cub200", {})
    assert open_method(under_mlrc, load_card(card)).method.name == card
    under_standard = under_mlrc.model_copy(update={"protocol": "standard"})
    with pytest.raises(InputError, match=f"{card}.* acts on validation scores.* use protocol mlrc"):
        open_method(under_standard, load_card(card))


def test_other_methods_open_under_both_protocols() -> None:
    for protocol in ("mlrc", "standard"):
        experiment = load_experiment("mlrc_cub200", {}).model_copy(update={"protocol": protocol})
        for card in ("nir_soft_triple", "c2_xbm", "contrastive", "untrained"):
            assert open_method(experiment, load_card(card)).method.name == card
