"""`reproduce claims`: shipped and own claims, without a store and with the quickstart's runs."""

import csv
import io

import pytest

from reports.published.claims import answer_claims, claims_table
from results.published.claims import shipped_claims
from results.store.store import Store
from tests.support.command_line import refused
from tests.support.documentation import ROOT, between
from tests.support.sample_records import put_experiment, scores, some_plan, some_run

MINE = """\
source,place,a,b,dataset,score,difference
README,table,proxy_anchor,contrastive,glyphs,MAP@R concatenated,5.5
README,table,contrastive,normalized_softmax,glyphs,MAP@R separated,1.0
README,table,contrastive,multi_similarity,glyphs,MAP@R concatenated,0.9
README,table,proxy_anchor,contrastive,cub200,R@1,1.0
"""
MEANS = {
    "untrained": 0.1,
    "contrastive": 0.29,
    "multi_similarity": 0.2814,
    "normalized_softmax": 0.36,
    "proxy_anchor": 0.4006,
}


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.csv").write_text(MINE)
    return "mine.csv"


@pytest.fixture
def quickstart(tmp_path):
    (tmp_path / "runs").mkdir()
    store = Store(tmp_path / "runs" / "store.sqlite", tmp_path / "runs" / "artifacts")
    settings = {"search": {"trials": 10, "searches": 3}, "reproductions": 1}
    plan = some_plan(settings=settings, methods={key: key for key in MEANS})
    records = []
    for method, mean in MEANS.items():
        for search in range(3):
            made_up = scores(2 * mean + 0.02 * (search - 1))
            changes = {"fingerprint": f"{method}-{search}", "separated": made_up, "concatenated": made_up}
            records.append(some_run(method, search=search, **changes))
    put_experiment(store, "f", "quickstart", plan, records)


def rows_of(answer):
    return list(csv.DictReader(io.StringIO(answer.out)))


def test_without_a_store_the_suites_own_records_answer_beside_the_print(say):
    answer = say("claims", "--format", "csv")
    assert answer.code == 0
    assert "there is no store yet, so the suite's own records in results/measured answer" in answer.err
    rows = rows_of(answer)
    assert len(rows) == len(shipped_claims())
    assert {row["runs"] for row in rows} > {"not run"}
    assert {row["dataset"] for row in rows if row["runs"] != "not run"} == {"cub200"}
    assert {row["print alone"] for row in rows} == {"within noise", "beyond noise", "no fitting deviation"}


def test_an_installed_package_has_no_records_and_says_so(say, tmp_path, monkeypatch):
    monkeypatch.setattr("reproduce.outputs.tables.FOLDER", tmp_path)
    answer = say("claims", "--format", "csv")
    assert "no store yet, and an installed package has no records of the suite's own, so print" in answer.err
    assert {row["runs"] for row in rows_of(answer)} == {"not run"}


def test_the_documentation_has_the_summary_of_the_shipped_claims():
    table = claims_table(answer_claims(shipped_claims(), []), "Main claims")
    shown = between(ROOT / "docs" / "papers.md", "summary", "end of summary")
    assert " ".join(shown.replace(">", " ").split()) == table.notes[0]


def test_the_quickstarts_runs_answer_own_claims(say, quickstart, mine):
    rows = rows_of(say("claims", mine, "--format", "csv"))
    assert [row["runs"] for row in rows] == ["seen here too", "the other way here", "cannot tell", "not run"]
    assert [row["experiment"] for row in rows] == ["quickstart"] * 3 + [""]
    shown = say("claims", mine)
    assert shown.err == ""
    assert "+5.53" in shown.out
    *_, elsewhere = rows_of(say("claims", mine, "--format", "csv", "--any-dataset"))
    assert (elsewhere["runs"], elsewhere["experiment"]) == ("seen here too", "quickstart")


def test_names_that_nobody_knows_are_said(say, tmp_path, quickstart):
    (tmp_path / "mine.csv").write_text("a,b,dataset,score,difference\nproxy_ancor,triplet,cub20,R@1,2\n")
    answer = say("claims", "mine.csv")
    assert answer.code == 0
    assert "no method is called 'proxy_ancor'; `reproduce methods` lists the names" in answer.err
    assert "no dataset is called 'cub20'; `reproduce datasets` lists the names" in answer.err


def test_a_file_that_cannot_be_used_gives_one_line(say, tmp_path):
    (tmp_path / "bad.csv").write_text("a,b,dataset,score,difference\none,other,cub200,R@1,much\n")
    (tmp_path / "picture.csv").write_bytes(b"\xff\xfe\x00")
    for arguments, said in (
        (["bad.csv"], "bad.csv, line 2: difference: Input should be a valid decimal"),
        (["absent.csv"], "absent.csv: cannot be read (No such file or directory)"),
        (["picture.csv"], "picture.csv: not text in UTF-8"),
        (["--format", "pdf"], "'pdf' is not one of 'terminal', 'markdown'"),
    ):
        answer = say("claims", *arguments)
        assert answer.out == ""
        refused(answer, said)
