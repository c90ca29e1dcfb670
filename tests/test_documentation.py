"""README, CONTRIBUTING and docs/: links, tables, figures and pictures are compared with the code and the records."""

import html
import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from benchmarks.kept_tables import pages_with_tables, with_tables
from protocols.datasets.dataset_registry import DATASETS, DatasetEntry
from protocols.datasets.glyphs import ALPHABET
from protocols.evaluation.evaluate_run import evaluate_run
from protocols.evaluation.evaluate_run import test_data as data_for_testing
from protocols.jobs import EvaluateJob
from protocols.training.train_fold import train_fold
from reproduce.commands.new import write_method
from reproduce.config.open_method import load_card
from reproduce.errors import InputError
from reproduce.run.session import open_session
from reproduce.storage import storage_paths
from results.spec.data_choice import EMBEDDED
from results.store.experiment_results import MeasuredExperiment
from tests.support.documentation import (
    PAGES,
    README,
    ROOT,
    between,
    blocks,
    files_to_save,
    languages,
    local_links,
    repository_paths,
    text_of,
)
from tests.support.experiment_files import load_experiment
from tests.support.published_files import covered

# What make targets write into the checkout.
BUILT = {"docs/_build/html"}
ROOMS = ("losses", "results", "protocols", "reports", "reproduce")

# Blocks of these languages are run or saved; of `text` and of MyST's directives nothing can be run.
CHECKED = {"bash", "python", "yaml"}
DIRECTIVES = {"text", "{toctree}", "{eval-rst}", "{include}"}


def test_every_block_of_a_page_is_of_a_kind_that_is_checked() -> None:
    for page in PAGES:
        assert languages(page) <= CHECKED | DIRECTIVES, page
        saved = [name for name in files_to_save(page) if name.endswith(".yaml")]
        assert len(saved) == len(blocks(page, "yaml")), f"{page}: a YAML block needs the comment <!-- file: NAME -->"
        assert text_of(page).count("\n```") % 2 == 0, f"{page}: a block does not end"


def test_the_files_that_the_pages_name_exist() -> None:
    named = {(page.name, str(target)) for page in PAGES for target in local_links(page) if not target.exists()}
    named |= {(page.name, path) for page in PAGES for path in repository_paths(page) if not list(ROOT.glob(path))}
    assert {(page, path) for page, path in named if path not in BUILT} == set()


@pytest.mark.usefixtures("forked_processes")
def test_the_error_on_the_page_about_own_losses_is_that_of_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    card, _ = write_method("my_loss", Path(), "proxy")
    card.write_text(card.read_text().replace("scale: 16.0", "scael: 16.0"))
    with pytest.raises(InputError) as caught:
        load_card("my_loss.yaml")
    page = text_of(ROOT / "docs" / "own_loss.md")
    assert f"\nerror: {caught.value}\n" in page


def test_tables_are_drawn_from_the_kept_records() -> None:
    assert README in pages_with_tables()
    for page in pages_with_tables():
        assert with_tables(text_of(page)) == text_of(page), page
    assert "<!-- table: quickstart -->" in text_of(README)


def test_the_listed_methods_are_those_of_the_cards() -> None:
    named = re.findall(
        r"^\| `(\w+)` \|", between(ROOT / "docs" / "methods.md", "methods", "end of methods"), flags=re.MULTILINE
    )
    assert sorted(named) == sorted(path.stem for path in (ROOT / "reproduce" / "methods").glob("*.yaml"))


def test_every_printed_method_that_the_suite_lacks_is_listed_with_what_it_needs() -> None:
    lacking = {row.label for row in covered() if row.status == "method not in the suite"}
    needs = text_of(ROOT / "docs" / "methods.md").split("| method | what it needs |")[1]
    listed = {
        name for row in re.findall(r"^\| ([^|`-][^|]*) \|", needs, flags=re.MULTILINE) for name in row.split(", ")
    }
    assert listed == lacking


