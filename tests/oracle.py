"""The oracle: shows that a change of the code changes no result.

    python -m tests.oracle FOLDER [NAME ...]

runs tiny experiments and writes everything that comes out of them into FOLDER, as text: trainings, test evaluations,
trials of the searches, tables, exports, the text of the pages, and the losses of every card. Times, versions, commits
and places are left out. Call it at two commits, on the same machine and with the same packages, and compare the two
folders with `diff -r`. An empty answer means: the same results. Names of experiments, `commands` or `losses` select
parts.

Everything but the losses goes through the command line, which outlives the names of modules. `trials` and
`records` read the store's tables; where these change, they have to give the same lists.
"""

import csv
import html
import inspect
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from PIL import Image
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning import miners

import losses

ROOT = Path(__file__).resolve().parents[1]
CARDS = sorted(path.stem for path in (ROOT / "reproduce" / "methods").glob("*.yaml"))
SINGLE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# Git finds no repository, so that clean and changed checkouts give the same warnings.
FIXED = {"PYTHONPATH": str(ROOT), "COLUMNS": "240", "CUDA_VISIBLE_DEVICES": "", "GIT_DIR": "nowhere"}
ENVIRONMENT = {**os.environ, **SINGLE, **FIXED}
KINDS = ("results", "differences", "uncertainty", "peeking", "hyperparameters", "costs")
FORMATS = ("csv", "latex", "html", "json")

Commands = list[tuple[str, ...]]

# Several commands in one process, since the imports take longest; each answer goes to a file.
MANY = """
import contextlib, io, json, pathlib, runpy, sys
for target, *arguments in json.loads(sys.argv[1]):
    sys.argv = ["reproduce", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            runpy.run_module("reproduce", run_name="__main__")
        except SystemExit as end:
            if end.code:
                sys.exit(f"{arguments}: exit code {end.code}")
    pathlib.Path(target).write_text(out.getvalue())
"""

# Data and network of the experiments, and what they have in common.
BASES = yaml.safe_load("""
common: &common
  title: A tiny experiment
  embedding_size: 16
  training: {batch_size: 16, iterations_per_epoch: 4, max_epochs: 2, validate_every: 1, patience: 3, optimizer:
    {name: Adam, lr: 1.0e-3, weight_decay: 1.0e-4, arguments: {}}}
  search: {trials: 5, sampler: {startup_trials: 2}}
  reproductions: 2
  folds: 2
  seed: 3
glyphs:
  <<: *common
  dataset: {name: glyphs}
  trunk: {name: small_conv, weights: random}
  images: {resize: null, crop: 32, area: [0.6, 1.0], ratio: [0.9, 1.1], flip: false}
features:
  <<: *common
  dataset: {name: features, root: features}
frozen:
  <<: *common
  dataset: {name: folder, root: images}
  trunk: {name: efficientnet_lite0, frozen: true}
  images: {resize: 32, crop: 32}
""")

# Each has the keys of its base, replaced by its own. With two startup trials the Gaussian process proposes the others.
EXPERIMENTS = yaml.safe_load("""
mlrc: {base: glyphs, methods: [untrained, contrastive, ./all_scales.yaml], metrics: [recall@2, nmi], test_curves: true,
  search: {trials: 6, sampler: {startup_trials: 3}}}
standard: {base: glyphs, methods: [multi_similarity, proxy_anchor], protocol: standard, test_curves: true}
frozen: {base: frozen, methods: [untrained, pretrained_pca, contrastive], embedder: {init: pca},
  search: {trials: 4, sampler: {startup_trials: 2}, network_lr: {low: 1.0e-6, high: 1.0e-3}}}
raced: {base: features, methods: [proxy_anchor, contrastive], folds: 4,
  search: {trials: 8, sampler: {startup_trials: 3}, racing: true}}
searches: {base: features, methods: [contrastive, normalized_softmax],
  search: {trials: 4, sampler: {startup_trials: 2}, searches: 2}}
features: {base: features, methods: [untrained, margin, c1_ccp], split: {seed: 3}, embedder: {hidden: [8]},
  variants: [{of: margin, key: margin_set, title: Set, set: {loss.margin: 0.1}}],
  with: {margin_set: {embedding_size: 8}}}
own_loss: {base: glyphs, methods: [./users_own.yaml, contrastive], metrics: ["./users_metric.py:spread"]}
all_cards: {base: glyphs, search: {trials: 1}, reproductions: 1, folds: 1}
""")
EXPERIMENTS["all_cards"]["methods"] = CARDS
AGAIN = ("mlrc", "raced")  # Run twice; the second time nothing is trained.
TWO_WORKERS = ("own_loss",)  # The others train in the process of the command.

