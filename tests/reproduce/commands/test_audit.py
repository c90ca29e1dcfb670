"""`reproduce audit`: files and standard input, what is said first, pages and files, and one line for what is wrong."""

import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

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
    assert block("power") in " ".join(answer.out.split())


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
    assert written.out.splitlines()[1:] == ["out/cub/index.html", "out/cars/index.html", "out/board/index.html"]
    page = (tmp_path / "out" / "cub" / "index.html").read_text()
    assert "A beats B by 20.0" in page
    assert "Protocol and settings" not in page
    names = {str(path.relative_to(tmp_path / "out" / "cub")) for path in (tmp_path / "out" / "cub").rglob("*.*")}
    assert {"results.csv", "differences.tex", "figures/intervals.svg"} <= names
    everything = json.loads(say("audit", "both.csv", "--format", "json").out)
    assert [one["title"] for one in everything["answers"]] == ["cub", "cars"]
    assert everything["board"]["pairs"][0]["verdict"] == "hint: same on both"


def test_options_choose_score_comparison_margin_and_deviation(say, tmp_path):
    (tmp_path / "one.csv").write_text("net,lr,R@1\nA,0.1,69.7\nB,0.1,67.8\nC,0.1,65.7\n")
    answer = say("audit", "one.csv", "--method", "net", "--score", "R@1", "--compare", "A", "--assume-deviation", "0.5")
    assert answer.code == 0, answer.err
    assert "A beats every other method, the next, B, by 1.9" in answer.out
    assert "The tests take the given 0.50 points as the deviation between searches" in answer.out
    assert "name one with --score: lr, R@1" in say("audit", "one.csv", "--method", "net").err
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
