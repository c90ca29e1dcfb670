"""The experiment files of the published tables describe their sources, can be opened, and plan the right trainings."""

import re
from functools import cache

import pandas as pd
import pytest

from protocols import mlrc, standard
from protocols.datasets.dataset import Dataset
from protocols.datasets.publication import CARS196, CUB200, INSHOP, SOP
from protocols.datasets.stand_in import stand_in
from protocols.search.method_template import MethodTemplate
from protocols.search.study import Budget, Study
from reproduce.config.checked_card import load_card, load_variant
from reproduce.config.experiment_file import EXPERIMENTS, load_experiments
from reproduce.config.method_card import MethodCard
from reproduce.config.method_on_dataset import open_method
from reproduce.execution.session import problem_of
from results.records.trials import TrialsInMemory
from results.spec.training_spec import FoldSpec

TABLES = {
    *("proxy_isa_table1", "proxy_isa_table2", "proxy_isa_table3", "proxy_isa_table4"),
    *("proxy_anchor_cub_cars", "proxy_anchor_sop", "proxy_anchor_inshop", "proxy_anchor_ablation"),
    *("ccp_table1", "ccp_table2", "ccp_table3", "ccp_figure4", "proxy_gml_table1", "proxy_gml_table2"),
    *("nir_table1", "nir_table2", "nir_table3", "nir_table4", "nir_table5"),
    *("mlrc_cub200", "mlrc_cars196", "mlrc_sop", "mlrc_cub200_batch256"),
}
# Files of figures that no table has the runs for, with the runs of each point.
FIGURES = {
    **dict.fromkeys(("proxy_isa_figure9", "proxy_isa_figure10", "proxy_gml_figure5"), 3),
    **dict.fromkeys(("proxy_anchor_batch_size", "proxy_anchor_embedding_size", "proxy_anchor_alpha_delta"), 3),
    "proxy_anchor_convergence": 5,
    "proxy_gml_figure4": 1,
}
FILES = sorted({*TABLES, *FIGURES})
LOADED = {name: experiment for file in FILES for name, experiment in load_experiments(file, {}).items()}
NAMES = sorted(LOADED)
FIRST_OF_EACH_FILE = [next(name for name in NAMES if name.partition("/")[0] == file) for file in FILES]
STANDARD = [name for name in NAMES if LOADED[name].protocol == "standard"]

PUBLISHED = {"cub200": CUB200, "cars196": CARS196, "sop": SOP, "inshop": INSHOP}

# Precision@1, R-precision and MAP@R are always measured.
METRICS = r"recall@\d+|nmi|map@1000|spectral_decay|density|uniformity|class_concentration_variance|covering_radius"

MLRC_LOSSES = {
    *("contrastive", "triplet", "ntxent", "proxy_nca", "margin", "margin_class", "normalized_softmax"),
    *("cosface", "arcface", "fastap", "snr_contrastive", "multi_similarity", "multi_similarity_miner", "soft_triple"),
}


@cache
def dataset(name: str) -> Dataset:
    return stand_in(name, PUBLISHED[name].counts, shorter_side=256)


@cache
def cards(name: str) -> tuple[MethodCard, ...]:
    experiment = LOADED[name]
    return (
        *(load_card(method) for method in experiment.methods),
        *(load_variant(variant) for variant in experiment.variants),
    )


@cache
def opened(name: str) -> dict[str, MethodTemplate]:
    return {card.key: open_method(LOADED[name], card) for card in cards(name)}


def studies(name: str) -> dict[str, Study]:
    experiment = LOADED[name]
    problem = problem_of(experiment, dataset(experiment.dataset.name))
    budget = Budget(experiment.search.trials, experiment.reproductions)
    storage = TrialsInMemory()
    return {
        key: Study(problem, method, budget, experiment.search.sampler, storage) for key, method in opened(name).items()
    }


def planned(name: str) -> dict[str, int]:
    """The number of planned trainings by method."""
    protocol = {"mlrc": mlrc, "standard": standard}[LOADED[name].protocol]
    return {key: protocol.trainings_of(study) for key, study in studies(name).items()}


def trainings(name: str, key: str) -> set[str]:
    """Fingerprints of the reproductions' trainings. For `standard`, epoch 7 is taken as the best epoch."""
    study = studies(name)[key]
    runs: list[FoldSpec] = [spec for specs in mlrc.reproductions(study, study.method.given) for spec in specs]
    if LOADED[name].protocol == "standard":
        runs = [spec for specs in standard.choices(study, study.method.given) for spec in specs]
        finals = [study.problem.final_spec(study.method.method, run, 7) for run in range(study.n_reproductions)]
        runs = [*runs, *finals]
    return {spec.fingerprint for spec in runs}


def test_every_published_table_and_figure_has_its_file() -> None:
    assert {path.stem for path in EXPERIMENTS.glob("*.yaml")} >= set(FILES)