# A card whose search has every kind of scale.
ALL_SCALES = """
key: all_scales
title: All scales
source: none
loss: {name: ProxyGMLLoss, arguments: {proxies_per_class: 4, r: 0.3, reg_weight: 0.3}}
batch: {samples_per_class: 2}
loss_optimizer: {lr: 0.03}
warmup: {passes: 0}
search:
  loss_optimizer.lr: {scale: log, low: 1.0e-5, high: 1.0}
  loss.reg_weight: {scale: linear, low: 0.0, high: 1.0}
  loss.proxies_per_class: {scale: int_log, low: 2, high: 6}
  warmup.passes: {scale: int, low: 0, high: 2}
  batch.samples_per_class: {scale: choice, choices: [1, 2, 4, 8]}
"""

# Keys of records and columns of tables that differ between two calls or two commits.
CHANGING = {"wall_time", "provenance", "last_started", "commit", "device"}

# Parts of texts that do: the table of costs and the packages on a page, dates, times, hours of `status`, the release.
UNSTEADY = (
    (r"Cost of the methods\n.*?costs\.tex\n", "COSTS\n"),
    (r"\nEnvironment \d+: .*?\nsqlalchemy\n\S+\n", "\nENVIRONMENT\n"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\+00:00| UTC)?", "DATE"),
    (r"\b[\d.,]+ (s|min|h)\b", "TIME"),
    (r"\d+\.\d\d +│\n", "HOURS\n"),
    (r"by metric-learning-reproductions \S+", "by RELEASE"),
)


def main() -> None:
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        work = Path(scratch)
        prepare(work)
        # The longest first.
        parts: dict[str, tuple[Any, ...]] = {name: (dump, work, folder / name, name) for name in reversed(EXPERIMENTS)}
        parts |= {"commands": (commands, work, folder / "commands"), "losses": (golden_losses, folder / "losses.txt")}
        jobs = [pool.submit(timed, name, *parts[name]) for name in sys.argv[2:] or parts]
        for job in jobs:
            job.result()


def timed(name: str, function: Callable[..., None], *arguments: Any) -> None:
    start = time.monotonic()
    function(*arguments)
    print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)