def test_the_datasets_of_the_docs_are_those_of_the_registry() -> None:
    rows = between(ROOT / "docs" / "datasets.md", "datasets", "end of datasets").splitlines()[2:]
    assert rows == [dataset_row(name, entry) for name, entry in DATASETS.items()]


def test_the_floor_plan_names_every_folder() -> None:
    plan = text_of(ROOT / "docs" / "architecture.md").split("## The floor plan")[1].split("\n## ")[0]
    folders = {path.parent for room in ROOMS for path in (ROOT / room).glob("*/*") if path.suffix in (".py", ".yaml")}
    named = set(re.findall(r"^\| `(\S+)/` \|", plan, flags=re.MULTILINE))
    assert {str(folder.relative_to(ROOT)) for folder in folders} <= named


def test_the_picture_of_the_rooms_has_the_arrows_of_the_code() -> None:
    imports = {
        (room, other)
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for other in re.findall(rf"^\s*(?:from|import) ({'|'.join(ROOMS)})\b", path.read_text(), flags=re.MULTILINE)
        if other != room
    }
    drawn = re.findall(r"^\s*(\w+) -> (\w+)$", (ROOT / "docs/images/rooms.dot").read_text(), flags=re.MULTILINE)
    assert set(drawn) == imports


@pytest.mark.parametrize("name", ["rooms", "way_of_a_number"])
def test_the_drawings_are_those_of_their_sources(name: str) -> None:
    """Without Graphviz: every label and every arrow of the source is in the drawing, and no other arrow."""
    source = (ROOT / "docs" / "images" / f"{name}.dot").read_text()
    drawing = html.unescape((ROOT / "docs" / "images" / f"{name}.svg").read_text())
    for label in re.findall(r'label = "([^"]+)"', source):
        assert all(f">{line}<" in drawing for line in label.split("\\n")), label
    chains = [line.split(" [")[0].split("->") for line in source.splitlines() if "->" in line and "label" not in line]
    arrows = {f"{a.strip()}->{b.strip()}" for chain in chains for a, b in pairwise(chain)}
    assert arrows == set(re.findall(r"<title>(\w+->\w+)</title>", drawing)), "call `make diagrams`"


def test_a_kept_run_can_be_made_again(tmp_path: Path) -> None:
    session = open_session(
        "quickstart",
        load_experiment("quickstart", {}),
        storage_paths(str(tmp_path / "store.sqlite")),
        None,
    )
    record = next(record for record in kept().records if (record.method, record.run) == ("proxy_anchor", 0))
    method = session.studies()["proxy_anchor"].method.at(record.hyperparameters)
    today = session.setup.fold_specs(method, "reproduction", 0)
    specs = tuple(spec.changed(training_version=record.training_version) for spec in today)
    if session.setup.dataset.fingerprint == record.data_fingerprint:
        assert tuple(spec.fingerprint for spec in specs) == record.fold_fingerprints
    torch.set_num_threads(1)
    trained = train_fold(specs[0], session.setup.training_data(specs[0]))
    job = EvaluateJob((trained.result,), record.protocol, record.hyperparameters, 0, record.seed)
    again = evaluate_run(job, [trained.weights], data_for_testing(session.setup.dataset, session.setup.split))
    # Twice the half width of the row's interval: other machines and library builds round differently.
    assert again.separated.map_at_r == pytest.approx(record.fold_scores[0].map_at_r, abs=0.03)


def kept() -> MeasuredExperiment:
    return MeasuredExperiment.kept("quickstart")


def dataset_row(name: str, entry: DatasetEntry) -> str:
    """A row of the docs' table of datasets."""
    what = re.split(r";|: one folder|: features\.npy", entry.description)[0]
    if entry.publication is None:
        classes = str(len(ALPHABET)) if name == "glyphs" else ""
        return f"| `{name}` | {what} | {classes} |  | {'embedded' if name in EMBEDDED else 'your own'} |"
    counts = entry.publication
    return f"| `{name}` | {what} | {counts.classes:,} | {counts.images:,} | publisher |"