def test_the_head_of_a_file_names_its_table_and_its_deviations() -> None:
    for table in FILES:
        text = (EXPERIMENTS / f"{table}.yaml").read_text(encoding="utf-8")
        head = text.split("title:")[0]
        assert re.match(r"# .*(et al\.|Lim), ", head), table
        assert re.search(r"Table \d|Figure \d|Figure of|table for|supplement|Recall@K|ablation", head), table
        assert re.search(r"paper's own setting|trainings of Table 1", head), table
        assert "\n# Specification: " in head, table
        assert "eviation" in head, table
        assert max(map(len, text.splitlines())) <= 120, table
        if any(name.partition("/")[0] == table for name in STANDARD):
            assert "epoch is chosen on validation classes" in head.replace("\n# ", " "), table


@pytest.mark.parametrize(
    "names", [FIRST_OF_EACH_FILE, pytest.param(NAMES, marks=pytest.mark.long)], ids=["some", "all"]
)
def test_every_method_opens_and_accepts_all_its_settings(names: list[str]) -> None:
    for name in names:
        experiment, methods = LOADED[name], opened(name)
        assert len(methods) == len(experiment.methods) + len(experiment.variants), name
        assert set(experiment.settings) <= set(methods), name
        assert set(experiment.search.ranges) <= set(methods), name
        for key, targets in experiment.settings.items():
            assert {target: methods[key].given[target] for target in targets} == targets, name
            assert methods[key].at(targets) == methods[key].method, name
        for key, ranges in experiment.search.ranges.items():
            space = {parameter.target: parameter for parameter in methods[key].space}
            for target, bounds in ranges.items():
                assert (space[target].low, space[target].high) == (bounds.low, bounds.high), name


def test_batches_datasets_and_metrics_are_possible() -> None:
    for name in NAMES:
        experiment = LOADED[name]
        assert experiment.dataset.name in PUBLISHED, name
        assert name.partition("/")[2].partition("_")[0] in ("", experiment.dataset.name), name
        for key, method in opened(name).items():
            per_class = method.method.samples_per_class
            assert (
                method.method.loss is None
                or not per_class
                or experiment.conditions.training.batch_size % per_class == 0
            ), key
        assert all(re.fullmatch(METRICS, metric) for metric in experiment.metrics), name
        assert len(set(experiment.metrics)) == len(experiment.metrics), name


def test_standard_tables_record_test_curves_and_choose_over_the_whole_schedule() -> None:
    for name in STANDARD:
        experiment = LOADED[name]
        training = experiment.conditions.training
        assert experiment.test_curves, name
        runs = FIGURES.get(name.partition("/")[0], 5)
        assert (experiment.search.trials, experiment.reproductions) == (0, runs), name
        assert (training.iterations_per_epoch, training.validate_every) == (None, 1), name
        # In Table 1 of NIR, training on SOP is long and has no schedule.
        assert training.patience == (50 if name == "nir_table1/sop" else training.max_epochs), name
        if training.schedule is not None:
            assert max(training.schedule.milestones or ()) < training.max_epochs, name
        images = experiment.conditions.images
        assert (images.resize, images.area, images.ratio, images.flip) == (None, (0.08, 1.0), (0.75, 4 / 3), True), name
        sizes = {224: 256, 256: 292, 324: 361, 448: 512}
        assert images.evaluation_resize == sizes[images.crop], name


PEEKING = {
    "best test MAP@R": "map_at_r",
    "best test R@1": "precision_at_1",
    # Each metric has its own best epoch; Recall@1 is the one that is shown.
    "best test epoch of each run, per metric": "precision_at_1",
}


# The audit has the convergence plot, and the plots of hyperparameters except that of the batch size.
AUDITED_AS = {
    "proxy_anchor_convergence": "proxy_anchor_figure_convergence",
    "proxy_anchor_embedding_size": "proxy_anchor_figure_embedding_size",
    "proxy_anchor_alpha_delta": "proxy_anchor_figure_alpha",
    "proxy_anchor_batch_size": "proxy_anchor_figure_alpha",
}


def test_peeking_is_shown_in_the_metric_that_the_paper_chose_by() -> None:
    audited = pd.read_csv(EXPERIMENTS.parents[1] / "results" / "published" / "settings.csv")
    for name in STANDARD:
        file = name.partition("/")[0]
        table = AUDITED_AS.get(file, file)
        of_table = audited[(audited["table"] == table) & (audited["setting"] == "selection")]
        choices = {value.partition(" over")[0] for value in of_table["value"]}
        assert {PEEKING[choice] for choice in choices} == {LOADED[name].peeking_metric}, name