def prepare(work: Path) -> None:
    """Write the experiments and their data: pictures of noisy stripes, features around a centre per class, a loss."""
    for name, experiment in EXPERIMENTS.items():
        base = BASES[experiment["base"]]
        (work / f"{name}.yaml").write_text(
            yaml.safe_dump({k: v for k, v in (base | experiment).items() if k != "base"})
        )
    (work / "all_scales.yaml").write_text(ALL_SCALES)
    (work / "users_metric.py").write_text("def spread(embeddings, labels):\n    return embeddings.std(dim=0).mean()\n")
    reproduce(work, ("new", "method", "users_own"))
    noise = np.random.default_rng(0)
    labels = np.repeat(np.arange(16), 8)
    for number, label in enumerate(labels):
        stripes = np.arange(18)[None, :, None] * (label + 1) % 18 * 11
        pixels = (stripes + noise.integers(-250, 250, (18, 18, 3))).clip(0, 255).astype(np.uint8)
        (work / "images" / f"class_{label:02}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(work / "images" / f"class_{label:02}" / f"{number}.png")
    (work / "features").mkdir()
    centres = noise.standard_normal((16, 24))
    features = centres[labels] + 1.5 * noise.standard_normal((len(labels), 24))
    np.save(work / "features" / "features.npy", features.astype(np.float32))
    rows = [f"{number}.png,class {label:02}" for number, label in enumerate(labels)]
    (work / "features" / "labels.csv").write_text("\n".join(["file,label", *rows]) + "\n")


def reproduce(work: Path, arguments: Sequence[str], start: Sequence[str] = ("-m", "reproduce")) -> str:
    """Run the command line; return what it printed."""
    command = [sys.executable, *start, *arguments]
    done = subprocess.run(command, cwd=work, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)[:200]}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def dump(work: Path, folder: Path, name: str) -> None:
    """Run an experiment and write down what came out of it."""
    folder.mkdir()
    store = work / "stores" / name / "store.sqlite"
    at = ("--store", str(store.relative_to(work)))
    run: tuple[str, ...] = ("run", f"{name}.yaml", *at, "--cache", f"cache/{name}", "--device", "cpu", "--yes")
    run = (*run, "--workers", "2" if name in TWO_WORKERS else "1")
    printed = [reproduce(work, run) for _ in range(2 if name in AGAIN else 1)]
    (folder / "made.txt").write_text("\n".join(re.findall(r"[\d,]+ trainings? made", "".join(printed))) + "\n")
    with sqlite3.connect(store) as database:
        write_json(folder / "trainings.json", trainings(database))
        write_json(folder / "curves.json", records(database, "test_curves"))
        write_json(folder / "runs.json", records(database, "runs"))
        write_json(folder / "experiments.json", records(database, "experiments"))
        write_json(folder / "trials.json", trials(database))
    asked: Commands = [
        (f"{kind}.markdown", "table", name, "--what", kind, "--format", "markdown", *at) for kind in KINDS
    ]
    asked += [(f"results.{form}", "table", name, "--format", form, *at) for form in FORMATS]
    asked += [("export.txt", "export", "runs", "--to", f"export/{name}", "--format", "csv", *at)]
    method = Path(EXPERIMENTS[name]["methods"][-1]).stem
    chosen = (name, "--method", method, *at, "--to")
    asked += [("model.txt", "export", "model", *chosen, f"model/{name}")]
    asked += [("status.txt", "status", *at)]
    many(work, folder, asked)
    for path in sorted((work / "export" / name).glob("*.csv")):
        write_table(path, folder / path.name)
    for path in store.parent.glob("reports/*/index.html"):
        if not path.parent.is_symlink():
            (folder / "page.txt").write_text(text_of(path.read_text()))


def many(work: Path, folder: Path, asked: Commands) -> None:
    """Give several commands; write each answer to the file that stands before its arguments."""
    reproduce(work, [json.dumps([(str(folder / target), *arguments) for target, *arguments in asked])], ("-c", MANY))
    for target, *_ in asked:
        path = folder / target
        text = path.read_text()
        if target.endswith(".json"):
            write_json(path, json.loads(text))
        else:
            path.write_text(steady(without_times(text) if target.startswith("costs") else text))


def commands(work: Path, folder: Path) -> None:
    """Write what the suite says of itself: cards, experiments, published tables, claims."""
    folder.mkdir()
    named = re.search(r"published tables: (.*)\nexperiments", reproduce(work, ["table"]), re.DOTALL)
    assert named
    published = re.findall(r"\w+", named.group(1))
    asked: Commands = [(f"table_{name}.csv", "table", name, "--format", "csv") for name in published]
    asked += [(f"{name}.txt", name) for name in ("methods", "datasets", "experiments", "coverage", "claims")]
    asked += [(f"card_{name}.txt", "methods", name) for name in CARDS]
    asked += [(f"plan_{name}.txt", "plan", f"{name}.yaml", "--rate", "1000") for name in ("mlrc", "raced", "searches")]
    many(work, folder, asked)


def records(database: sqlite3.Connection, table: str) -> list[Any]:
    """The records of a table of the store, by fingerprint."""
    rows = database.execute(f"SELECT fingerprint, content FROM {table} ORDER BY fingerprint")
    return [[fingerprint, json.loads(text)] for fingerprint, text in rows]


def trainings(database: sqlite3.Connection) -> list[Any]:
    """Fingerprint, spec and result of all trainings."""
    return [[fingerprint, *content.values()] for fingerprint, content in records(database, "trainings")]


def trials(database: sqlite3.Connection) -> list[Any]:
    """All trials by the name of their search and in order."""
    found = []
    query = "SELECT studies.content, study, trials.content FROM studies JOIN trials ON study = fingerprint"
    for identity, study, text in database.execute(query):
        decides, trial = json.loads(identity), json.loads(text)
        name = f"{decides['dataset']}/{decides['method']['name']} {study}"
        found.append({"search": name, **trial})
    return sorted(found, key=lambda trial: (trial["search"], trial["number"]))


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(kept(value), indent=1, sort_keys=True) + "\n")


