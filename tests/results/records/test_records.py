"""The records: plain, frozen, named by what they say."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from results.records.records import FoldResult, RunRecord, run_fingerprint
from results.spec.training_spec import (
    Component,
    FoldSpec,
    ImageSettings,
    MethodSpec,
    OptimizerSettings,
    RateSchedule,
    TrainingSettings,
    WeightedComponent,
)
from results.spec.trunk_spec import EmbedderSpec, InputFormat, TrunkSpec
from results.values import canonical_json, derive_seed, fingerprint_of
from tests.support.sample_records import some_result, some_run, some_spec

SPEC = some_spec()
LOSS = Component(name="TripletMarginLoss", arguments={"margin": 0.1})


def method(**changes):
    return SPEC.method.model_copy(update=changes)


def training(**changes):
    return SPEC.training.model_copy(update=changes)


def images(**changes):
    return SPEC.images.model_copy(update=changes)


# By the path of the field, another value of the field of FoldSpec that holds it.
CHANGES = {
    "training_version": SPEC.training_version + 1,
    "dataset": "cub200",
    "data_fingerprint": "e" * 32,
    "split": "other",
    "fold": 2,
    "train_classes": ((0, 6),),
    "train_classes (order)": ((0, 0), (2, 6)),
    "validation_classes": ((7, 7),),
    "images.resize": images(resize=256),
    "images.crop": images(crop=31),
    "images.area": images(area=(0.2, 1.0)),
    "images.ratio": images(ratio=(0.8, 4 / 3)),
    "images.flip": images(flip=False),
    "images.evaluation_resize": images(evaluation_resize=9),
    "images.augmentation": images(augmentation="device"),
    "trunk.name": TrunkSpec(name="efficientnet_lite0", weights="random"),
    "trunk.weights": TrunkSpec(name="small_conv", weights="imagenet"),
    "trunk.batch_norm": TrunkSpec(name="small_conv", weights="random", batch_norm="frozen"),
    "trunk.pooling": TrunkSpec(name="small_conv", weights="random", pooling="average_max"),
    "trunk.input_format": TrunkSpec(
        name="small_conv", weights="random", input_format=InputFormat(channels="grey", mean=(0,), std=(1,))
    ),
    "trunk.batch_norm_momentum": TrunkSpec(
        name="small_conv", weights="random", batch_norm="training", batch_norm_momentum=0.9
    ),
    "trunk.frozen": TrunkSpec(name="efficientnet_lite0", weights="imagenet", frozen=True),
    "trunk.width": TrunkSpec(name="none", weights="none", width=4),
    "embedder.hidden": EmbedderSpec(hidden=(8,)),
    "embedder.init": EmbedderSpec(init="pca"),
    "embedding_size": None,
    "embedder_bias": False,
    "normalization": "ball",
    "method.name": method(name="contrastive"),
    "method.loss": method(loss=Component(name="TripletMarginLoss", arguments={"margin": 0.1000001})),
    "method.miner": method(miner=Component(name="MultiSimilarityMiner")),
    "method.embedding_regularizer": method(embedding_regularizer=WeightedComponent(name="LpRegularizer", weight=0.1)),
    "method.samples_per_class": method(samples_per_class=1),
    "method.loss_lr": method(loss_lr=0.01),
    "method.loss_weight_decay": method(loss_weight_decay=0.0),
    "method.warmup_passes": method(warmup_passes=1),
    "method.warmup_steps": method(warmup_steps=1),
    "method.embedder": method(embedder="principal_components"),
    "method.lr": method(lr=1e-4),
    "method.whole_passes": method(whole_passes=True),
    "method.versions": method(versions={"TripletMarginLoss": "meaning 2"}),
    "training.batch_size": training(batch_size=16),
    "training.iterations_per_epoch": training(iterations_per_epoch=50),
    "training.max_epochs": training(max_epochs=10),
    "training.validate_every": training(validate_every=1),
    "training.patience": training(patience=3),
    "training.optimizer.name": training(optimizer=OptimizerSettings(name="Adam")),
    "training.optimizer.lr": training(optimizer=OptimizerSettings(lr=2e-6)),
    "training.optimizer.weight_decay": training(optimizer=OptimizerSettings(weight_decay=0.0)),
    "training.optimizer.arguments": training(optimizer=OptimizerSettings(arguments={})),
    "training.optimizer.layer_decay": training(optimizer=OptimizerSettings(layer_decay=0.75)),
    "training.optimizer.weight_decay_of": training(optimizer=OptimizerSettings(weight_decay_of="matrices")),
    "training.schedule.milestones": training(schedule=RateSchedule(milestones=(1,), factor=0.5)),
    "training.schedule.factor": training(schedule=RateSchedule(milestones=(1,), factor=0.25)),
    "training.schedule.name": training(schedule=RateSchedule(name="LinearLR")),
    "training.schedule.arguments": training(schedule=RateSchedule(name="LinearLR", arguments={"total_iters": 3})),
    "training.schedule.schedulers": training(
        schedule=RateSchedule(name="LinearLR", schedulers=(RateSchedule(name="StepLR"),))
    ),
    "training.schedule.every": training(schedule=RateSchedule(name="LinearLR", every="step")),
    "training.clip_value": training(clip_value=10.0),
    "training.clip_norm": training(clip_norm=10.0),
    "training.precision": training(precision="amp"),
    "training.gradient_cache": training(gradient_cache=8),
    "seed": 8,
}


@pytest.mark.parametrize("path", CHANGES)
def test_every_field_of_a_spec_changes_its_fingerprint(path):
    field = path.split(".")[0].split(" ")[0]
    changed = some_spec(**{field: CHANGES[path]})
    assert changed != SPEC
    assert changed.fingerprint != SPEC.fingerprint


def test_no_field_of_a_spec_is_forgotten_above():
    paths = {path.split(" ")[0] for path in CHANGES}
    parts = {
        "": FoldSpec,
        "images.": ImageSettings,
        "trunk.": TrunkSpec,
        "embedder.": EmbedderSpec,
        "method.": MethodSpec,
        "training.": TrainingSettings,
        "training.optimizer.": OptimizerSettings,
        "training.schedule.": RateSchedule,
    }
    holders = {prefix.removesuffix(".") for prefix in parts}
    wanted = {prefix + name for prefix, model in parts.items() for name in model.model_fields} - holders
    # It comes with the absence of validation classes only; tests/protocols/training/train_fold/test_schedules.py.
    assert paths == wanted - {"checkpoint_epoch"}
    assert len({some_spec(**{p.split(".")[0].split(" ")[0]: v}).fingerprint for p, v in CHANGES.items()}) == len(
        CHANGES
    )


@pytest.mark.parametrize(
    "record", [SPEC, some_result(SPEC), some_result(SPEC, status="nan", reason="loss not finite"), some_run()]
)
def test_records_survive_json_unchanged(record):
    again = type(record).model_validate_json(record.model_dump_json())
    assert again == record
    assert json.loads(record.model_dump_json()) == record.model_dump(mode="json")


@given(margin=st.floats(allow_nan=False, allow_infinity=False), seed=st.integers(0, 2**63 - 1))
def test_a_spec_keeps_its_name_through_json(margin, seed):
    spec = some_spec(seed=seed, method=method(loss=Component(name="L", arguments={"margin": margin})))
    again = FoldSpec.model_validate_json(spec.model_dump_json())
    assert again.fingerprint == spec.fingerprint
    assert again.method.loss.arguments["margin"] == margin


def test_a_fingerprint_is_32_hexadecimal_digits_and_computed_once():
    assert len(SPEC.fingerprint) == 32
    int(SPEC.fingerprint, 16)
    assert some_spec().fingerprint == SPEC.fingerprint == fingerprint_of(SPEC.model_dump(mode="json"))


@pytest.mark.parametrize("record", [SPEC, SPEC.method, SPEC.training, some_result(SPEC), some_run()])
def test_records_are_frozen(record):
    field = next(iter(type(record).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(record, field, getattr(record, field))


@pytest.mark.parametrize(
    ("model", "value"),
    [(FoldSpec, SPEC), (FoldResult, some_result(SPEC)), (RunRecord, some_run()), (Component, LOSS)],
)
def test_unknown_keys_are_refused(model, value):
    with pytest.raises(ValidationError, match="extra_forbidden"):
        model.model_validate({**value.model_dump(), "speed": 3})


@pytest.mark.parametrize("name", ["batch_size", "iterations_per_epoch", "max_epochs", "validate_every"])
def test_a_training_of_nothing_is_refused(name):
    with pytest.raises(ValidationError, match=name):
        TrainingSettings(**{name: 0})


def test_canonical_json_knows_no_order_of_keys_and_no_nan():
    assert canonical_json({"b": 1, "a": [1, 2.5, None, "ü"]}) == '{"a":[1,2.5,null,"\\u00fc"],"b":1}'
    assert fingerprint_of({"b": 1, "a": 2}) == fingerprint_of({"a": 2, "b": 1})
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json(math.nan)


def test_seeds_are_the_same_on_every_machine():
    assert derive_seed("network", 7) == 2369450713922907855
    assert derive_seed(0, "reproduction", 3, 1) == 6495748839508073777


def test_seeds_differ_by_purpose_number_and_fold():
    identities = [
        (base, purpose, number, fold)
        for base in (0, 1)
        for purpose in ("search", "reproduction")
        for number in range(50)
        for fold in range(4)
    ]
    seeds = {derive_seed(*identity) for identity in identities}
    assert len(seeds) == len(identities)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert derive_seed("a", 1) != derive_seed("a", "1") != derive_seed("a1")


def test_a_run_is_named_by_its_trainings_in_their_order():
    assert run_fingerprint(("a", "b")) != run_fingerprint(("b", "a"))
    assert run_fingerprint(("a", "b")) == run_fingerprint(("a", "b"))


def test_a_diverged_training_scores_nothing_and_is_flagged():
    diverged = some_result(SPEC, 0.4, status="nan", reason="loss not finite at iteration 3", beats_untrained=False)
    assert diverged.objective == 0.0
    assert "loss not finite at iteration 3" in diverged.flag
    fine = some_result(SPEC, 0.4)
    assert (fine.objective, fine.flag) == (0.4, None)


def test_a_training_whose_steps_were_skipped_is_flagged():
    fine = some_result(SPEC, 0.4)
    start, first, *others = fine.curve
    stuck = [point.model_copy(update={"loss": None}) for point in others]
    flag = fine.model_copy(update={"curve": (start, first, *stuck)}).flag
    assert flag == f"the method skipped all steps before {len(stuck)} of {len(stuck) + 1} validations"
    untrained = some_result(SPEC, beats_untrained=False)
    both = untrained.model_copy(update={"curve": (start, first, *stuck)}).flag
    assert both == f"no trained epoch beat the untrained network; {flag}"


def test_a_training_that_no_epoch_improved_is_flagged_unless_it_was_never_trained():
    assert "no trained epoch" in some_result(SPEC, beats_untrained=False).flag
    assert some_result(SPEC, beats_untrained=False, stopped_by="untrained").flag is None


def test_a_training_without_validation_classes_has_no_objective():
    with pytest.raises(ValueError, match="no objective"):
        _ = some_result(SPEC).model_copy(update={"best_map_at_r": None}).objective


def test_a_run_is_named_in_messages_by_its_number_and_by_a_search_that_is_not_the_first():
    assert some_run(run=2).name == "run 2"
    assert some_run(run=2, search=1).name == "run 2 of search 1"


def test_a_run_is_named_by_its_metrics_in_any_order_and_by_what_chose_its_epochs():
    plain = run_fingerprint(("a", "b"))
    assert plain == run_fingerprint(("a", "b"), (), ())
    assert run_fingerprint(("a", "b"), ("nmi", "recall@2")) == run_fingerprint(("a", "b"), ("recall@2", "nmi"))
    names = {plain, run_fingerprint(("a", "b"), ("nmi",)), run_fingerprint(("a", "b"), (), ("c", "d"))}
    assert len({*names, run_fingerprint(("a", "b"), (), ("d", "c"))}) == 4
