"""The experiment files of the published tables describe their sources, can be opened, and plan the right trainings."""

from functools import cache

import pandas as pd
import pytest

from protocols import mlrc, standard
from protocols.datasets.dataset import Dataset
from protocols.datasets.published import PUBLICATIONS, stand_in
from protocols.protocol_registry import PROTOCOLS
from protocols.study import Study
from reproduce.config.experiment_file import EXPERIMENTS, load_experiments
from reproduce.config.method_card import Card
from reproduce.config.open_method import load_card, open_method, variant_card
from reproduce.run.session import setup_of
from results.spec.experiment_spec import Experiment
from results.spec.plan import PlannedRow
from results.spec.training_spec import FoldSpec
from tests.support.labs import TrialsInMemory

pytestmark = pytest.mark.late

TABLES = {
    *("proxy_isa_table1", "proxy_isa_table2", "proxy_isa_table3", "proxy_isa_table4"),
    *("proxy_anchor_cub_cars", "proxy_anchor_sop", "proxy_anchor_inshop", "proxy_anchor_ablation"),
    *("ccp_table1", "ccp_table2", "ccp_table3", "ccp_figure4", "proxy_gml_table1", "proxy_gml_table2"),
    *("nir_table1", "nir_table2", "nir_table3", "nir_table4", "nir_table5"),
    *("mlrc_cub200", "mlrc_cars196", "mlrc_sop", "mlrc_cub200_batch256"),
}
# Files of figures that no table has the runs for.
FIGURES = {
    *("proxy_isa_figure9", "proxy_isa_figure10", "proxy_gml_figure4", "proxy_gml_figure5", "ccp_figure3"),
    *("proxy_anchor_batch_size", "proxy_anchor_embedding_size", "proxy_anchor_alpha_delta", "proxy_anchor_convergence"),
}
FILES = sorted({*TABLES, *FIGURES})

MLRC_LOSSES = {
    *("contrastive", "triplet", "ntxent", "proxy_nca", "margin", "margin_class", "normalized_softmax"),
    *("cosface", "arcface", "fastap", "snr_contrastive", "multi_similarity", "multi_similarity_miner", "soft_triple"),
}


@cache
def loaded() -> dict[str, Experiment]:
    return {name: experiment for file in FILES for name, experiment in load_experiments(file, {}).items()}


@cache
def dataset(name: str) -> Dataset:
    return stand_in(name, PUBLICATIONS[name])


@cache
def cards(name: str) -> tuple[Card, ...]:
    experiment = loaded()[name]
    return (
        *(load_card(method) for method in experiment.methods),
        *(variant_card(variant) for variant in experiment.variants),
    )


@cache
def opened(name: str) -> dict[str, PlannedRow]:
    return {card.key: open_method(loaded()[name], card) for card in cards(name)}


def studies(name: str) -> dict[str, Study]:
    experiment = loaded()[name]
    setup = setup_of(experiment, dataset(experiment.dataset.name))
    search, log = experiment.search, TrialsInMemory()
    drawn = experiment.conditions.trunk.weights == "random"
    rows = {
        key: row.with_budget(search, experiment.reproductions, untrained_weights=drawn)
        for key, row in opened(name).items()
    }
    return {key: Study(row, setup, search, log) for key, row in rows.items()}


def planned(name: str) -> dict[str, int]:
    """The number of planned trainings by method."""
    protocol = PROTOCOLS[loaded()[name].protocol]
    return {key: protocol.trainings_of(study) for key, study in studies(name).items()}


def trainings(name: str, key: str) -> set[str]:
    """Fingerprints of the reproductions' trainings. For `standard`, epoch 7 is taken as the best epoch."""
    study = studies(name)[key]
    runs: list[FoldSpec] = [spec for specs in mlrc.reproductions(study, study.row.given) for spec in specs]
    if loaded()[name].protocol == "standard":
        runs = [spec for specs in standard.choices(study, study.row.given) for spec in specs]
        finals = [study.setup.final_spec(study.method, run, 7) for run in range(study.row.reproductions)]
        runs = [*runs, *finals]
    return {spec.fingerprint for spec in runs}


@pytest.mark.parametrize("all_panels", [False, pytest.param(True, marks=pytest.mark.long)])
def test_every_method_opens_and_accepts_all_its_settings(all_panels: bool) -> None:
    first_of_each_file = {name.partition("/")[0]: name for name in sorted(loaded(), reverse=True)}
    for name in loaded() if all_panels else first_of_each_file.values():
        experiment, methods = loaded()[name], opened(name)
        assert len(methods) == len(experiment.methods) + len(experiment.variants), name
        assert set(experiment.settings) <= set(methods), name
        assert set(experiment.search.ranges) <= set(methods), name
        for key, targets in experiment.settings.items():
            assert {target: methods[key].given[target] for target in targets} == targets, name
            assert methods[key].method.at(targets) == methods[key].method, name
        for key, ranges in experiment.search.ranges.items():
            space = methods[key].ranges
            for target, bounds in ranges.items():
                assert (space[target].low, space[target].high) == (bounds.low, bounds.high), name


