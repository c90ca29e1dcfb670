"""Damaged records of a store, and records of a newer release: one line that names the remedy."""

import json

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from results.records.records import RunRecord
from results.store.database import parsed
from results.store.patience import IncompleteExperimentError, StoreError
from results.store.schema import EXPERIMENTS
from results.store.store import Store
from tests.support.sample_records import some_run, some_summary

RECORD = some_run("triplet", 0, 0.5).model_dump_json()


def test_a_record_is_read():
    assert parsed(RunRecord, RECORD, "sqlite:///a") == some_run("triplet", 0, 0.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RECORD[:-1] + ',"colour":1}', "a RunRecord has the key 'colour', which this release does not know; update"),
        (RECORD[:100], "a RunRecord in it is not JSON: it is damaged"),
        ("", "a RunRecord in it is not JSON"),
        ("[]", "a RunRecord in it has no usable 'content'"),
        (RECORD.replace('"run":0', '"run":"x"'), "a RunRecord in it has no usable 'run'"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_the_remedy(text, said):
    with pytest.raises(StoreError) as error:
        parsed(RunRecord, text, "sqlite:///a")
    assert str(error.value).startswith(f"store sqlite:///a: {said}")
    assert "--store" in str(error.value)


@given(start=st.integers(0, len(RECORD)), length=st.integers(0, 30), middle=st.text(max_size=3))
def test_no_damage_raises_another_error(start, length, middle):
    lines = [""]
    try:
        parsed(RunRecord, RECORD[:start] + middle + RECORD[start + length :], "sqlite:///a")
    except StoreError as error:
        lines = str(error).splitlines()
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda text: text[:-5], StoreError),
        (lambda text: json.dumps({**json.loads(text), "trials": "x"}), StoreError),
        (lambda text: "{}", IncompleteExperimentError),
    ],
)
def test_a_damaged_experiment_is_told_from_an_old_one(tmp_path, change, kind):
    store = Store(f"sqlite:///{tmp_path / 's.sqlite'}", tmp_path)
    store.put_experiment("f" * 32, "some", some_summary())
    with store._database.writing() as connection:
        text = connection.execute(sa.select(EXPERIMENTS.c.settings)).scalar_one()
        connection.execute(sa.update(EXPERIMENTS).values(settings=change(text)))
    with pytest.raises(StoreError) as error:
        store.experiment("f" * 32)
    assert type(error.value) is kind


def test_an_old_experiment_is_told_by_the_outermost_key_that_it_lacks(tmp_path):
    store = Store(f"sqlite:///{tmp_path / 's.sqlite'}", tmp_path)
    store.put_experiment("f" * 32, "some", some_summary())
    with store._database.writing() as connection:
        summary = json.loads(connection.execute(sa.select(EXPERIMENTS.c.settings)).scalar_one())
        del summary["experiment"]["trunk"]["name"]
        connection.execute(sa.update(EXPERIMENTS).values(settings=json.dumps(summary)))
    with pytest.raises(IncompleteExperimentError, match="without its experiment; start it again"):
        store.experiment("f" * 32)
