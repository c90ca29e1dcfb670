"""The fingerprints of kept records do not change. With a new fingerprint, stored trainings would be repeated.

A fingerprint that changes on purpose needs a new version (`TRAINING_VERSION`, `EVALUATION_VERSION`, `SEARCH_VERSION`).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protocols.datasets.dataset import Dataset
from protocols.images.packed_images import LabelledImages, PackedImages
from protocols.search.method_template import MethodTemplate
from protocols.search.space import SearchParameter
from protocols.search.study import Budget, Study
from reproduce.config.checked_card import load_card, load_variant
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_on_dataset import open_method
from reproduce.execution.session import problem_of
from results.records.records import run_fingerprint
from results.records.trials import TrialsInMemory
from results.spec.data_choice import DataChoice
from results.spec.experiment_spec import Experiment
from results.spec.search_settings import SamplerSettings
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import TrunkSpec
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import some_spec
from tests.support.small_problem import TRIPLET, small_problem

MARGIN = SearchParameter(target="loss.margin", scale="log", low=0.01, high=1.0)


def without_images(name: str, classes: int, fingerprint: str) -> Dataset:
    """A dataset with only those properties that fingerprints of trainings depend on."""
    nothing = np.empty(0, dtype=np.int64)
    images = LabelledImages(PackedImages(Path(".")), nothing, nothing)
    return Dataset(name, tuple(str(rank) for rank in range(classes)), images, fingerprint)


def test_fingerprint_of_a_training() -> None:
    assert some_spec(training_version=1).fingerprint == "c886d24450d763617fbaa5ebb6933e3a"
    assert some_spec().fingerprint == "f0ebed97c37cec476e379f0f720c936e"
    settled = some_spec(validation_classes=(), checkpoint_epoch=4, embedder_bias=False, training_version=1)
    assert settled.fingerprint == "11617d1b4912567be4b0a790254e346d"
    assert FoldSpec.model_validate_json(settled.model_dump_json()).fingerprint == settled.fingerprint


def test_fingerprint_of_a_run() -> None:
    assert run_fingerprint(("a" * 32, "b" * 32)) == "8a7069d1441efad4743148b5ad4f7887"
    assert run_fingerprint(("a" * 32, "b" * 32), ("recall@2", "nmi")) == "81790c558ff00a47db8a2a5c7072fbfa"


def test_fingerprint_of_an_experiment() -> None:
    trunk = TrunkSpec(name="bn_inception", weights="imagenet")
    experiment = Experiment(title="T", dataset=DataChoice(name="cub200"), methods=("triplet",), trunk=trunk)
    assert experiment.fingerprint("some", "d" * 32) == "4ae138d60a39a09ba33dd66e36cae559"
    assert experiment.fingerprint_without_rows("some", "d" * 32) == "259233304f8797ac29efec102042b398"
    elsewhere = experiment.model_copy(update={"test_curves": True, "metrics": ("nmi",), "seed": 3})
    assert elsewhere.fingerprint_without_rows("some", "d" * 32) == "b30ca93aebd27f2828470e5262cfdb06"
    more = experiment.model_copy(update={"methods": ("my/contrastive.yaml", "triplet")})
    assert more.fingerprint("some", "d" * 32) != experiment.fingerprint("some", "d" * 32)
    other_order = experiment.model_copy(update={"methods": ("triplet", "contrastive")})
    assert more.fingerprint("some", "d" * 32) == other_order.fingerprint("some", "d" * 32)


def test_fingerprint_of_a_study(tmp_path: Path) -> None:
    problem = small_problem(tmp_path)
    problem = replace(problem, dataset=replace(problem.dataset, fingerprint="d" * 32))
    method = MethodTemplate(method=TRIPLET, space=(MARGIN,))
    study = Study(problem, method, Budget(), SamplerSettings(), TrialsInMemory())
    assert study.name == "c484a40cf9554b7d9e162c11436ea877"


PROXY_ISA = {f"proxy_isa{row}" for row in ("", "_inverse", "_negatives", "_none", "_sigma", "_v")}
NIR = {f"nir_{base}" for base in ("proxy_anchor", "proxy_nca", "soft_triple")}
CCP = {f"{base}_ccp" for base in ("c1", "c2", "ms", "triplet")}
PROXY_GML = {f"proxy_gml{row}" for row in ("", "_lp", "_m", "_m_lp", "_plain")}
PROXY_GML |= {f"proxy_gml_spos{row}" for row in ("", "_lp", "_m", "_m_lp")}
MEANING_HAS_CHANGED = {"proxy_nca", "snr_contrastive", "soft_triple"} | PROXY_GML | PROXY_ISA | NIR | CCP
"""Methods whose loss has changed since the records of training version 1. Their fingerprints must differ today."""


@pytest.mark.parametrize(
    "name", ["quickstart", "all_methods_glyphs", "proxy_gml_table1_glyphs", "proxy_isa_table3_glyphs"]
)
def test_fingerprints_of_every_kept_run_and_its_trainings(name: str) -> None:
    records = MeasuredExperiment.kept(name).records
    (experiment,) = load_experiments(name, {}).values()
    problem = problem_of(experiment, without_images("glyphs", 208, records[0].data_fingerprint))
    cards = (*map(load_card, experiment.methods), *map(load_variant, experiment.variants))
    opened = {card.key: open_method(experiment, card) for card in cards}
    assert records
    for record in records:
        searched = replace(problem, search=record.search)
        specs = tuple(
            spec.model_copy(update={"training_version": record.training_version})
            for spec in searched.fold_specs(
                opened[record.method].at(record.hyperparameters), "reproduction", record.run
            )
        )
        names = tuple(spec.fingerprint for spec in specs)
        # The records have NIR of before its flow rounded differently.
        if record.method in NIR or (record.method in MEANING_HAS_CHANGED and record.training_version == 1):
            assert names != record.fold_fingerprints, f"{record.method}: old results would be taken for new ones"
            continue
        assert names == record.fold_fingerprints, (record.method, record.run)
        assert searched.run_name(specs) == record.fingerprint