def test_the_number_of_planned_trainings_equals_a_count_by_hand() -> None:
    # 4 folds x (50 trials + 10 reproductions); FastAP tries 31 numbers of bins; an untrained trunk is tested once.
    cub = planned("mlrc_cub200")
    pretrained = {"untrained": 4, "pretrained_pca": 4, "pretrained_test_pca": 4}
    assert set(cub) == {*pretrained, *MLRC_LOSSES, "proxy_anchor", "proxy_gml", "proxy_isa"}
    assert cub == {key: {**pretrained, "fastap": 164}.get(key, 240) for key in cub}
    assert sum(cub.values()) == 4_016
    assert sum(planned("mlrc_cub200_batch256").values()) == 14 * 240 + 4
    # 4 folds x 1 reproduction, no trials.
    rows = {"ccp_table1/sop": 14, "ccp_table1/inshop": 14, "ccp_table2/cub200": 14, "ccp_table3/sop": 10}
    for name, count in {**rows, "ccp_figure4/cars196_128": 2, "ccp_figure3": 1 + 9 * 4}.items():
        assert list(planned(name).values()) == [4] * count, name
    # 5 runs x (4 folds that choose the epoch, one training on all classes); one test of the untrained trunk.
    assert list(planned("proxy_isa_table1/cub200").values()) == [25] * 5
    assert list(planned("nir_table1/cub200").values()) == [25] * 11
    assert sum(planned("proxy_gml_table1").values()) == 8 * 25 + 1
    assert list(planned("nir_table4/cub200").values()) == [25] * 11


SHARED = [
    *((f"ccp_table3/{data}", f"ccp_table1/{data}", None) for data in ("sop", "inshop")),
    ("ccp_figure3", "ccp_table2/cub200", ("c2",)),
    *((f"ccp_figure4/{data}_32", f"ccp_table2/{data}", None) for data in ("cub200", "cars196")),
    *((f"proxy_isa_table2/{d}", f"proxy_isa_table1/{d}", ("proxy_anchor", "proxy_isa")) for d in ("cub200", "cars196")),
    ("proxy_isa_table3", "proxy_isa_table1/cars196", ("proxy_anchor",)),
    *(
        (f"proxy_anchor_ablation/{d}_bn_512{px}", f"proxy_anchor_cub_cars/{d}_bn_512{px}", ("proxy_anchor",))
        for d in ("cub200", "cars196")
        for px in ("", "_256px")
    ),
    *((f"nir_table3/{d}", f"nir_table1/{d}", ("proxy_anchor", "nir_proxy_anchor")) for d in ("cub200", "cars196")),
    *(
        (f"{table}/{d}{panel}", f"nir_table1/{d}", ("nir_proxy_anchor",))
        for table, panel in (("nir_table2", "_r50_128"), ("nir_table4", ""), ("nir_table5", ""))
        for d in ("cub200", "cars196")
    ),
]


def test_tables_of_one_setting_share_their_trainings() -> None:
    for name, first, keys in SHARED:
        assert loaded()[name].split == loaded()[first].split, (name, first)
        for key in keys or opened(name):
            assert trainings(name, key) == trainings(first, key), (name, first)
            assert opened(name)[key] == opened(first)[key], (name, first)


def test_searches_with_batch_size_256_have_the_bounds_of_mlrcs_logs() -> None:
    space = pd.read_csv(EXPERIMENTS.parents[1] / "results" / "published" / "mlrc_search_space.csv")
    name = "mlrc_cub200_batch256"
    assert set(opened(name)) == {"untrained", *MLRC_LOSSES}
    checked = 0
    for card in cards(name):
        logged = space[(space["dataset"] == "CUB200 (batch size 256)") & (space["method"] == card.published_as)]
        targets = {str(choice.published_as): target for target, choice in card.search.items()}
        searched = opened(name)[card.key].ranges
        assert set(searched) == {targets[str(row.parameter)] for row in logged.itertuples()}
        for row in logged.itertuples():
            parameter = searched[targets[str(row.parameter)]]
            assert (parameter.low, parameter.high, parameter.scale) == (row.final_lower, row.final_upper, row.scale)
            checked += 1
        optima = {targets[str(row.parameter)]: row.best_value_full_precision for row in logged.itertuples()}
        assert card.published.get("cub200_batch256", {}) == optima
    assert checked == 36
    ranges = {key: {t: (b.low, b.high) for t, b in own.items()} for key, own in loaded()[name].search.ranges.items()}
    assert ranges == {
        "fastap": {"loss.num_bins": (2, 250)},
        "multi_similarity_miner": {"loss.alpha": (1e-5, 100)},
        "soft_triple": {"loss.gamma": (1e-5, 100)},
    }


def test_the_embedder_starts_as_in_the_authors_code() -> None:
    """The other authors leave torch's start. Proxy-ISA's code builds on Proxy-Anchor's."""
    starts = {"proxy_anchor": "kaiming_fan_out", "proxy_isa": "kaiming_fan_out", "ccp": "glorot_uniform"}
    for name, experiment in loaded().items():
        expected = next((start for paper, start in starts.items() if name.startswith(paper)), "random")
        assert experiment.conditions.embedder.init == expected, name
