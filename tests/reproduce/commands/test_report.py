"""`reproduce report` on a real run: without torch, from the store and the artifacts, and in a browser."""

import html
import re
import shlex
import shutil
import sqlite3

import pytest
import yaml

from reproduce.commands.options import Choices
from reproduce.outputs.page import histories, page_or_reason
from reproduce.outputs.rerun_commands import rerun_commands
from reproduce.storage import storage_paths
from results.spec.experiment_spec import Experiment
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from tests.support.command_line import TINY, ask, reproduce, torchless
from tests.support.experiment_files import load_experiment
from tests.support.sample_page import measured as sample
from tests.support.sample_records import some_run, some_summary

CHROMIUM = shutil.which("chromium")
SMALL = (
    TINY.replace("A tiny experiment", "A tiny <script>alert(1)</script> experiment")
    .replace("[untrained, contrastive]", "[contrastive, proxy_anchor]")
    .replace("reproductions: 1", "reproductions: 2")
    + "test_curves: true\n"
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a finished run of the experiment, and the output of the run."""
    folder = tmp_path_factory.mktemp("reported")
    (folder / "tiny.yaml").write_text(SMALL)
    answer = reproduce(folder, "run", "tiny.yaml", "--workers", "2", page=True)
    assert answer.code == 0, answer.err
    return folder, answer


@pytest.fixture
def here(finished, tmp_path):
    """A copy of the folder, which a test may damage."""
    return shutil.copytree(finished[0], tmp_path / "copy", symlinks=True)


@pytest.fixture
def say(here, capsys, monkeypatch):
    monkeypatch.chdir(here)
    return lambda *arguments: ask(*arguments, capsys=capsys, monkeypatch=monkeypatch)


def refused(answer) -> str:
    assert answer.code == 2
    (line,) = answer.err.splitlines()
    assert line.startswith("error: ")
    return line


def page_identity(page):
    return re.search(r"from experiment ([0-9a-f]{12})[0-9a-f]{20} of the store", page)[1]


def files_of(folder):
    """Files that links do not lead to."""
    return [path for path in folder.rglob("*") if path.is_file() and path.resolve() == path]


def whole_page(folder):
    return (folder / "runs" / "reports" / "tiny" / "index.html").read_text()


def test_the_last_line_of_a_run_names_its_page(finished):
    folder, answer = finished
    page = whole_page(folder)
    own = f"runs/reports/tiny-{page_identity(page)}/index.html"
    assert answer.out.splitlines()[-1] == f"page: {own}"
    assert (folder / own).read_text() == page
    assert "<script>alert" not in page
    assert "A tiny &lt;script&gt;" in page
    figures = {path.name for path in (folder / "runs" / "reports" / "tiny" / "figures").iterdir()}
    names = {"validation_curves", "spectrum", "tsne_proxies_proxy_anchor", "search_contrastive_history"}
    assert {f"{name}.{kind}" for name in names for kind in ("svg", "png")} <= figures
    for heading in ("Gain from peeking", "Hyperparameters found", "Where the uncertainty comes from"):
        assert heading in page
    said = re.search(r'class="headline">(.*?)</h2>', page)[1]
    assert html.unescape(said) in answer.out.splitlines()


def test_a_run_that_is_called_again_keeps_its_page(here):
    page = (here / "runs" / "reports" / "tiny" / "index.html").resolve()
    page.write_text(page.read_text() + "kept")
    answer = reproduce(here, "run", "tiny.yaml", "--workers", "1", page=True)
    assert answer.out.splitlines()[-1] == f"page: {page.relative_to(here)}"
    assert page.read_text().endswith("kept")


def test_the_page_is_the_same_without_torch(finished, tmp_path):
    folder, _ = finished
    done = torchless(folder, "report", "--to", str(tmp_path))
    assert (done.code, done.err) == (0, "")
    page = (tmp_path / "tiny" / "index.html").resolve()
    assert done.out == f"tiny: {page}\n"
    drawn = re.compile(r"Made on .*? UTC")
    assert drawn.sub("", page.read_text()) == drawn.sub("", whole_page(folder))


def test_the_page_lists_every_training_with_seed_and_reason_of_its_end(finished):
    folder, _ = finished
    store = Store(f"sqlite:///{folder}/runs/store.sqlite", folder / "runs" / "artifacts")
    (fingerprint,) = store.experiments()["fingerprint"]
    known, page = MeasuredExperiment.from_store(store, fingerprint, trainings=True), whole_page(folder)
    assert len(known.trainings) == 8
    for name, (spec, result) in known.trainings.items():
        place = page.index(f"<code>{name}</code>")
        line = page[place : page.index("</li>", place)]
        assert f"seed {spec.seed}" in line
        assert f"iteration {result.best_iteration} of {result.iterations} kept" in line


def test_the_page_shows_the_searches_that_led_to_the_runs(finished, monkeypatch):
    folder, _ = finished
    monkeypatch.chdir(folder)
    where = storage_paths("runs/store.sqlite", None, None, None)
    store = Store(where.store, where.artifacts)
    (fingerprint,) = store.experiments()["fingerprint"]
    known = MeasuredExperiment.from_store(store, fingerprint)
    studies = store.searches.of_experiment(fingerprint)
    found = histories(studies, known.summary.methods, known.summary.trials)
    assert set(found) == {"contrastive", "proxy_anchor"}
    for key, search in found.items():
        assert len(search.trials) == 2
        setting = next(record.hyperparameters for record in known.records if record.method == key)
        best = max(search.trials, key=lambda trial: trial.value)
        assert best.parameters == {name: setting[name] for name in best.parameters}
    assert {record.study for record in known.records if record.study} == {s.fingerprint for s in studies.values()}


def test_a_store_without_its_artifacts_makes_a_page_without_their_figures(here, say):
    shutil.rmtree(here / "runs" / "artifacts")
    answer = say("report", "tiny")
    assert answer.code == 0, answer.err
    names = {path.stem for path in (here / "runs" / "reports" / "tiny" / "figures").iterdir()}
    assert "spectrum" not in names, "figures of an earlier page are gone"
    assert "validation_curves" in names


def test_a_broken_exhibit_is_mentioned_on_the_page(here, say):
    for path in (here / "runs" / "artifacts" / "figure_data").iterdir():
        path.write_bytes(b"nothing")
    assert say("report").code == 0
    assert "cannot be read" in whole_page(here)


def test_a_partial_store_is_marked_partial(here, say):
    with sqlite3.connect(here / "runs" / "store.sqlite") as connection:
        connection.execute("DELETE FROM experiment_runs WHERE method = 'proxy_anchor'")
    connection.close()
    assert say("report", "tiny.yaml").code == 0
    page = whole_page(here)
    assert "Not finished: Proxy-Anchor has 0 of 2 runs." in page
    assert "Nothing is claimed before all searches and runs are there." in page


def test_impossible_reports_give_one_line(here, say):
    assert "no experiment 'tine' in runs/store.sqlite; it holds: tiny" in refused(say("report", "tine"))
    assert "there is no store yet" in refused(say("report", "--store", "nowhere.sqlite"))
    (here / "file").write_text("")
    assert "choose another folder with --to" in refused(say("report", "--to", "file"))
    Store(f"sqlite:///{here}/empty.sqlite", here)
    assert "holds no experiment yet" in refused(say("report", "--store", "empty.sqlite"))
    with sqlite3.connect(here / "empty.sqlite") as connection:
        connection.execute("UPDATE suite_schema SET version = 99")
    connection.close()
    assert "made by schema version 99" in refused(say("report", "--store", "empty.sqlite"))


def test_an_error_in_the_page_does_not_end_the_run(tmp_path):
    where = storage_paths(str(tmp_path / "store.sqlite"), None, None, None)
    store = Store(where.store, where.artifacts)
    store.put_experiment("f", "tiny", some_summary())
    with store.database.writing() as connection:
        connection.execute("UPDATE experiments SET content = '{}'")
    said = page_or_reason("tiny", "f", store, where.reports)
    assert said.startswith("no page was written (store ")
    assert said.endswith("try `reproduce report tiny`")


def again(name, settings, *records):
    summary = some_summary(settings=settings)
    return [command.text for command in rerun_commands(name, MeasuredExperiment(summary, records))]


def test_commands_have_options_for_differences_from_the_file():
    kept = sample("quickstart").summary.experiment.without_folder()
    settings = {**kept, "seed": 7, "methods": ["untrained", "proxy_anchor"]}
    clean = some_run()
    commands = again("quickstart", settings, clean)
    assert commands[0] == f"git checkout {clean.provenance.commit}"
    assert commands[1] == "python -m reproduce run quickstart --methods untrained,proxy_anchor --seed 7"
    assert commands[-1] == "python -m reproduce report quickstart"


def test_an_experiment_without_a_suite_file_is_written_out():
    settings = {**sample("quickstart").summary.experiment.without_folder(), "title": "Mine: $(x)"}
    unclean = some_run().provenance.model_copy(update={"tree_dirty": True})
    commands = again("my own", settings, some_run(provenance=unclean))
    assert yaml.safe_load(commands[0])["title"] == "Mine: $(x)"
    assert commands[1] == "python -m reproduce run 'my own.yaml'"


def test_settings_without_an_option_of_their_own_are_set_by_their_keys():
    settings = load_experiment("quickstart", {}).without_folder()
    optimizer = {**settings["training"]["optimizer"], "lr": 0.5}
    training = {**settings["training"], "patience": 8, "optimizer": optimizer}
    changed = {**settings, "training": training, "metrics": ["nmi"], "primary": {"compare": "best"}}
    line = again("quickstart", changed)[0]
    assert line.startswith("python -m reproduce run quickstart ")
    assert " --compare best " in line
    given = dict(option.partition("=")[::2] for option in shlex.split(line) if "=" in option)
    assert given == {"metrics": '["nmi"]', "training.optimizer.lr": "0.5", "training.patience": "8"}
    options = Choices(compare="best", settings=[f"{key}={value}" for key, value in given.items()])
    assert load_experiment("quickstart", options.overrides()) == Experiment.model_validate(changed)


def test_a_different_dataset_or_row_with_the_name_of_a_suite_file_is_written_out():
    settings = load_experiment("quickstart", {}).without_folder()
    assert again("quickstart", settings)[0] == "python -m reproduce run quickstart"
    commands = again("quickstart", {**settings, "conditions": {"triplet": {"training.batch_size": 8}}})
    assert yaml.safe_load(commands[0])["conditions"] == {"triplet": {"training.batch_size": 8}}
    assert commands[1] == "python -m reproduce run quickstart.yaml"


def test_a_dataset_from_a_folder_has_the_data_option():
    plain = load_experiment("mlrc_cub200", {}).model_dump(mode="json")
    settings = {**plain, "dataset": {"name": "cub200", "subset": True}, "folds": 2}
    (line,) = [text for text in again("mlrc_cub200", settings) if " run " in text]
    assert line.endswith("run mlrc_cub200 --data FOLDER --subset --folds 2")
    own = load_experiment("folder", {}).model_dump(mode="json")
    own["dataset"]["min_images"] = 5
    (line,) = [text for text in again("folder", own) if " run " in text]
    assert line == "python -m reproduce run folder --data FOLDER --set dataset.min_images=5"


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def test_the_real_page_loads_alone_and_works_by_keyboard(browser, finished):
    address = (finished[0] / "runs" / "reports" / "tiny" / "index.html").as_uri()
    page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address, wait_until="networkidle")
    gallery = page.locator("details:has(> .scroll > .retrieval)").first
    assert not gallery.locator(".thumbnail").first.is_visible()
    gallery.locator("summary").focus()
    page.keyboard.press("Enter")
    assert gallery.locator(".thumbnail").first.is_visible()
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.wait_for_timeout(300)
    assert page.evaluate("[...document.images].filter(image => image.complete && !image.naturalWidth).length") == 0
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [address]
    for table in page.locator("table.sortable").all():
        header = table.locator("thead tr:last-child th").nth(1)
        header.locator("button").focus()
        page.keyboard.press("Enter")
        keys = table.evaluate("one => [...one.tBodies].map(body => body.rows[0].cells[1].dataset.sort)")
        shown = [float(key) for key in keys if key]
        assert shown == sorted(shown, reverse=True)
        assert header.get_attribute("aria-sort") == "descending"
    page.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_the_real_page_never_scrolls_sideways(browser, finished, width):
    page = browser.new_page(viewport={"width": width, "height": 740}, reduced_motion="reduce")
    page.goto((finished[0] / "runs" / "reports" / "tiny" / "index.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


def test_a_later_start_with_fewer_methods_keeps_the_files_of_the_first(here, say):
    files = {path: path.read_bytes() for kind in ("tables", "reports") for path in files_of(here / "runs" / kind)}
    first = page_identity(whole_page(here))
    answer = say("run", "tiny.yaml", "--methods", "contrastive", "--workers", "1")
    assert answer.code == 0, answer.err
    note = "Not shown: proxy_anchor, whose runs with the same settings are in the store."
    for command in (("report", "tiny"), ("table", "tiny"), ("table", "tiny", "--what", "peeking")):
        assert say(*command).code == 0
    page = whole_page(here)
    assert note in page
    assert ": there is no other method to compare it with." in page
    assert {path: path.read_bytes() for path in files} == files
    answer = say("table", first, "--format", "csv")
    assert (answer.out, answer.err) == (
        next(file for path, file in files.items() if path.suffix == ".csv").decode(),
        "",
    )
    assert f"by identity: {first} (tiny: contrastive, proxy_anchor; 1 x 2 trials)" in say("table", "tiny").err
    again = say("run", "tiny.yaml", "--workers", "1")
    assert again.code == 0, again.err
    assert "0 trainings made" in " ".join(again.out.split())
    assert "Not shown" not in say("table", "tiny").out
