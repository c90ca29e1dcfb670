"""Values of an experiment pass few files on their way from YAML to the page: a new one does not touch the whole house.

Between these files a value travels inside typed records that nobody opens.
"""

import sys
from pathlib import Path
from types import FrameType

import pytest

from tests.support.command_line import ROOT, TINY, ask

# By value: what it is, and the most files in which it may be a value of its own, in a variable, dictionary or list.
FOLLOWED: dict[float, tuple[str, int]] = {
    0.12345678: ("hyperparameter", 20),
    997: ("embedding size", 24),
    987654321: ("seed", 20),
}
CARD = """\
key: probe
title: Probe
source: A card for this test.
loss: {name: TripletMarginLoss, arguments: {margin: 0.3}}
search:
  loss.margin: {scale: choice, choices: [0.12345678, 0.12345678]}
"""
EXPERIMENT = (
    TINY.replace("[untrained, contrastive]", "[probe.yaml]")
    .replace("embedding_size: 16", "embedding_size: 997")
    .replace("seed: 3", "seed: 987654321")
)


class Follower:
    """A profiler that notes the suite's files in whose frames the values are."""

    def __init__(self) -> None:
        self.files: dict[float, set[str]] = {value: set() for value in FOLLOWED}
        # By the file of the code; None for files that need not be looked at, which are most and must cost little.
        self._names: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, result: object) -> None:
        file = frame.f_code.co_filename
        if file not in self._names:
            name = str(Path(file).relative_to(ROOT)) if file.startswith(f"{ROOT}/") else ".venv"
            self._names[file] = None if name.startswith((".venv", "tests")) else name
        watched = self._names[file]
        if watched is None or event not in ("call", "return"):
            return
        for value in list(frame.f_locals.values()):
            self._note(watched, value)
        self._note(watched, result)

    def _note(self, file: str, value: object) -> None:
        if type(value) in (int, float):
            if value in self.files:
                self.files[value].add(file)
        elif isinstance(value, dict):
            for part in list(value.values()):
                self._note(file, part)
        elif isinstance(value, list | tuple):
            for part in value:
                if type(part) in (int, float) and part in self.files:
                    self.files[part].add(file)


@pytest.mark.long
def test_values_pass_few_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "probe.yaml").write_text(CARD)
    (tmp_path / "tiny.yaml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    follower, before = Follower(), sys.getprofile()
    brief = ("--workers", "1", "--device", "cpu", "--trials", "1", "--folds", "1")
    sys.setprofile(follower)
    try:
        ran = ask("run", "tiny.yaml", *brief, capsys=capsys, monkeypatch=monkeypatch)
        drawn = ask("table", "tiny", "--what", "hyperparameters", capsys=capsys, monkeypatch=monkeypatch)
    finally:
        sys.setprofile(before)
    assert (ran.code, drawn.code) == (0, 0), ran.err + drawn.err
    assert "0.1235" in drawn.out
    for value, (name, most) in FOLLOWED.items():
        files = sorted(follower.files[value])
        assert 0 < len(files) <= most, f"{name}: {len(files)} files, {files}"
