"""Running the command line from tests: in this process, or as a person does."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reproduce.commands import cli
from reproduce.errors import InputError

ROOT = Path(__file__).resolve().parents[2]

TINY = """\
title: A tiny experiment
dataset: {name: glyphs}
methods: [untrained, contrastive]
trunk: {name: small_conv, weights: random}
embedding_size: 16
images: {resize: null, crop: 32, area: [0.6, 1.0], ratio: [0.9, 1.1], flip: false}
training:
  batch_size: 16
  iterations_per_epoch: 5
  max_epochs: 2
  validate_every: 1
  patience: 3
  optimizer: {name: Adam, lr: 1.0e-3, weight_decay: 1.0e-4, arguments: {}}
search: {trials: 2}
reproductions: 1
folds: 2
seed: 3
"""

_ALL = """
import contextlib, io, json, sys
from reproduce.commands import cli
answers = []
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    code, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
    answers.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(answers))
"""


# Drawing a page takes longer than a tiny experiment.
_WITHOUT_PAGE = """
from reproduce import interrupts
interrupts.install()
import reproduce.outputs.page as page
page.page_or_reason = lambda *_: ["page: not drawn"]
from reproduce.__main__ import main
main()
"""


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    def done(self) -> "Answer":
        """The answer of a command that has done what was asked."""
        assert self.code == 0, self
        return self


def refused(answer: Answer, *words: str) -> str:
    """The one line with which a command refuses; these words are in it."""
    assert answer.code == 2, answer
    (line,) = answer.err.splitlines()
    assert line.startswith("error: ")
    assert all(word in line for word in words), line
    return line


@contextmanager
def one_line(*words: str) -> Iterator[None]:
    """What is called in the block refuses its input in one line; these words are in it."""
    with pytest.raises(InputError) as error:
        yield
    said = str(error.value)
    assert "\n" not in said
    assert all(word in said for word in words), said


def score_in(answer: Answer, metric: str) -> float:
    """A score that `evaluate` has printed, in percent."""
    assert (answer.code, answer.err) == (0, ""), answer.err
    found = re.search(rf"{metric} +│ +([\d.]+)", answer.out)
    assert found, answer.out
    return float(found[1])


def ask(
    *arguments: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, page: bool = False
) -> Answer:
    """The command line in this process: exit code and what was printed. `page`: whether a run draws its page."""
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["reproduce", *arguments])
        if arguments[:1] == ("run",) and not page:
            patch.setattr("reproduce.outputs.page.page_or_reason", lambda *_: ["page: not drawn"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    printed = capsys.readouterr()
    return Answer(int(ended.value.code or 0), printed.out, printed.err)


def command(*arguments: str, page: bool = False) -> list[str]:
    """The words that start the command line in a process. `page`: whether a run draws its page."""
    without_page = arguments[:1] == ("run",) and not page
    return [sys.executable, *(["-c", _WITHOUT_PAGE] if without_page else ["-m", "reproduce"]), *arguments]


def interruptible(arguments: list[str]) -> list[str]:
    """A command that Ctrl-C stops, also where the tests themselves ignore it (`nohup`, a CI's job in the background).

    A process inherits from its parent that a signal is ignored, and Python then leaves it so.
    """
    code = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", code, *arguments]


def environment() -> dict[str, str]:
    """That of a person in the checkout, whatever is installed, with the packages that the tests are run with."""
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    places = [str(ROOT), *(str(ROOT / place) for place in given)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}


def reproduce(folder: Path, *arguments: str, page: bool = False) -> Answer:
    """`python -m reproduce` in a folder. `page`: whether a run draws its page."""
    done = subprocess.run(
        command(*arguments, page=page), cwd=folder, env=environment(), capture_output=True, text=True, timeout=300
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def reproduce_all(folder: Path, *commands: Sequence[str], before: str = "", **options: Any) -> list[Answer]:
    """Commands in a folder, one after another in one process, which runs the code `before` first."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", before + _ALL, json.dumps(commands)],
        **{"cwd": folder, "env": environment(), "text": True, "timeout": 300, "check": True, **options},
        stdout=subprocess.PIPE,
    )
    return [Answer(*answer) for answer in json.loads(done.stdout)]


def refusing(*packages: str) -> str:
    """Code after which imports of packages fail, as on a machine without them."""
    return f"""
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {packages}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")
sys.meta_path.insert(0, Absent())
"""
