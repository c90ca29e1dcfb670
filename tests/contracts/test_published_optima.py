"""Without trials, each of MLRC's experiment files uses the optima that MLRC published for the same setting."""

import pytest

from reproduce.config.checked_card import load_card
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_on_dataset import open_method
from reproduce.errors import InputError
from results.published.searches import mlrc_search_optima

FILES = {
    "mlrc_cub200": "cub200",
    "mlrc_cars196": "cars196",
    "mlrc_sop": "sop",
    "mlrc_cub200_batch256": "cub200_batch256",
}


def opened(name: str, method: str, **changes: object) -> dict[str, object]:
    (experiment,) = load_experiments(name, {"search.trials": 0, **changes}).values()
    return dict(open_method(experiment, load_card(method)).given)


@pytest.mark.parametrize(("name", "search"), FILES.items())
def test_without_trials_the_optima_of_the_same_search_are_used(name: str, search: str) -> None:
    for optimum in mlrc_search_optima(search):
        if optimum.value is None or optimum.method is None:
            continue
        targets = load_card(optimum.method).search
        target = next(target for target, one in targets.items() if one.published_as == optimum.parameter)
        assert opened(name, optimum.method)[target] == optimum.value, (name, optimum.method, optimum.parameter)


def test_batch_sizes_256_and_32_have_different_optima() -> None:
    assert opened("mlrc_cub200", "fastap") == {"loss.num_bins": 17}
    assert opened("mlrc_cub200_batch256", "fastap") == {"loss.num_bins": 86}


def test_unknown_published_values_are_refused_and_known_ones_listed() -> None:
    with pytest.raises(InputError, match=r"'batch99'.*'fastap' has published values for cub200, cars196, sop"):
        opened("mlrc_cub200", "fastap", **{"search.published": "batch99"})
