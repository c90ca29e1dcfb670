"""The records: plain, frozen, named by what they say."""

import json
import math
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from results.records.records import Event, RunRecord, mean_scores, run_fingerprint
from results.records.trials import Trial
from results.values import Record, canonical_json, derive_seed, fingerprint_of
from tests.support.sample_records import scores, some_result, some_run, some_spec

SPEC = some_spec()


def _with_another_value(value: Record) -> Iterator[Record]:
    """Copies that differ in one field each, also of those that it holds. Their values need not be possible."""
    fields = {name: getattr(value, name) for name in type(value).model_fields if name != "fingerprint"}
    for name, part in fields.items():
        others = _with_another_value(part) if isinstance(part, Record) else [None if part else 1]
        yield from (type(value).model_construct(**{**fields, name: other}) for other in others)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_every_field_of_a_specification_changes_its_fingerprint():
    fingerprints = [SPEC.fingerprint, *(other.fingerprint for other in _with_another_value(SPEC))]
    assert len(set(fingerprints)) == len(fingerprints) > 50


@pytest.mark.parametrize(
    "record", [SPEC, some_result(SPEC), some_result(SPEC, stopped_by="nan", reason="loss not finite"), some_run()]
)
def test_records_survive_json_unchanged(record):
    again = type(record).model_validate_json(record.model_dump_json())
    assert again == record
    assert json.loads(record.model_dump_json()) == record.model_dump(mode="json")


@pytest.mark.parametrize("number", [1.01, -0.01, math.nan])
def test_no_record_holds_a_score_that_cannot_be(number):
    run, trial = some_run().model_dump(mode="json"), {"number": 0, "setting": {}, "state": "complete", "score": 0.5}
    wrong = {**run, "concatenated": {**run["concatenated"], "map_at_r": number}}
    least = {**dict.fromkeys(("run", "search", "wall_time"), 0), "dimensions": 1, "test_classes": 1, "test_images": 1}
    parts = [{**run, "wall_time": math.inf}, *({**run, name: number - 1} for name, number in least.items())]
    scored = {**trial, "fold_scores": [number]}
    for record, content in ((RunRecord, wrong), *((RunRecord, one) for one in parts), (Trial, scored)):
        with pytest.raises(ValidationError, match="Input should be"):
            record.model_validate_json(json.dumps(content))
    assert RunRecord.model_validate({**run, **least}).model_dump().items() >= least.items()
    for empty in ("specs", "fold_scores"):
        with pytest.raises(ValidationError, match="at least 1 item"):
            RunRecord.model_validate({**run, empty: []})


def test_canonical_json_knows_no_order_of_keys_and_no_nan():
    assert canonical_json({"b": 1, "a": [1, 2.5, None, "ü"]}) == '{"a":[1,2.5,null,"\\u00fc"],"b":1}'
    assert fingerprint_of({"b": 1, "a": 2}) == fingerprint_of({"a": 2, "b": 1})
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json(math.nan)


def test_seeds_are_the_same_on_every_machine():
    assert derive_seed("network", 7) == 2369450713922907855
    assert derive_seed(0, "reproduction", 3, 1) == 6495748839508073777


def test_a_diverged_training_scores_nothing_and_is_flagged():
    diverged = some_result(SPEC, 0.4, stopped_by="nan", reason="loss not finite at iteration 3")
    assert (diverged.status, diverged.objective, diverged.best_map_at_r) == ("nan", 0, 0)
    assert not diverged.beats_untrained
    assert diverged.events == (Event(kind="diverged", fold=1, iteration=200),)
    assert some_result(SPEC, curve=(), stopped_by="nan").untrained_map_at_r == 0.0
    fine = some_result(SPEC, 0.4)
    assert (fine.objective, fine.events) == (0.4, ())


def test_what_follows_from_the_checkpoint():
    best = some_result(SPEC, 0.4, best_iteration=100)
    assert (best.best_map_at_r, best.untrained_map_at_r, best.cut_off) == (0.4, 0.0, False)
    start, first, last = best.curve
    falling = some_result(SPEC, best_iteration=100, curve=(start.model_copy(update={"map_at_r": 0.9}), first, last))
    assert (falling.best_map_at_r, falling.beats_untrained) == (0.4, False)
    assert some_result(SPEC, 0.4).cut_off


def test_a_training_of_a_chosen_epoch_has_no_objective():
    settled = some_result(SPEC.changed(validation_classes=(), checkpoint_epoch=250))
    assert (settled.best_map_at_r, settled.beats_untrained) == (None, True)
    with pytest.raises(ValueError, match="no objective"):
        _ = settled.objective


def test_a_training_whose_steps_were_skipped_is_flagged():
    fine = some_result(SPEC, 0.4)
    start, first, last = fine.curve
    stuck = last.model_copy(update={"loss": None})
    (event,) = some_result(SPEC, curve=(start, first, stuck)).events
    assert (event.kind, event.fold, event.iteration) == ("skipped", 1, 200)
    high = start.model_copy(update={"map_at_r": 0.9})
    both = some_result(SPEC, curve=(high, first.model_copy(update={"loss": None}), stuck)).events
    assert [(event.kind, event.iteration) for event in both] == [("no gain", None), ("skipped", 100)]


def test_a_training_that_no_epoch_improved_is_flagged_unless_it_was_never_trained():
    assert some_result(SPEC, beats_untrained=False).events == (Event(kind="no gain", fold=1),)
    assert some_result(SPEC, beats_untrained=False, stopped_by="untrained").events == ()


def test_what_follows_from_a_runs_measurements():
    run = some_run("margin", fold_scores=(scores(0.2), scores(0.4)), dataset="cub200", training_version=2)
    assert (run.name, run.method, run.dataset, run.training_version) == ("run 1", "margin", "cub200", 2)
    assert run.separated == mean_scores(run.fold_scores)
    assert run.separated.precision_at_1 == pytest.approx(0.3)
    assert run.fold_fingerprints == tuple(spec.fingerprint for spec in run.specs)
    assert run.fingerprint == run_fingerprint(run.fold_fingerprints)


def test_a_run_is_named_by_its_metrics_in_any_order_and_by_what_chose_its_epochs():
    plain = run_fingerprint(("a", "b"))
    assert plain == run_fingerprint(("a", "b"), (), ())
    assert run_fingerprint(("a", "b"), ("nmi", "recall@2")) == run_fingerprint(("a", "b"), ("recall@2", "nmi"))
    names = {plain, run_fingerprint(("a", "b"), ("nmi",)), run_fingerprint(("a", "b"), (), ("c", "d"))}
    assert len({*names, run_fingerprint(("a", "b"), (), ("d", "c"))}) == 4
