"""The fingerprints of kept records do not change. With a new fingerprint, stored trainings would be repeated.

A fingerprint that changes on purpose needs a new version (`TRAINING_VERSION`, `EVALUATION_VERSION`, `SEARCH_VERSION`).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from losses.bridge import THREE
from protocols.datasets.dataset import Dataset
from protocols.images.packed_images import LabelledImages, PackedImages
from protocols.training.check_method import with_versions
from protocols.training.library_versions import LIBRARY
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_card import card_file, read_card
from reproduce.config.open_method import load_card, open_method, variant_card
from reproduce.run.session import setup_of
from results.records.records import run_fingerprint
from results.spec.data_choice import DataChoice
from results.spec.experiment_spec import Experiment
from results.spec.range import Range
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import TrunkSpec
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import some_spec
from tests.support.small_setup import TRIPLET, small_setup
from tests.support.studies import study_of

MARGIN = {"loss.margin": Range(scale="log", low=0.01, high=1.0)}


def without_images(name: str, classes: int, fingerprint: str) -> Dataset:
    """A dataset with only those properties that fingerprints of trainings depend on."""
    nothing = np.empty(0, dtype=np.int64)
    images = LabelledImages(nothing, nothing, PackedImages(Path(".")))
    names = tuple(str(rank) for rank in range(classes))
    return Dataset(
        name=name, root=Path(), class_names=names, names=(), labels=nothing, images=images, fingerprint=fingerprint
    )


def test_fingerprint_of_a_training() -> None:
    assert some_spec(training_version=2).fingerprint == "1710fc11fe81926ee7cb3a5bfb78f22b"
    settled = some_spec(validation_classes=(), checkpoint_epoch=4, embedder_bias=False, training_version=2)
    assert settled.fingerprint == "77642f0f47fabcf967a2d3f66eab74d5"
    assert FoldSpec.model_validate_json(settled.model_dump_json()).fingerprint == settled.fingerprint


def test_fingerprint_of_a_run() -> None:
    assert run_fingerprint(("a" * 32, "b" * 32)) == "8a7069d1441efad4743148b5ad4f7887"
    assert run_fingerprint(("a" * 32, "b" * 32), ("recall@2", "nmi")) == "81790c558ff00a47db8a2a5c7072fbfa"


def test_fingerprint_of_an_experiment() -> None:
    trunk = TrunkSpec(name="bn_inception", weights="imagenet")
    experiment = Experiment(title="T", dataset=DataChoice(name="cub200"), methods=("triplet",), trunk=trunk)
    assert experiment.fingerprint("some", "d" * 32) == "fcc485d92b7b15b2192ad8c8c6baa7c3"
    more = experiment.model_copy(update={"methods": ("my/contrastive.yaml", "triplet")})
    assert more.fingerprint("some", "d" * 32) != experiment.fingerprint("some", "d" * 32)
    assert more.fingerprint_without_rows("some", "d" * 32) == experiment.fingerprint_without_rows("some", "d" * 32)
    other_order = experiment.model_copy(update={"methods": ("triplet", "contrastive")})
    assert more.fingerprint("some", "d" * 32) == other_order.fingerprint("some", "d" * 32)


def test_fingerprint_of_a_study(tmp_path: Path) -> None:
    setup = small_setup(tmp_path)
    setup = replace(setup, dataset=replace(setup.dataset, fingerprint="d" * 32))
    assert study_of(setup, TRIPLET, MARGIN).name == "840162b8f41ee2ae75f9095409695883"


CHANGED = ("ntxent", "multi_similarity_miner", "snr_contrastive", "arcface", "hpl_pa")
"""Losses that got another version since: MLRC's releases, and what was not finite. The last one is gone."""


def _has_own_classes(card: str) -> bool:
    """Whether a card's fingerprints are those of 2.9: they name the version of the library for its classes."""
    return not THREE or LIBRARY not in str(with_versions(read_card(card_file(card)).method).versions)


@pytest.mark.parametrize("name", ["quickstart", "all_methods_glyphs"])
def test_fingerprints_of_every_kept_run_and_its_trainings(name: str) -> None:
    records = MeasuredExperiment.kept(name).records
    (experiment,) = load_experiments(name, {}).values()
    setup = setup_of(experiment, without_images("glyphs", 208, records[0].data_fingerprint))
    cards = (*map(load_card, filter(_has_own_classes, experiment.methods)), *map(variant_card, experiment.variants))
    opened = {card.key: open_method(experiment, card) for card in cards}
    assert records
    for record in records:
        if record.method.startswith("nir_") or record.method in CHANGED or record.method not in opened:
            continue  # NIR's rounding has changed too.
        method = opened[record.method].method.at(record.hyperparameters)
        specs = replace(setup, search=record.search).fold_specs(method, "reproduction", record.run)
        assert specs == record.specs, (record.method, record.run)
        assert setup.run_fingerprint(specs) == record.fingerprint
