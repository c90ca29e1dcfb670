"""A new setting of trainings is a field of `Conditions` with a default (CONTRIBUTING.md); old stores read as before."""

import shutil
from pathlib import Path

import pytest

from results.store.database import Database
from tests.support.command_line import reproduce_all
from tests.support.tiny_run import GlyphRun

PLAIN, OPTIONAL = "    blur: float = 0.0\n", "    blur: float = optional(0.0)\n"

# The module gets the field as its source would have it.
_ADD = """
import importlib.util, sys
from pathlib import Path
name = "results.spec.conditions"
found = importlib.util.find_spec(name)
module = sys.modules[name] = importlib.util.module_from_spec(found)
source, last = Path(found.origin).read_text(), '    normalization: Literal["unit", "ball"] | None = None\\n'
assert last in source
source = source.replace(last, last + FIELD).replace("Record, flat", "Record, flat, optional")
exec(compile(source, found.origin, "exec"), vars(module))
import reproduce.outputs.page as page
page.page_or_reason = lambda *_: ["page: not drawn"]
"""


def said(folder: Path, field: str, *commands: str) -> list[str]:
    """What commands print where `Conditions` has a further field."""
    answers = reproduce_all(folder, *map(str.split, commands), before=_ADD.replace("FIELD", repr(field)))
    assert [answer.code for answer in answers] == [0] * len(commands), answers
    return [answer.out for answer in answers]


@pytest.fixture
def old(glyph_run: GlyphRun, tmp_path: Path) -> Path:
    """A folder with a finished run of today's suite."""
    return Path(shutil.copytree(glyph_run.folder, tmp_path / "old"))


def test_an_old_store_reads_as_before_under_a_new_setting(old: Path) -> None:
    reading = ("table tiny", "store check", "export runs --to exported")
    before = said(old, "", *reading)
    assert "Cut off while the validation score still rose" in before[0]
    assert "0 damaged, 0 missing, 0 foreign" in before[1]
    shutil.rmtree(old / "exported")
    assert said(old, PLAIN, *reading) == before


def test_a_run_finds_its_trainings_under_an_optional_setting_and_trains_for_another_value(old: Path) -> None:
    database = Database(old / "runs/store.sqlite")
    names = " UNION ".join(
        f"SELECT fingerprint FROM {table}" for table in ("trainings", "runs", "experiments", "studies")
    )
    before = {*map(tuple, database.rows(names))}
    said(old, OPTIONAL, "run tiny.yaml")
    assert {*map(tuple, database.rows(names))} == before
    (old / "tiny.yaml").write_text((old / "tiny.yaml").read_text() + "blur: 0.5\n")
    assert "16 trainings, 0 in the store" in said(old, OPTIONAL, "plan tiny.yaml")[0]
