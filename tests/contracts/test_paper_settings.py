"""The settings of the published tables equal the numbers of their sources, which are typed by hand here."""

from functools import cache
from typing import Any

import pytest
from pydantic import BaseModel

from reproduce.config.checked_card import load_card, load_variant
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_on_dataset import open_method
from results.spec.experiment_spec import Experiment
from results.spec.training_spec import MethodSpec

TENS = (10, 20, 30, 40, 50)


@cache
def loaded(name: str) -> Experiment:
    (experiment,) = load_experiments(name, {}).values()
    return experiment


def method(name: str, key: str) -> MethodSpec:
    experiment = loaded(name)
    variants = {variant.key: variant for variant in experiment.variants}
    card = load_variant(variants[key]) if key in variants else load_card(key)
    return open_method(experiment, card).method


def at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = getattr(value, key) if isinstance(value, BaseModel) else value[key]
    return value


PROXY_ANCHOR = {
    "trunk.name": "bn_inception",
    "trunk.weights": "imagenet",
    "trunk.pooling": "average_max",
    "trunk.batch_norm": "statistics_frozen",
    "training.optimizer.name": "AdamW",
    "training.optimizer.lr": 1e-4,
    "training.optimizer.weight_decay": 1e-4,
    "training.optimizer.arguments": {},
    "training.schedule.milestones": TENS,
    "training.schedule.factor": 0.5,
    "training.clip_value": 10.0,
    "training.batch_size": 180,
    "training.max_epochs": 60,
    "embedding_size": 512,
    "proxies.lr_multiplier": 100,
    "proxies.warmup_passes": 1,
}
QUARTERS = {
    "training.optimizer.lr": 6e-4,
    "training.schedule.milestones": (20, 40),
    "training.schedule.factor": 0.25,
    "trunk.batch_norm": "training",
}
PROXY_ISA = {
    "trunk.name": "bn_inception",
    "trunk.pooling": "average",
    "trunk.batch_norm": "frozen",
    "training.optimizer.name": "Adam",
    "training.optimizer.lr": 1e-4,
    "training.optimizer.weight_decay": 1e-4,
    "training.schedule.milestones": (10, 20, 30, 40, 50, 60, 70, 80, 90),
    "training.schedule.factor": 0.5,
    "training.clip_value": 10.0,
    "training.batch_size": 128,
    "training.max_epochs": 100,
    "embedding_size": 512,
    "proxies.lr_multiplier": 100,
    "proxies.warmup_passes": 0,
}
PROXY_GML = {
    "trunk.name": "bn_inception",
    "trunk.pooling": "average",
    "trunk.batch_norm": "statistics_frozen",
    "training.optimizer.name": "Adam",
    "training.optimizer.lr": 1e-4,
    "training.optimizer.arguments": {"eps": 0.01},
    "training.schedule.milestones": (19, 39),
    "training.schedule.factor": 0.1,
    "training.clip_value": None,
    "training.batch_size": 32,
    "training.max_epochs": 50,
    "proxies.warmup_passes": 0,
}
CCP = {
    "trunk.batch_norm": "frozen",
    "normalization": "ball",
    "training.clip_norm": 10.0,
    "protocol": "mlrc",
    "trunk.name": "bn_inception",
    "trunk.pooling": "average",
    "images.resize": 256,
    "images.crop": 227,
    "images.area": (0.16, 1.0),
    "embedding_size": 128,
    "embedder_bias": False,
    "training.optimizer.name": "Adam",
    "training.optimizer.lr": 1e-5,
    "training.optimizer.weight_decay": 1e-4,
    "training.optimizer.arguments": {"betas": [0.9, 0.99]},
    "training.batch_size": 32,
    "training.validate_every": 1,
    # A training stops after more than this number of epochs without a better score: at the 60th such epoch.
    "training.patience": 59,
    "search.trials": 0,
}
NIR = {
    "trunk.name": "resnet50",
    "trunk.batch_norm": "statistics_frozen",
    "trunk.pooling": "average",
    "training.optimizer.name": "Adam",
    "training.optimizer.lr": 1e-5,
    "training.optimizer.weight_decay": 4e-4,
    "training.schedule": None,
    "training.clip_value": None,
    "training.batch_size": 90,
    "training.max_epochs": 100,
    "embedding_size": 128,
}
MLRC = {
    "protocol": "mlrc",
    "trunk.name": "bn_inception",
    "trunk.weights": "imagenet",
    "trunk.batch_norm": "statistics_frozen",
    "trunk.pooling": "average",
    "images.resize": 256,
    "images.crop": 227,
    "images.area": (0.16, 1.0),
    "images.ratio": (0.75, 4 / 3),
    "embedding_size": 128,
    "embedder_bias": True,
    "training.optimizer.name": "RMSprop",
    "training.optimizer.lr": 1e-6,
    "training.optimizer.weight_decay": 1e-4,
    "training.optimizer.arguments": {"momentum": 0.9},
    "training.schedule": None,
    "training.batch_size": 32,
    "training.iterations_per_epoch": 100,
    "training.max_epochs": 1000,
    "search.trials": 50,
    "search.bounds": "widened",
    "reproductions": 10,
    "folds": 4,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "proxy_anchor_cub_cars/cub200_bn_512": PROXY_ANCHOR,
    "proxy_anchor_cub_cars/cub200_bn_64": {**PROXY_ANCHOR, "embedding_size": 64},
    "proxy_anchor_cub_cars/cars196_bn_512": {**PROXY_ANCHOR, "training.schedule.milestones": (20, 40)},
    "proxy_anchor_cub_cars/cars196_bn_512_256px": {"images.crop": 256, "images.evaluation_resize": 292},
    "proxy_anchor_sop/sop_bn_512": {**PROXY_ANCHOR, **QUARTERS, "metrics": ("recall@10", "recall@100", "recall@1000")},
    "proxy_anchor_inshop/inshop_bn_128": {
        **PROXY_ANCHOR,
        **QUARTERS,
        "embedding_size": 128,
        "metrics": ("recall@10", "recall@20", "recall@40"),
    },
    "proxy_anchor_ablation/cub200_r50_512": {
        **PROXY_ANCHOR,
        "trunk.name": "resnet50",
        "training.batch_size": 120,
        "training.schedule.milestones": (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55),
        "proxies.warmup_passes": 5,
    },
    "proxy_anchor_ablation/cars196_r101_512": {
        **PROXY_ANCHOR,
        "trunk.name": "resnet101",
        "training.batch_size": 120,
        "training.schedule.milestones": TENS,
        "proxies.warmup_passes": 5,
    },
    "proxy_anchor_ablation/cub200_bn_512_448px": {**PROXY_ANCHOR, "images.crop": 448},
    "proxy_isa_table1/cub200": PROXY_ISA,
    "proxy_isa_table1/cars196": {**PROXY_ISA, "training.schedule.milestones": (20, 40, 60, 80)},
    "proxy_isa_table1/inshop": {
        **PROXY_ISA,
        "trunk.batch_norm": "statistics_frozen",
        "training.optimizer.name": "AdamW",
        "training.optimizer.lr": 6e-4,
        "training.schedule.milestones": (20, 40, 60, 80),
        "training.schedule.factor": 0.25,
        "proxies.warmup_passes": 1,
    },
    "proxy_isa_table3": {**PROXY_ISA, "training.schedule.milestones": (20, 40, 60, 80)},
    "proxy_isa_table4/cub200": {
        **PROXY_ISA,
        "trunk.pooling": "average_max",
        "trunk.batch_norm": "statistics_frozen",
        "training.optimizer.name": "AdamW",
        "proxies.warmup_passes": 1,
    },
    "proxy_gml_table1": {**PROXY_GML, "embedding_size": 512, "proxies.lr_multiplier": 300, "metrics": ("nmi",)},
    "proxy_gml_table2/cars196_bn_384": {**PROXY_GML, "embedding_size": 384, "metrics": ("nmi", "recall@2", "recall@4")},
    "proxy_gml_table2/sop_bn_64": {
        **PROXY_GML,
        "embedding_size": 64,
        "trunk.batch_norm": "training",
        "proxies.lr_multiplier": 3000,
        "metrics": ("nmi", "recall@10", "recall@100"),
    },
    "ccp_table2/cub200": {**CCP, "training.iterations_per_epoch": 25, "split": None},
    "ccp_table1/inshop": {**CCP, "training.iterations_per_epoch": 250, "split": "mlrc_conventional"},
    "ccp_figure4/cars196_16": {**CCP, "training.iterations_per_epoch": 25, "training.batch_size": 16},
    "nir_table1/cub200": {**NIR, "metrics": ("nmi", "map@1000")},
    "nir_table1/sop": {**NIR, "training.max_epochs": 300, "proxies": None},
    "nir_table2/cub200_bn_512_double": {
        **NIR,
        "trunk.name": "bn_inception",
        "trunk.pooling": "average_max",
        "embedding_size": 512,
        "metrics": ("recall@2", "nmi"),
    },
    "nir_table2/sop_r50_512": {
        "training.schedule.milestones": (140, 230),
        "training.schedule.factor": 0.2,
        "training.max_epochs": 300,
        "metrics": ("recall@10", "nmi"),
    },
    "nir_table3/cars196": {
        **NIR,
        "metrics": ("spectral_decay", "density", "class_concentration_variance", "uniformity"),
    },
    "nir_table4/cars196": {**NIR, "training.clip_value": None},
    "mlrc_cub200": {**MLRC, "training.validate_every": 2, "training.patience": 9},
    "mlrc_cars196": {**MLRC, "training.validate_every": 5, "training.patience": 14},
    "mlrc_sop": {**MLRC, "training.validate_every": 20, "training.patience": 39, "split": None},
    "mlrc_cub200_batch256": {**MLRC, "training.batch_size": 256, "search.bounds": "initial"},
}


