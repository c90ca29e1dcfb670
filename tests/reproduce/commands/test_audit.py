"""`reproduce audit`: files and standard input, what is said first, pages and files, and one line for what is wrong."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import optuna
import pandas as pd
import pytest
from jsonschema import Draft7Validator, FormatChecker
from scipy import stats

from reports.headline import headline
from reproduce.outputs.evaleval import evaleval_records, table_of_records
from results.answer.audit import audit
from results.findings.experiment import answer_of
from results.reading.scores_table import Reading
from results.store.experiment_results import MeasuredExperiment
from tests.support.command_line import refused
from tests.support.documentation import README, ROOT, between, text_of

PAGE = ROOT / "docs" / "audit.md"
TABLE = ROOT / "docs" / "prototree.csv"
DATASETS = "method,task,seed,map_at_r\n" + "".join(
    f"{method},{task},{seed},{base + 0.01 * seed}\n"
    for task, shift in (("cub", 0.1), ("cars", 0.2))
    for method, base in (("A", 0.5 + shift), ("B", 0.3 + shift))
    for seed in range(3)
)


def block(name):
    return between(PAGE, f"audit: {name}", "end of audit").removeprefix("```text\n").removesuffix("\n```")


def test_the_example_of_the_documentation_is_what_the_command_says(say, tmp_path):
    assert TABLE.read_text() == block("file") + "\n"
    answer = say("audit", str(TABLE)).done()
    assert answer.out.startswith(block("answer") + "\n")
    assert block("answer") in text_of(README)
    assert "150 epochs over 100 epochs (3.1) takes 25 runs." in " ".join(answer.out.split())


AUDIT_TABLES = ROOT / "tests" / "support" / "audit_tables"


@pytest.mark.parametrize(
    ("name", "table", "options"),
    [
        ("paired", "paired.csv", ("--paired", "seed")),
        ("folds", "cv10x10.csv", ()),
        ("datasets", "demsar.csv", ()),
        ("unknown n", "means_without_n.csv", ()),
    ],
)
def test_every_table_of_the_documentation_is_answered_as_it_says(say, tmp_path, name, table, options):
    (tmp_path / table).write_text((AUDIT_TABLES / table).read_text())
    answered = say("audit", table, *options).out.splitlines()
    assert [line for line in answered if line in block(name).splitlines()] == block(name).splitlines()


def recipe(name):
    return between(PAGE, f"audit: {name}", "end of audit").removeprefix("```python\n").removesuffix("\n```")


def made(name, **known):
    exec(recipe(name), known)
    return known


def test_what_mlflow_returns_is_read_as_it_is():
    rng = np.random.default_rng(0)
    runs = [
        {
            "run_id": f"{rng.integers(1 << 60):x}",
            "experiment_id": "1",
            "status": status,
            "artifact_uri": f"file:///mlruns/1/{loss}{seed}",
            "start_time": pd.Timestamp("2026-01-01") + pd.Timedelta(hours=seed),
            "metrics.recall": 0.6 + rng.random() / 10,
            "metrics.loss": rng.random(),
            "params.loss": loss,
            "params.seed": str(seed),
            "params.lr": "0.1",
            "tags.mlflow.user": "me",
            "tags.mlflow.runName": f"run-{rng.integers(1000)}",
        }
        for loss in ("triplet", "arcface")
        for seed, status in enumerate(("FINISHED", "FINISHED", "FAILED"))
    ]
    (found,) = audit(pd.DataFrame(runs)).answers.values()
    assert found.question.score == "metrics.recall"
    assert {key: own.n for key, own in found.values.items()} == {"triplet": 2, "arcface": 2}


def test_the_lines_of_pandas_make_tables_of_other_tools(tmp_path):
    for loss in ("triplet", "arcface"):
        for seed in range(2):
            folder = tmp_path / "logs" / f"{loss}_{seed}"
            folder.mkdir(parents=True)
            (folder / "metrics.csv").write_text("epoch,val_acc,test_acc\n0,0.5,\n1,0.6,\n1,,0.7\n")
    (found,) = audit(made("lightning", logs=tmp_path / "logs", pd=pd)["table"]).answers.values()
    assert [own.units for own in found.values.values()] == [(0.7, 0.7)] * 2
    studies = {(m, n): optuna.create_study(direction="maximize") for m in "AB" for n in range(3)}
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for study in studies.values():
        for number in range(3):
            trial = study.ask({"lr": optuna.distributions.FloatDistribution(0, 1)})
            trial.set_user_attr("test", 0.5 + number / 10)
            study.tell(trial, 1 - number / 10)
    known = {"studies": studies, "pd": pd, "audit": audit, "Reading": Reading}
    (found,) = made("optuna", **known)["found"].answers.values()
    assert found.question.unit == "search"
    assert [own.units for own in found.values.values()] == [(0.5, 0.5, 0.5)] * 2, "the trials of the best value"
    rows = [
        {
            "args": {"algorithm": a, "dataset": "PACS", "trial_seed": t, "hparams_seed": h},
            "val_acc": v,
            "test_acc": 1 - v,
        }
        for a in ("ERM", "IRM")
        for t in range(3)
        for h, v in enumerate((0.3, 0.9, 0.6))
    ]
    pd.DataFrame(rows).to_json(tmp_path / "results.jsonl", orient="records", lines=True)
    (found,) = made("domainbed", file=tmp_path / "results.jsonl", **known)["found"].answers.values()
    assert [own.units for own in found.values.values()] == [pytest.approx((0.1, 0.1, 0.1))] * 2


RECORD = json.loads((ROOT / "tests" / "support" / "every_eval_ever" / "eval.schema.json").read_text(encoding="utf-8"))
"""The published schema, as the wheel every-eval-ever 0.2.3rc1 has it (MIT licence, beside it)."""

NUMBERS = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?")


def digits(number):
    return len(number.lstrip("-0.").partition("e")[0].replace(".", "").lstrip("0"))


@pytest.mark.parametrize("options", [(), ("--lower-is-better",), ("--scale", "points")])
def test_records_of_every_eval_ever_are_written_and_read_back(say, tmp_path, options):
    assert say("audit", str(TABLE), "--to", "out", *options).code == 0
    records = [json.loads(line) for line in (tmp_path / "out" / "evaleval.jsonl").read_text().splitlines()]
    Draft7Validator.check_schema(RECORD)
    for record in records:
        Draft7Validator(RECORD, format_checker=FormatChecker()).validate(record)
        assert record["schema_version"] == "0.2.1"
    assert (
        max(map(digits, NUMBERS.findall(json.dumps([r["evaluation_results"][0]["score_details"] for r in records]))))
        <= 12
    )
    details = records[0]["evaluation_results"][0]["score_details"]
    uncertainty = details["uncertainty"]
    assert uncertainty["standard_error"]["value"] == pytest.approx(uncertainty["standard_deviation"] / 5**0.5)
    interval = uncertainty["confidence_interval"]
    assert interval["lower"] < details["score"] < interval["upper"]
    back = json.loads(say("audit", "out/evaleval.jsonl", "--format", "json").out)
    first = json.loads(say("audit", str(TABLE), "--format", "json", *options).out)
    (found,), (own,) = back["answers"], first["answers"]
    assert found["unit"] == "summary"
    assert [row["mean"] for row in found["methods"]] == pytest.approx([row["mean"] for row in own["methods"]])
    assert ("lower is better" in back["read"]) == ("--lower-is-better" in options)
    expected = stats.ttest_ind(*(rows["accuracy"] for _, rows in pd.read_csv(TABLE).groupby("method")), equal_var=False)
    assert found["pairs"][0]["p"] == pytest.approx(expected.pvalue)
    for number, record in enumerate(records):
        (tmp_path / "records" / str(number)).mkdir(parents=True)
        (tmp_path / "records" / str(number) / "a.json").write_text(json.dumps(record, indent=1))
    again = json.loads(say("audit", "records", "--format", "json").out)
    assert again["answers"][0]["pairs"] == found["pairs"]


def test_records_of_every_eval_ever_keep_what_held_a_method_up():
    found = answer_of(MeasuredExperiment.kept("reality_check_glyphs"))
    records = evaleval_records(found, "glyphs", "reality_check_glyphs", 0)
    for record in records:
        Draft7Validator(RECORD, format_checker=FormatChecker()).validate(record)
    (back,) = audit(table_of_records(records, "records")).answers.values()
    held_up = {key: own.planned.extents for key, own in found.values.items()}
    assert {key: own.planned.extents for key, own in back.values.items()} == held_up
    assert (held_up["recall_at_k"], len(held_up["hist"])) == (["after 400 steps"], 2)
    assert back.claims == found.claims == set()
    assert headline(back).startswith("No verdict about methods: only after 400 steps")
    named, still_open = 3, sum(pair.verdict is None for pair in back.pairs)
    assert 0 < still_open < len(back.pairs)
    more = f"{still_open - named} more pairs are open"
    assert any(more in one.text for one in back.findings), "runs of equal length show no more of one that is held up"


def test_records_of_every_eval_ever_of_an_unfinished_experiment_claim_nothing():
    whole = MeasuredExperiment.kept("quickstart")
    found = answer_of(replace(whole, records=[run for run in whole.records if run.method != "untrained"]))
    assert found.interim
    (back,) = audit(table_of_records(evaleval_records(found, "glyphs", "quickstart", 0), "records")).answers.values()
    assert headline(back).startswith("No verdict about methods, but: ")
    assert "before all searches and runs are there" in headline(back)


@pytest.mark.parametrize(
    "names",
    [
        ("a/b", "a_b"),
        ("CUB", "cub"),
        ("board", "cars"),
        ("figures", "cars"),
        ("..", "cars"),
        ("é", "e\u0301"),
        ("数", "デ"),
    ],
)
def test_every_dataset_has_a_page_of_its_own_within_the_folder(say, tmp_path, names):
    rows = [
        f'{method},"{name}",{seed},{60 + 5 * at + shift + seed / 7:.2f}'
        for at, name in enumerate(names)
        for method, shift in (("x", at), ("y", 0.5))
        for seed in range(3)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["method,dataset,seed,accuracy", *rows]))
    written = say("audit", "t.csv", "--to", "out").done()
    pages = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("index.html")}
    assert len(pages) == 4
    assert {line for line in written.out.splitlines() if line.endswith("index.html")} == pages
    assert all(page.startswith("out/") for page in pages)


def test_a_second_audit_leaves_nothing_of_the_first_and_nothing_of_others(say, tmp_path):
    (tmp_path / "both.csv").write_text(DATASETS)
    say("audit", "both.csv", "--to", "out").done()
    (tmp_path / "out" / "cub" / "mine.txt").write_text("kept")
    (tmp_path / "one.csv").write_text("".join(line for line in DATASETS.splitlines(True) if ",cub," not in line))
    say("audit", "one.csv", "--to", "out").done()
    left = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert "cub/mine.txt" in left
    assert {name for name in left if name.startswith(("cub/", "cars/", "board/"))} == {"cub/mine.txt"}
    assert "index.html" in left


def test_a_dataset_that_lacks_the_compared_method_is_named_and_the_others_are_answered(say, tmp_path):
    rows = [line for line in DATASETS.splitlines() if not line.startswith("B,cub")]
    (tmp_path / "both.csv").write_text("\n".join(rows))
    answer = say("audit", "both.csv", "--compare", "B").done()
    assert "Not answered, since they lack B: cub." in answer.out
    assert "A beats B by 20.0" in answer.out


def test_many_datasets_fit_a_screen_and_their_files_have_every_number(say, tmp_path):
    rows = [
        f"{method},d{at:02d},{seed},{50 + at + shift + (seed * 7 + at) % 5 / 10:.2f}"
        for at in range(20)
        for method, shift in (("A", 1), ("B", 0), ("C", 0.1))
        for seed in range(3)
    ]
    (tmp_path / "many.csv").write_text("\n".join(["method,dataset,seed,accuracy", *rows]))
    say("audit", "many.csv", "--to", "out").done()
    board = tmp_path / "out" / "board"
    markdown = (board / "ranking.md").read_text()
    assert "| Method | can be the best on | mean rank | rank on all |" in markdown
    assert "Rank correlation" not in markdown
    assert len((board / "ranking.csv").read_text().splitlines()[0].split(",")) > 40
    assert "datasets above | below | open |" in (board / "pairs.md").read_text()


def test_of_many_datasets_the_terminal_shows_what_each_says_and_no_tables(say, tmp_path):
    rows = "".join(
        f"{method},task{task},{seed},{base + 0.01 * seed + 0.02 * task}\n"
        for task in range(7)
        for method, base in (("A", 0.5), ("B", 0.3))
        for seed in range(3)
    )
    (tmp_path / "many.csv").write_text(f"method,task,seed,map_at_r\n{rows}")
    lines = say("audit", "many.csv").done().out.splitlines()
    for task in range(7):
        assert sum(line.startswith(f"task{task}: A beats B by 20.0") for line in lines) == 1
    assert "The tables of 7 datasets: --to FOLDER; of one: --where." in lines
    assert not any("task3: is the difference real?" in line for line in lines)


def test_files_as_spreadsheets_and_archives_write_them_are_read(say, tmp_path):
    german = (AUDIT_TABLES / "german2.csv").read_text()
    (tmp_path / "german.csv").write_text(german)
    found = json.loads(say("audit", "german.csv", "--format", "json").out)
    assert found["answers"][0]["headline"].startswith("B beats A by 2.0 ± 0.8 points")
    (tmp_path / "thousands.csv").write_text("method;seed;accuracy\nA;1;1,234\nB;1;2,345\n")
    assert "row 2: '1,234' in 'accuracy' is no number" in say("audit", "thousands.csv").err
    (tmp_path / "scores.csv.gz").write_bytes(gzip.compress(TABLE.read_bytes()))
    assert say("audit", "scores.csv.gz").out.startswith("scores.csv.gz: 2 methods, 10 runs")
    (tmp_path / "broken.csv.gz").write_bytes(b"x")
    assert "is no text that gzip compressed" in say("audit", "broken.csv.gz").err
    (tmp_path / "lines.csv").write_text('method,note,accuracy\nA,"two\nlines",70\nB,x,none at all\n')
    assert "row 4: 'none at all' in 'accuracy' is no number" in say("audit", "lines.csv").err
    assert "--where epoch: write COLUMN=VALUE" in say("audit", "german.csv", "--where", "epoch").err


def test_means_of_an_unknown_number_of_runs_are_answered_on_the_terminal_the_page_and_in_json(say, tmp_path):
    lines = [
        f"{m},{d},{base + at}.5 ± 0.{at + 4}" for d, base in (("cub", 60), ("cars", 70)) for at, m in enumerate("ABC")
    ]
    (tmp_path / "means.csv").write_text("\n".join(["method,dataset,accuracy", *lines]), encoding="utf-8")
    shown = " ".join(say("audit", "means.csv").done().out.split())
    assert re.search("Nothing says how many runs are behind each mean. . of 3 pairs would differ if each ±", shown)
    assert "better if n ≥" in shown
    assert "beats" not in shown
    said = json.loads(say("audit", "means.csv", "--format", "json").out, parse_constant=pytest.fail)
    assert said["answers"][0]["unit"] == "uncounted summary"
    assert {pair["direction"] for pair in said["answers"][0]["pairs"]} == {"cannot tell"}
    assert all(2 <= pair["fewest"] <= 30 for pair in said["answers"][0]["pairs"])
    assert "board" not in said, "a board takes intervals"
    say("audit", "means.csv", "--to", "pages").done()
    page = (tmp_path / "pages" / "cub" / "index.html").read_text(encoding="utf-8")
    assert "Nothing says how many runs are behind each mean." in page
    assert "not known" in page
    records = (tmp_path / "pages" / "cub" / "evaleval.jsonl").read_text(encoding="utf-8")
    assert "num_samples" not in records


def test_sentences_are_printed_for_a_paper(say):
    text = say("audit", str(TABLE), "--what", "sentences").done().out
    assert text == (
        "150 epochs and 100 epochs are not shown to differ in accuracy: the difference is 3.12 points (82.38 against "
        "79.26 %; 95 % interval −2.30 to 8.54; p = 0.295, adjusted; n = 5 runs each; t test with 8 degrees of "
        "freedom; Welch's t test of this pair alone: p = 0.168).\n"
        'P values are multiplied by 4/3, since three quarters of the level is spent on "better". '
        "A method's variance is the larger of its own and that pooled over methods, times 1 + 1/(S − 1)² for S runs.\n"
    )
    latex = say("audit", str(TABLE), "--what", "sentences", "--format", "latex").done().out
    assert r"95 \% interval $-2.30$ to 8.54; $p = 0.295$" in latex


def test_every_kind_of_file_and_standard_input_give_one_answer(say, tmp_path, monkeypatch):
    table = pd.read_csv(TABLE)
    texts = {
        "scores.csv": TABLE.read_text(),
        "scores.tsv": TABLE.read_text().replace(",", "\t"),
        "semicolons.csv": "\ufeff" + TABLE.read_text().replace(",", ";") + "\n\n",
        "scores.jsonl": table.to_json(orient="records", lines=True),
        "scores.json": table.to_json(orient="records"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    table.to_parquet(tmp_path / "scores.parquet")
    answers = [json.loads(say("audit", name, "--format", "json").out) for name in [*texts, "scores.parquet"]]
    monkeypatch.setattr(sys, "stdin", io.StringIO(TABLE.read_text()))
    answers.append(json.loads(say("audit", "-", "--format", "json").out))
    assert answers[-1]["read"].startswith("standard input: 2 methods, 10 runs")
    for one in answers:
        (found,) = one["answers"]
        assert found["headline"].startswith("Cannot tell yet: 150 epochs 82.4")
        assert found["pairs"][0]["difference"] == pytest.approx(0.0312)
        assert [row["n"] for row in found["methods"]] == [5, 5]


def test_several_datasets_get_an_answer_each_and_a_board(say, tmp_path):
    (tmp_path / "both.csv").write_text(DATASETS)
    answer = say("audit", "both.csv")
    assert answer.out.count("A beats B by 20.0") == 4, "headline and line of each"
    assert "2 methods on 2 datasets: cub, cars" in answer.out
    assert "Which differences hold on all datasets?" in answer.out
    written = say("audit", "both.csv", "--to", "out")
    pages = [f"out/{name}index.html" for name in ("cub/", "cars/", "board/", "")]
    assert written.out.splitlines()[1:] == pages
    index = (tmp_path / "out" / "index.html").read_text()
    assert '<a href="cub/index.html">cub</a>: A beats B by 20.0' in index
    page = (tmp_path / "out" / "cub" / "index.html").read_text()
    assert "A beats B by 20.0" in page
    assert "Protocol and settings" not in page
    names = {str(path.relative_to(tmp_path / "out" / "cub")) for path in (tmp_path / "out" / "cub").rglob("*.*")}
    assert {"results.csv", "differences.tex", "figures/intervals.svg"} <= names
    everything = json.loads(say("audit", "both.csv", "--format", "json").out)
    assert [one["title"] for one in everything["answers"]] == ["cub", "cars"]
    assert everything["board"]["pairs"][0]["verdict"] == "hint: same on both"


TWO_SCORES = "method,seed,accuracy,f1\n" + "".join(
    f"{method},{seed},{accuracy + seed / 7:.2f},{f1 + seed / 3:.2f}\n"
    for method, accuracy, f1 in (("A", 71, 60), ("B", 74, 60.1))
    for seed in range(3)
)


def test_each_of_several_scores_has_a_family_of_its_own_and_what_it_has_alone(say, tmp_path):
    (tmp_path / "two.csv").write_text(TWO_SCORES)
    families = "Each score is a family of its own: accuracy at 5 % and f1 at 5 %."
    both, alone = (
        json.loads(say("audit", "two.csv", "--score", of, "--format", "json").out) for of in ("accuracy,F1", "f1")
    )
    assert both["families"].startswith(families)
    assert both["families"].endswith("up to 10 %.")
    assert list(both["scores"]) == ["accuracy", "f1"]
    assert both["scores"]["f1"]["answers"] == alone["answers"]
    assert (both["scores"]["f1"]["columns_left_out"], [*alone["columns_left_out"]]) == ({}, ["accuracy"])
    said = say("audit", "two.csv", "--score", "accuracy,f1").done().out
    assert said.startswith(families)
    assert said.index("B beats A by 3.0") < said.index("Cannot tell yet: B 60.4, A 60.3")
    written = say("audit", "two.csv", "--score", "accuracy,f1", "--to", "out").done()
    assert written.out.splitlines()[3:] == [f"out/{name}index.html" for name in ("accuracy/", "f1/", "")]
    pages = [(tmp_path / "out" / name / "index.html").read_text() for name in ("accuracy", "f1", ".")]
    assert all(families in page and "--score accuracy,f1" in page for page in pages)
    assert '<a href="accuracy/index.html">accuracy</a>: B beats A by 3.0' in pages[-1]


def test_questions_of_several_scores_are_asked_at_once_but_direction_is_that_of_one(say, tmp_path):
    (tmp_path / "two.csv").write_text(TWO_SCORES.replace("f1", "error_gain").replace("method", "net").replace("A", "1"))
    (tmp_path / "lr.csv").write_text(TWO_SCORES.replace("seed", "lr"))
    asked = say("audit", "lr.csv", "--score", "accuracy,f1").err
    assert asked.endswith("reproduce audit lr.csv --method method+lr --score accuracy,f1\n")
    asked = say("audit", "two.csv", "--score", "accuracy,error_gain").err
    assert "direction and scale hold for all scores of a command" in asked
    assert "--score error_gain --lower-is-better" in asked
    refused(say("audit", "two.csv", "--score", "accuracy,f2"), "there is no score 'f2'")


def test_options_choose_score_comparison_margin_and_deviation(say, tmp_path):
    (tmp_path / "one.csv").write_text("net,lr,R@1\nA,0.1,69.7\nB,0.1,67.8\nC,0.1,65.7\n")
    answer = say("audit", "one.csv", "--method", "net", "--score", "R@1", "--compare", "A", "--assume-deviation", "0.5")
    assert answer.code == 0, answer.err
    assert "A beats every other method, the next, B, by 1.9" in answer.out
    assert "The tests take the given 0.5 points as the deviation between searches" in answer.out
    assert say("audit", "one.csv", "--method", "net").out.startswith("one.csv: 3 methods, 3 runs"), "lr is no score"
    rows = list(csv_rows(say("audit", "one.csv", "--method", "net", "--score", "R@1", "--format", "csv").out))
    assert [row["mean"] for row in rows] == pytest.approx([0.697, 0.678, 0.657])


def csv_rows(text):
    return pd.read_csv(io.StringIO(text)).to_dict("records")


@pytest.mark.parametrize(
    ("name", "text", "options", "said"),
    [
        ("a.csv", "method,x\nA,b\n", (), "a.csv: no column of numbers is a score; the columns are method, x"),
        ("a.csv", "method,x\nA,1,2\n", (), "a.csv: is no table ("),
        ("a.csv", "", (), "a.csv: is no table ("),
        ("a.jsonl", '{"method": "A"}\n{"method\n', (), "a.jsonl: row 2: is no JSON ("),
        ("a.json", "[1, 2]", (), "a.json: row 1: is no object with the names of the columns"),
        ("a.parquet", "x", (), "a.parquet: is no Parquet file"),
        ("a.xlsx", "x", (), "a.xlsx: a spreadsheet; save the sheet as CSV"),
        ("a.csv", "method,x\nA,50\nA,101\n", (), "a.csv: row 3: 101 in 'x' is not within 0 and 100; if the scores"),
        ("a.csv", "method,x\nA,50\nB,51\n", ("--compare", "C"), "compare 'C': use all, best, or one of A, B"),
        ("a.csv", "method,x\nA,50\n", ("--assume-deviation", "0"), "--assume-deviation: give a number above 0"),
    ],
)
def test_a_bad_file_or_option_is_one_line(say, tmp_path, name, text, options, said):
    (tmp_path / name).write_text(text)
    answer = say("audit", name, *options)
    assert answer.out == ""
    refused(answer, f"error: {said}" if said.startswith(("a.", "--")) else said)
    missing = say("audit", "none.csv")
    assert missing.err == "error: none.csv: cannot be read (No such file or directory)\n"


def test_sixty_methods_with_ten_thousand_rows_take_seconds_and_little_memory(tmp_path):
    noise = np.random.default_rng(0)
    rows = [(f"m{n % 60}", n // 600, n // 60, 60 + n % 60 / 20 + noise.normal()) for n in range(10_000)]
    pd.DataFrame(rows, columns=["method", "search", "seed", "accuracy"]).to_csv(tmp_path / "large.csv", index=False)
    code = (
        "import pathlib, re, sys, time; sys.argv = ['reproduce', 'audit', 'large.csv']\n"
        "from reproduce.commands.cli import main\n"
        # The peak of `getrusage` begins at the size of the process that starts this one.
        "try:\n    main()\nfinally:\n    status = pathlib.Path('/proc/self/status').read_text()\n"
        "    peak = re.search(r'VmHWM:\\s+(\\d+)', status)\n    print(time.process_time(), peak[1], file=sys.stderr)"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(
        run, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.stdout.startswith("large.csv: 60 methods, 10,000 runs, "), done.stderr
    seconds, kilobytes = map(float, done.stderr.split())
    assert seconds < 60
    assert kilobytes < 500_000


def test_answers_are_imported_without_torch_store_or_command_line():
    code = (
        "import sys; from results.answer import Answer, Question, answer;"
        "print([name for name in ('torch', 'sqlalchemy', 'typer', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\[\]\n", done.stdout)