def test_the_number_of_planned_trainings_equals_a_count_by_hand() -> None:
    # 4 folds x (50 trials + 10 reproductions); FastAP tries 31 numbers of bins; an untrained trunk is tested once.
    cub = planned("mlrc_cub200")
    pretrained = {"untrained": 4, "pretrained_pca": 4, "pretrained_test_pca": 4}
    assert set(cub) == {*pretrained, *MLRC_LOSSES, "proxy_anchor", "proxy_gml", "proxy_isa"}
    assert cub == {key: {**pretrained, "fastap": 164}.get(key, 240) for key in cub}
    assert sum(cub.values()) == 4_016
    assert sum(planned("mlrc_cub200_batch256").values()) == 14 * 240 + 4
    # 4 folds x 1 reproduction, no trials.
    rows = {"ccp_table1/sop": 15, "ccp_table1/inshop": 14, "ccp_table2/cub200": 15, "ccp_table3/sop": 10}
    for name, count in {**rows, "ccp_figure4/cars196_128": 2}.items():
        assert list(planned(name).values()) == [4] * count, name
    # 5 runs x (4 folds that choose the epoch, one training on all classes); one test of the untrained trunk.
    assert list(planned("proxy_isa_table1/cub200").values()) == [25] * 5
    assert list(planned("nir_table1/cub200").values()) == [25] * 11
    assert sum(planned("proxy_gml_table1").values()) == 8 * 25 + 1
    assert list(planned("nir_table4/cub200").values()) == [25] * 11


SHARED = [
    *((f"ccp_table3/{data}", f"ccp_table1/{data}", None) for data in ("sop", "inshop")),
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
# One row of the figure is a row of the table, with fewer runs.
SHARED_BY_FIGURES = {
    "proxy_isa_figure9": ("proxy_isa_table1/cars196", "proxy_isa"),
    "proxy_isa_figure10/cub200_v": ("proxy_isa_table1/cub200", "proxy_isa"),
    "proxy_isa_figure10/cub200_memory": ("proxy_isa_table1/cub200", "proxy_isa"),
    "proxy_anchor_batch_size": ("proxy_anchor_cub_cars/cars196_bn_512", "proxy_anchor"),
    "proxy_anchor_embedding_size": ("proxy_anchor_cub_cars/cars196_bn_512", "proxy_anchor"),
    "proxy_anchor_alpha_delta": ("proxy_anchor_cub_cars/cars196_bn_512", "proxy_anchor"),
    "proxy_gml_figure4": ("proxy_gml_table2/cars196_bn_512", "proxy_gml"),
    "proxy_gml_figure5": ("proxy_gml_table2/cars196_bn_512", "proxy_gml"),
}


def test_tables_of_one_setting_share_their_trainings() -> None:
    for name, first, keys in SHARED:
        assert LOADED[name].split == LOADED[first].split, (name, first)
        for key in keys or opened(name):
            assert trainings(name, key) == trainings(first, key), (name, first)
            assert opened(name)[key] == opened(first)[key], (name, first)


def test_a_figure_takes_one_of_its_points_from_a_table() -> None:
    for figure, (table, key) in SHARED_BY_FIGURES.items():
        assert trainings(figure, key) < trainings(table, key), figure


def test_tables_of_different_settings_share_no_trainings() -> None:
    for name in ("proxy_isa_table4/cub200", "proxy_anchor_cub_cars/cub200_bn_512"):
        assert not trainings(name, "proxy_anchor") & trainings("proxy_isa_table1/cub200", "proxy_anchor")


def test_searches_with_batch_size_256_have_the_bounds_of_mlrcs_logs() -> None:
    space = pd.read_csv(EXPERIMENTS.parents[1] / "results" / "published" / "mlrc_search_space.csv")
    name = "mlrc_cub200_batch256"
    assert set(opened(name)) == {"untrained", *MLRC_LOSSES}
    checked = 0
    for card in cards(name):
        logged = space[(space["dataset"] == "CUB200 (batch size 256)") & (space["method"] == card.published_as)]
        targets = {str(choice.published_as): target for target, choice in card.search.items()}
        searched = {parameter.target: parameter for parameter in opened(name)[card.key].space}
        assert set(searched) == {targets[str(row.parameter)] for row in logged.itertuples()}
        for row in logged.itertuples():
            parameter = searched[targets[str(row.parameter)]]
            assert (parameter.low, parameter.high, parameter.scale) == (row.final_lower, row.final_upper, row.scale)
            checked += 1
    assert checked == 36
    ranges = {key: {t: (b.low, b.high) for t, b in own.items()} for key, own in LOADED[name].search.ranges.items()}
    assert ranges == {
        "fastap": {"loss.num_bins": (2, 250)},
        "multi_similarity_miner": {"loss.alpha": (1e-5, 100)},
        "soft_triple": {"loss.gamma": (1e-5, 100)},
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_embedder_starts_as_in_the_authors_code(name: str) -> None:
    """The other authors leave torch's start. Proxy-ISA's code builds on Proxy-Anchor's."""
    starts = {"proxy_anchor": "kaiming_fan_out", "proxy_isa": "kaiming_fan_out", "ccp": "glorot_uniform"}
    expected = next((start for paper, start in starts.items() if name.startswith(paper)), "random")
    assert LOADED[name].conditions.embedder.init == expected