def test_an_experiment_has_the_settings_of_its_source() -> None:
    for name, expected in SETTINGS.items():
        assert {path: at(loaded(name), path) for path in expected} == expected, name


ANCHOR = {"samples_per_class": 0, "loss_lr": 1e-2, "loss.arguments.alpha": 32.0, "loss.arguments.margin": 0.1}
ISA = {**ANCHOR, "loss.arguments.memory_size": 55_000, "loss.arguments.V": 100.0, "loss.arguments.lam": 0.1}
GML = {"samples_per_class": 0, "loss.arguments.r": 0.05}
AUTHORS_MS = {"loss.arguments": {"alpha": 2.0, "beta": 40.0, "base": 0.5}, "miner.arguments": {"epsilon": 0.1}}
METHODS: list[tuple[str, str, dict[str, Any]]] = [
    ("proxy_anchor_cub_cars/cub200_bn_512", "proxy_anchor", {**ANCHOR, "warmup_passes": 1}),
    ("proxy_anchor_cub_cars/cub200_bn_512", "multi_similarity_miner", {**AUTHORS_MS, "samples_per_class": 4}),
    ("proxy_anchor_sop/sop_bn_64", "proxy_anchor", {**ANCHOR, "loss_lr": 6e-2}),
    ("proxy_anchor_sop/sop_bn_64", "soft_triple", {"loss.arguments.centers_per_class": 2, "loss.arguments.tau": 0.2}),
    ("proxy_isa_table1/cub200", "proxy_isa", {**ISA, "loss.arguments.k": 0.9, "warmup_passes": 0}),
    ("proxy_isa_table1/cars196", "proxy_isa", {**ISA, "loss.arguments.k": 0.4}),
    ("proxy_isa_table1/inshop", "proxy_isa", {**ISA, "loss_lr": 6e-2, "loss.arguments.k": 0.1, "warmup_passes": 1}),
    ("proxy_isa_table2/cub200", "cosface", {"loss_lr": 1e-2, "loss.arguments.scale": 100.0}),
    ("proxy_isa_table2/cars196", "margin", {"loss_lr": 0.00011114005894862011, "loss_weight_decay": 0.0}),
    ("proxy_isa_table3", "proxy_isa_none", {**ISA, "loss.arguments.positive_penalty": "none"}),
    ("proxy_isa_table3", "proxy_isa_sigma", {**ISA, "loss.arguments.k": 0.4}),
    ("proxy_gml_table1", "proxy_gml_spos_m", {**GML, "loss_lr": 3e-2, "loss.arguments.reg_weight": 0.0}),
    ("proxy_gml_table2/cub200_bn_512", "proxy_gml", {**GML, "loss_lr": 3e-2, "loss.arguments.proxies_per_class": 12}),
    ("proxy_gml_table2/cub200_bn_512", "soft_triple", {"loss_lr": 1e-2, "loss.arguments.la": 20.0}),
    (
        "proxy_gml_table2/sop_bn_512",
        "proxy_gml",
        {**GML, "loss_lr": 3e-1, "loss.arguments.proxies_per_class": 1, "loss.arguments.reg_weight": 0.0},
    ),
    ("ccp_table2/cub200", "c2", {"loss.arguments": {"pos_margin": 0.0, "neg_margin": 0.3841}, "samples_per_class": 4}),
    ("ccp_table2/cars196", "c2_xbm", {"loss.arguments.memory_size": 800, "loss.arguments.neg_margin": 0.5409}),
    ("ccp_table2/cars196", "ms_ccp", {"loss.arguments.alpha": 14.35, "loss_lr": None, "warmup_passes": None}),
    ("ccp_table2/cars196", "triplet", {"loss.arguments": {"margin": 0.1190}}),
    ("ccp_table2/cub200", "proxy_nca_pp", {"loss.arguments.softmax_scale": 5.0, "loss_lr": 1e-3, "warmup_steps": 25}),
    ("ccp_table1/sop", "proxy_anchor", {"loss_lr": 1e-3, "warmup_steps": 250}),
    ("ccp_table2/cub200", "proxy_nca_pp_t9", {"loss.arguments.softmax_scale": 9.0, "loss_lr": 1e-3}),
    ("ccp_table1/sop", "c2_ccp", {"loss.arguments.proxies_per_class": 4, "loss.arguments.pool_size": 7}),
    ("ccp_table1/sop", "c1_xbm", {"loss.arguments.memory_size": 44_800, "loss.arguments.start_iteration": 1000}),
    ("ccp_table1/inshop", "c2_xbm", {"loss.arguments.memory_size": 12_800, "loss.arguments.pos_margin": 0.2858}),
    ("ccp_table1/inshop", "multi_similarity", {"loss.arguments": {"alpha": 8.49, "beta": 57.38, "base": 0.41}}),
    ("ccp_table1/sop", "soft_triple", {"loss.arguments.la": 100.0, "loss.arguments.margin": 0.3145}),
    (
        "nir_table1/cub200",
        "nir_proxy_anchor",
        {"loss.arguments.omega": 0.0075, "loss_lr": 0.04, "loss_weight_decay": 0.0, "warmup_passes": 1},
    ),
    ("nir_table1/cub200", "proxy_anchor", {"samples_per_class": 2, "loss_lr": 0.02, "warmup_passes": 0}),
    ("nir_table1/cub200", "proxy_anchor_4000", {"samples_per_class": 2, "loss_lr": 0.04, "warmup_passes": 0}),
    (
        "nir_table1/cars196",
        "proxy_nca",
        {"loss.arguments": {"variant": "anchor_form", "softmax_scale": None, "proxy_init": "eighth"}},
    ),
    ("mlrc_cub200", "proxy_nca", {"loss.arguments.proxy_init": "normal"}),
    ("mlrc_cub200", "soft_triple", {"loss.arguments.regularizer": "mean"}),
    ("ccp_table2/cars196", "soft_triple", {"loss.arguments.regularizer": "halved", "loss.arguments.tau": 0.0669}),
    ("nir_table1/sop", "soft_triple_4000", {"loss.arguments.regularizer": "halved", "loss.arguments.tau": 0.2}),
    (
        "proxy_isa_table1/inshop",
        "proxy_nca",
        {"loss.arguments": {"variant": "classic", "softmax_scale": 6.0, "proxy_init": "kaiming"}},
    ),
    ("nir_table1/sop", "proxy_anchor", {"loss_lr": 0.02, "warmup_passes": 0}),
    (
        "nir_table1/sop",
        "nir_soft_triple",
        {"loss.arguments.omega": 0.3, "loss.arguments.centers_per_class": 2, "loss_lr": 0.04, "warmup_passes": 5},
    ),
    ("nir_table1/sop", "soft_triple_4000", {"loss.arguments.centers_per_class": 2, "loss_lr": 0.04}),
    ("nir_table2/sop_bn_512", "proxy_gml", {"loss_lr": 0.3, "loss.arguments.proxies_per_class": 1}),
    ("nir_table4/cars196", "nir_proxy_anchor_d15_w64", {"loss.arguments.n_blocks": 15, "loss.arguments.width": 64}),
    ("nir_table4/cars196", "nir_proxy_anchor_condition_mid", {"loss.arguments.omega": 0.01}),
    ("nir_table4/cars196", "nir_proxy_anchor_alone", {"loss.arguments.omega": 0.0}),
    ("nir_table4/cars196", "nir_proxy_anchor_clipped", {"loss.arguments.omega": 0.01}),
    ("nir_table5/cub200", "nir_proxy_anchor_generate", {"loss.arguments.self_regularization": "generate"}),
    ("mlrc_cub200", "margin_class", {"loss_weight_decay": 0.0, "samples_per_class": 4}),
    ("mlrc_cub200", "proxy_isa", {"samples_per_class": 1, "loss.arguments.memory_size": "$training_images"}),
]


