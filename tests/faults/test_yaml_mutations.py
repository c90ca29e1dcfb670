"""Damaged experiment files and cards: `plan` works or answers in one line with status 2, and writes nothing."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.bad_input import SAME_FOLDER, answer_to, assert_in_one_line
from tests.support.yaml_mutations import CARD, EXPERIMENT, PANELS, damaged

FILES = st.one_of(
    st.tuples(damaged(EXPERIMENT), st.just(CARD)),
    st.tuples(damaged(PANELS), st.just(CARD)),
    st.tuples(st.just(EXPERIMENT), damaged(CARD)),
)


def plan_of_damaged_files(folder: Path, experiment: str, card: str) -> None:
    (folder / "bad.yaml").write_bytes(experiment.encode(errors="surrogatepass"))
    (folder / "mine.yaml").write_bytes(card.encode(errors="surrogatepass"))
    answer = answer_to("plan", str(folder / "bad.yaml"), "--device", "cpu", "--store", str(folder / "runs/s.sqlite"))
    assert_in_one_line(answer)
    assert sorted(path.name for path in folder.iterdir()) == ["bad.yaml", "mine.yaml"]


def test_the_undamaged_files_are_planned(tmp_path):
    for text in (EXPERIMENT, PANELS):
        plan_of_damaged_files(tmp_path, text, CARD)
        assert answer_to("plan", str(tmp_path / "bad.yaml"), "--device", "cpu").code == 0


@settings(max_examples=25, derandomize=True, suppress_health_check=SAME_FOLDER)
@given(files=FILES)
def test_some_damaged_files(tmp_path, files):
    plan_of_damaged_files(tmp_path, *files)


@pytest.mark.faults
@settings(max_examples=1000, suppress_health_check=SAME_FOLDER)
@given(files=FILES)
def test_a_thousand_damaged_files(tmp_path, files):
    plan_of_damaged_files(tmp_path, *files)
