"""`status` and `coverage`: what a store holds, and which published rows the suite reproduces."""

import re

import pytest

from results.spec.component import Component
from results.spec.method import Method
from results.store.store import Store
from tests.support.command_line import ROOT, refused
from tests.support.published_files import covered
from tests.support.sample_records import changed_run, put_experiment, some_plan, some_result, some_run, some_spec


@pytest.fixture
def store(tmp_path):
    (tmp_path / "runs").mkdir()
    return Store(tmp_path / "runs" / "store.sqlite", tmp_path / "artifacts")


def cells(line):
    return [cell.strip() for cell in line.split("│")[1:-1]]


def test_status_has_experiments_trainings_and_the_last_failures(say, tmp_path, store):
    methods = {"triplet": "Triplet", "contrastive": "Contrastive"}
    store.put_experiment("ab" * 16, "some", some_plan(methods=methods, trials=7))
    store.put_experiment("cd" * 16, "some", some_plan(methods={"triplet": "Triplet"}, trials=9))
    for seed in range(2):
        store.put_fold(some_result(some_spec(seed=seed)))
    for number in range(7):
        store.put_failure("f" * 32, f"reason {number}")
    lines = say("status").out.splitlines()
    assert lines[0] == ("runs/store.sqlite: 2 experiments, 2 trainings, 0 test evaluations, 7 failures")
    assert [cells(line)[:4] for line in lines if "│ some" in line] == [
        ["some", "cdcdcdcdcdcd", "triplet", "1 x 9"],
        ["some", "abababababab", "triplet, contrastive", "1 x 7"],
    ]
    assert [line[-8:] for line in lines if line.startswith("failure at")] == [f"reason {n}" for n in range(2, 7)]


def test_status_tells_the_versions_of_a_users_class_from_each_other(say, store):
    def version(digest, seed=0):
        loss = Component(
            name="MultipleLosses", arguments={"losses": [{"component": {"name": f"m.py:Mine (sha256 {digest})"}}]}
        )
        return some_spec(method=Method(name="mine", loss=loss), seed=seed)

    old, new = version("0" * 16), version("1" * 16)
    for spec in (old, version("0" * 16, seed=1), new):
        store.put_fold(some_result(spec))
    put_experiment(store, "cd" * 16, "first_try", some_plan(), [changed_run(some_run("mine"), specs=(old,))])
    rows = [cells(line) for line in say("status").out.splitlines() if "│ mine" in line]
    assert sorted((row[1], row[2], row[4]) for row in rows) == [
        (f"m.py:Mine (sha256 {'0' * 16})", "2", "first_try cdcdcdcdcdcd"),
        (f"m.py:Mine (sha256 {'1' * 16})", "1", "-"),
    ]


def test_counts_of_all_tables_end_with_their_sum_and_the_reasons(say):
    rows, text = covered(), say("coverage").out
    total = next(line for line in text.splitlines() if line.startswith("│ all"))
    numbers = [int(cell) for cell in cells(total)[1:]]
    assert sum(numbers) == len(rows)
    assert numbers[0] == sum(row.status == "runnable" for row in rows)
    reasons = {row.detail for row in rows if row.status == "not runnable"}
    assert reasons
    assert all(reason in text for reason in reasons)


def test_the_coverage_of_one_table_names_files_sources_and_our_readings(say):
    text = " ".join(say("coverage", "mlrc_cub200").out.replace("│", " ").split())
    assert "our reading: the leading principal components of the test images" in text
    text = say("coverage", "proxy_isa_table1").out
    assert all(words in text for words in ("runnable", "Qian et al., ICCV 2019"))
    refused(
        say("coverage", "table9"),
        "no published table 'table9'; did you mean nir_table5 or nir_table4 or nir_table3? `reproduce table` lists",
    )


def test_a_card_is_shown_with_the_range_of_its_rate_and_those_of_the_suites_cards(say):
    shown = say("methods", "proxy_anchor").done().out
    (line,) = re.findall(r"^# range of these rates: (.*)$", shown, flags=re.MULTILINE)
    own, _, others = line.partition("; in the suite's cards ")
    assert own == "1e-05 to 1.0"
    counts = dict(re.findall(r"([\d.e-]+ to [\d.]+) \((\d+)\)", others))
    files = [path.read_text() for path in (ROOT / "reproduce" / "methods").glob("*.yaml")]
    assert sum(map(int, counts.values())) == sum(
        "\n  loss_optimizer.lr: {" in text.partition("\npublished:")[0] for text in files
    )
    assert {"1e-06 to 1.0", own} < counts.keys()
    assert "range of these rates" not in say("methods", "contrastive").done().out