def test_only_the_clipped_row_of_nirs_ablations_is_clipped() -> None:
    experiment = loaded("nir_table4/cars196")
    clipped = {row for row in experiment.rows if experiment.for_row(row).training.clip_value is not None}
    assert clipped == {"nir_proxy_anchor_clipped"} == set(experiment.rows) - experiment.comparable_rows()
    assert experiment.for_row("nir_proxy_anchor_clipped").training.clip_value == 10.0


def test_a_method_has_the_settings_of_its_source() -> None:
    for name, key, expected in METHODS:
        spec = method(name, key)
        rounded = {
            path: pytest.approx(value) if isinstance(value, float) else value for path, value in expected.items()
        }
        assert {path: at(spec, path) for path in expected} == rounded, (name, key)


def test_panels_of_ccps_figure_differ_only_in_the_batch_size() -> None:
    panels = load_experiments("ccp_figure4", {})
    for data in ("cub200", "cars196"):
        same = [e.model_dump(exclude={"training": {"batch_size"}}) for name, e in panels.items() if f"/{data}_" in name]
        assert same == [same[0]] * 4
        sizes = [e.training.batch_size for name, e in panels.items() if f"/{data}_" in name]
        assert sizes == [16, 32, 64, 128]


def test_proxy_gml_has_all_eight_ablations() -> None:
    switches = ("loss.arguments.positive_mask", "loss.arguments.masked_softmax", "loss.arguments.reg_weight")
    keys = [variant.key for variant in loaded("proxy_gml_table1").variants]
    found = {tuple(at(method("proxy_gml_table1", key), switch) for switch in switches) for key in keys}
    assert found == {(s, m, w) for s in (True, False) for m in (True, False) for w in (0.0, 0.3)}