def kept(value: Any) -> Any:
    """A JSON value without the keys that change from call to call."""
    if isinstance(value, dict):
        return {key: kept(part) for key, part in value.items() if key not in CHANGING}
    return [kept(part) for part in value] if isinstance(value, list) else value


def write_table(source: Path, target: Path) -> None:
    """Copy a table without the columns that change, rows sorted."""
    with source.open(newline="") as file:
        head, *rows = csv.reader(file)
    chosen = [number for number, name in enumerate(head) if name not in CHANGING]
    lines = [",".join(row[number] for number in chosen) for row in (head, *sorted(rows))]
    target.write_text("\n".join(lines) + "\n")


def text_of(page: str) -> str:
    """The text of a page, one line per element, without scripts, styles and drawings."""
    for tag in ("script", "style", "svg"):
        page = re.sub(rf"<{tag}\b.*?</{tag}>", "", page, flags=re.DOTALL)
    alternatives = re.findall(r'alt="([^"]*)"', page)
    lines = (line.strip() for line in html.unescape(re.sub(r"<[^>]*>", "\n", page)).splitlines())
    return steady("\n".join([*filter(None, lines), *map(html.unescape, alternatives)]) + "\n")


def steady(text: str) -> str:
    """A text without what changes from call to call."""
    for pattern, name in UNSTEADY:
        text = re.sub(pattern, name, text, flags=re.DOTALL)
    return text


def without_times(table: str) -> str:
    """A table of costs in Markdown without the columns of times."""
    return "\n".join(line if line[:1] != "|" else "|".join(line.split("|")[:5]) for line in table.splitlines())


def golden_losses(target: Path) -> None:
    """Six steps of every card's loss at its defaults on fixed embeddings: value and norm of the gradient."""
    torch.set_num_threads(1)
    lines = []
    for card in CARDS:
        content = yaml.safe_load((ROOT / "reproduce" / "methods" / f"{card}.yaml").read_text())
        if content["loss"] is not None:
            lines += [f"{card} {line}" for line in steps_of(content)]
    target.write_text("\n".join(lines) + "\n")


def steps_of(card: dict[str, Any]) -> list[str]:
    torch.manual_seed(0)
    images, labels = torch.randn(128, 8), torch.arange(128) % 32
    model = torch.nn.Linear(8, 16)
    loss = built(card["loss"], losses, pml_losses)
    miner = built(card["miner"], miners) if card.get("miner") else None
    hooks = hasattr(loss, "param_groups")
    own = loss.param_groups(0.01, 0.0) if hooks else [{"params": list(loss.parameters())}]
    optimizer = torch.optim.SGD([{"params": list(model.parameters())}, *own], lr=0.01)
    schedule = None
    if hooks:
        schedule = losses.Schedule(loss, model, labels, 32, images=lambda rows: images[rows], warmup_epochs=0)
    lines = []
    for step in range(6):
        rows = torch.randperm(128)[:32]
        if schedule:
            schedule.start_step()
        optimizer.zero_grad()
        embeddings = model(images[rows])
        value = loss(embeddings, labels[rows], miner(embeddings, labels[rows]) if miner else None)
        value.backward()
        parameters = [*model.parameters(), *loss.parameters()]
        norm = torch.stack([p.grad.double().norm() for p in parameters if p.grad is not None]).norm()
        lines.append(f"step {step} loss {value.item():.12g} gradient {norm.item():.12g}")
        if schedule is None or schedule.gradients_ready():
            optimizer.step()
    return lines


def built(component: dict[str, Any], *modules: Any) -> Any:
    """Build a class as a card asks, with the sizes that it requires."""
    cls = next(getattr(module, component["name"]) for module in modules if hasattr(module, component["name"]))
    sizes = {"num_classes": 32, "embedding_size": 16, "training_images": 128}
    given = {key: sizes.get(str(value).strip("$"), value) for key, value in component.get("arguments", {}).items()}
    required = [p for base in cls.__mro__[:-1] for p in inspect.signature(base.__init__).parameters.values()]
    given |= {p.name: sizes[p.name] for p in required if p.name in sizes and p.default is p.empty} | given
    return getattr(cls, "from_card", cls)(**given)


if __name__ == "__main__":
    main()
