"""Records of one experiment whose methods were run apart become the record of one run, or one line says why not."""

import subprocess
import sys
from dataclasses import replace

import pytest

from results.records.records import Scores
from results.store.experiment_results import MeasuredExperiment
from tests.benchmarks.join_records import joined

WHOLE = MeasuredExperiment.kept("mlrc_frozen_cub200_subset")
METHODS = list(WHOLE.summary.methods)
FIELDS = {key: getattr(WHOLE.summary, key) for key in ("methods", "runs", "ranges")}


def part(*methods):
    """The record of a run of some of the methods."""
    settings = WHOLE.summary.experiment.model_copy(update={"methods": methods})
    changes = {key: {m: given[m] for m in methods if m in given} for key, given in FIELDS.items()}
    records = tuple(record for record in WHOLE.records if record.method in methods)
    return MeasuredExperiment(
        WHOLE.summary.model_copy(update={**changes, "experiment": settings}),
        records,
        searches={key: search for key, search in WHOLE.searches.items() if key[0] in methods},
        cut_off={
            record.fingerprint: WHOLE.cut_off[record.fingerprint]
            for record in records
            if record.fingerprint in WHOLE.cut_off
        },
    )


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_parts_become_the_record_of_one_run(cut):
    # A shared method is in both parts, and the parts come in the wrong order.
    whole = joined([part(METHODS[0], *METHODS[cut:]), part(*METHODS[:cut])], METHODS)
    assert whole.to_json() == WHOLE.to_json()


def test_the_counts_of_cut_off_trainings_are_joined():
    runs = {method: [r.fingerprint for r in part(method).records] for method in ("triplet", "cosface")}
    parts = [
        replace(part(method), cut_off=dict.fromkeys(fingerprints, number))
        for number, (method, fingerprints) in enumerate(runs.items())
    ]
    assert joined(parts, METHODS).cut_off == {**dict.fromkeys(runs["cosface"], 1), **dict.fromkeys(runs["triplet"], 0)}


def test_methods_without_a_place_come_last():
    whole = joined([part("triplet", "cosface"), part("contrastive")], ["contrastive"])
    assert list(whole.summary.methods) == ["contrastive", "triplet", "cosface"]
    assert whole.summary.experiment.methods == ("contrastive", "triplet", "cosface")


@pytest.mark.parametrize(
    "changes",
    [
        {"experiment": WHOLE.summary.experiment.model_copy(update={"reproductions": 9})},
        {"experiment": WHOLE.summary.experiment.model_copy(update={"seed": 1})},
        {"data": WHOLE.summary.data.model_copy(update={"samples": 5901})},
    ],
)
def test_other_conditions_are_refused(changes):
    other = MeasuredExperiment(part("triplet").summary.model_copy(update=changes), part("triplet").records)
    with pytest.raises(ValueError, match="differ in more than their methods"):
        joined([part("contrastive"), other], METHODS)


def test_unequal_runs_of_a_shared_method_are_refused():
    first, *rest = part("triplet").records
    other = first.model_copy(update={"separated": Scores(precision_at_1=0.5, r_precision=0.3, map_at_r=0.2)})
    for records in [(other, *rest), tuple(rest)]:
        changed = MeasuredExperiment(part("triplet").summary, records)
        with pytest.raises(ValueError, match="the runs of triplet differ"):
            joined([part("contrastive", "triplet"), changed], METHODS)


def test_the_command_prints_the_joined_record(tmp_path):
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, methods in zip(files, [METHODS[6:], METHODS[:6]], strict=True):
        file.write_text(part(*methods).to_json(), encoding="utf-8")
    command = [sys.executable, "-m", "tests.benchmarks.join_records", "mlrc_frozen_cub200/pca_start", *map(str, files)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == WHOLE.to_json()
