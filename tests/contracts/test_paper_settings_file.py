"""Every shipped experiment file against the settings that an independent reading of papers and code found.

`results/published/settings.csv` was written from the papers and the authors' code without a look at the experiment
files. A difference is either an error in a file, or a decision; tests/golden/known_differences.csv has its reason.
"""

import csv
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import pytest
import torch
from torch.nn import BatchNorm2d

from protocols.trunks.trunk_registry import TRUNKS
from reproduce.config.experiment_file import experiment_names, load_experiments
from reproduce.config.open_method import load_card, open_method, variant_card
from results.published.tables import CoveredRow, read_published
from results.spec.conditions import RateSchedule
from results.spec.experiment_spec import Experiment
from results.spec.method import Method
from results.spec.trunk_spec import TrunkSpec
from tests.support.published_files import ROOT, covered

pytestmark = pytest.mark.late


@cache
def experiments() -> dict[str, Experiment]:
    """All of them, without a search: the audit has the optima that MLRC published, which ours need not find."""
    files = (load_experiments(file, {"search.trials": 0}) for file in experiment_names())
    return {name: one for file in files for name, one in file.items()}


LINES = read_published("settings")
NOTHING_TO_COMPARE = ("cannot be determined", "not applicable", "not printed", "unknown")


def runnable_rows() -> list[CoveredRow]:
    return [row for row in covered() if row.status == "runnable"]


def number(text: str) -> float | str:
    """The first number of a value such as `60 epochs`; the text where it has none."""
    found = re.match(r"-?\d+(\.\d+)?(e-?\d+)?", text.replace(",", ""))
    return float(found[0]) if found else text


def none_or_number(text: str) -> float | str | None:
    return None if text.startswith("none") else number(text)


def word(text: str) -> str:
    return re.sub(r"[\s_-]", "", text.partition(" (")[0]).lower()


def span(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in re.findall(r"\d+(?:\.\d+)?", text)[:2])


def pooling(text: str) -> str:
    return "average_max" if "max" in text else "average"


def floating(value: float | None) -> float | None:
    return None if value is None else float(value)


CAFFE = (104, 117, 128)
IMAGENET = ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))
NORMALIZED = {
    "bgr_0_255_mean_104_117_128_std_1": ("BGR", lambda x: [255 * x - mean for mean in CAFFE]),
    "BGR, 0-255, mean (104,117,128), std (1,1,1)": ("BGR", lambda x: [255 * x - mean for mean in CAFFE]),
    "rgb_0_1_imagenet_mean_std": ("RGB", lambda x: [(x - mean) / std for mean, std in IMAGENET]),
    "RGB, ImageNet mean and std": ("RGB", lambda x: [(x - mean) / std for mean, std in IMAGENET]),
    "BGR, 255*(x - mean) with RGB mean (0.485,0.456,0.406), no division by std": (
        "BGR",
        lambda x: [255 * (x - mean) for mean in (0.406, 0.456, 0.485)],
    ),
    "BGR, (x - (0.4078,0.4588,0.502)) / 0.0039": (
        "BGR",
        lambda x: [(x - mean) / 0.0039 for mean in (0.4078, 0.4588, 0.502)],
    ),
}
"""By the file's text: the order of channels, and what they are for a grey value x in 0..1."""


def numbers_for_black_and_white(order: str, channels: Callable[[float], list[float]]) -> object:
    """Two formats are equal if they agree in these numbers, since both are linear."""
    return order, *(tuple(round(value, 3) + 0.0 for value in channels(x)) for x in (0.0, 1.0))


def input_format(text: str) -> object:
    return numbers_for_black_and_white(*NORMALIZED[text]) if text in NORMALIZED else text


def our_input_format(trunk: TrunkSpec) -> object:
    ours = trunk.input_format or TRUNKS[trunk.name].input
    values = tuple(zip(ours.mean, ours.std, strict=True))
    return numbers_for_black_and_white(ours.channels, lambda x: [(x * ours.scale - mean) / std for mean, std in values])


# By setting of the file: how its text is read, and our value.
COMPARED: dict[str, tuple[Callable[[str], object], Callable[[Experiment], object]]] = {
    "trunk": (word, lambda one: word(one.conditions.trunk.name)),
    "trunk.pooling": (pooling, lambda one: one.conditions.trunk.pooling),
    "trunk.batch_norm": (word, lambda one: word(one.conditions.trunk.batch_norm)),
    "input_format": (input_format, lambda one: our_input_format(one.conditions.trunk)),
    "embedding_size": (number, lambda one: float(one.conditions.embedding_size)),
    "images.resize": (none_or_number, lambda one: floating(one.conditions.images.resize)),
    "images.crop": (number, lambda one: float(one.conditions.images.crop)),
    "images.evaluation_resize": (
        none_or_number,
        lambda one: floating(one.conditions.images.evaluation_resize or one.conditions.images.resize),
    ),
    "images.area": (span, lambda one: tuple(float(end) for end in one.conditions.images.area)),
    "optimizer": (word, lambda one: word(one.conditions.training.optimizer.name)),
    "lr": (number, lambda one: one.conditions.training.optimizer.lr),
    "weight_decay": (number, lambda one: one.conditions.training.optimizer.weight_decay),
    "batch_size": (number, lambda one: float(one.conditions.training.batch_size)),
    "epochs": (number, lambda one: float(one.conditions.training.max_epochs)),
    "clip": (none_or_number, lambda one: floating(one.conditions.training.clip_value)),
}


def schedule(text: str) -> object:
    """Factor and milestones, these in epochs that are done before the change."""
    if text in ("none", "constant"):
        return None
    if every := re.fullmatch(r"x([\d.]+) every (\d+) epochs", text):
        return float(every[1]), int(every[2])
    if steps := re.fullmatch(r"x([\d.]+) from epoch (\d+) and from epoch (\d+) \(1-based\)", text):
        return float(steps[1]), (int(steps[2]) - 1, int(steps[3]) - 1)
    if passes := re.fullmatch(r"(?:steps at passes|pass) (\d+)(?: and (\d+))?, factor ([\d.]+)", text):
        return float(passes[3]), tuple(int(end) for end in passes.groups()[:2] if end)
    return text


def our_schedule(one: RateSchedule | None) -> object:
    """As `schedule` reads it: regular milestones are told by their distance."""
    if one is None:
        return None
    assert one.milestones is not None
    first = one.milestones[0]
    regular = len(one.milestones) > 1 and one.milestones == tuple(first * (n + 1) for n in range(len(one.milestones)))
    return one.factor, first if regular else one.milestones


def warmup(text: str) -> object:
    if text.startswith("none"):
        return "0 passes"
    return re.sub(r"^(\d+)( pass(es)?)?$", r"\1 passes", text)


def our_warmup(method: Method) -> object:
    if method.warmup.steps is not None:
        return f"{method.warmup.steps} steps"
    return None if method.warmup.passes is None else f"{method.warmup.passes} passes"


def our_momentum(trunk: TrunkSpec) -> float | None:
    """None where running statistics are frozen: the momentum has no effect there."""
    if trunk.batch_norm != "training":
        return None
    with torch.device("meta"):
        layers = [layer for layer in TRUNKS[trunk.name].build().modules() if isinstance(layer, BatchNorm2d)]
    (momentum,) = {layer.momentum for layer in layers}
    return trunk.batch_norm_momentum or momentum


# Likewise for a row's method as the experiment opens it. None: the class of the loss decides, it has no such argument,
# or the setting has no effect.
OF_METHODS: dict[str, tuple[Callable[[str], object], Callable[[Method, Experiment], object]]] = {
    "samples_per_class": (
        lambda text: 0.0 if text.startswith("none") else number(text),
        lambda one, _: float(one.batch.samples_per_class),
    ),
    "proxies.lr_multiplier": (
        number,
        lambda one, all_: (
            None if one.loss_optimizer.lr is None else one.loss_optimizer.lr / all_.conditions.training.optimizer.lr
        ),
    ),
    "warmup": (warmup, lambda one, _: our_warmup(one)),
    "trunk.bn_momentum": (number, lambda _, all_: our_momentum(all_.conditions.trunk)),
    "schedule": (schedule, lambda _, all_: our_schedule(all_.conditions.training.schedule)),
    "clip_kind": (
        lambda text: 10.0 if text.startswith("global norm 10") else 0.0,
        lambda _, all_: all_.conditions.training.clip_norm or 0.0,
    ),
    **{
        f"loss.{name}": (number, lambda one, _, name=name: argument(one, name))
        for name in ("alpha", "beta", "base", "margin", "pos_margin", "neg_margin", "omega", "k", "pool_size")
    },
}


def argument(method: Method, name: str) -> object:
    """An argument of the method's loss, None where it is left to the loss; nested losses are not looked into."""
    value = None if method.loss is None else method.loss.arguments.get(name)
    return float(value) if isinstance(value, int | float) else None


class Difference(NamedTuple):
    """A setting whose value in our file is not that of the audit. The method is `all` for what no method changes."""

    table: str
    method: str
    setting: str
    ours: str
    theirs: str


def known() -> set[Difference]:
    """Decisions, each with its reason in the last column."""
    with (ROOT / "tests" / "golden" / "known_differences.csv").open(encoding="utf-8", newline="") as file:
        return {Difference(*line[:-1]) for line in list(csv.reader(file))[1:] if line[-1]}


def differences(row: CoveredRow) -> Iterator[Difference]:
    experiment = experiments()[row.detail].for_row(row.method)
    about = LINES[
        (LINES["table"] == row.table)
        & LINES["dataset"].isin([row.dataset, "*"])
        & LINES["row"].isin([row.origin.printed_row, "*"])
    ]
    method = opened(row.detail, row.method)
    for setting, text in zip(about["setting"], about["value"], strict=True):
        if not text or text.startswith(NOTHING_TO_COMPARE):
            continue
        if setting in COMPARED:
            read, ours_of = COMPARED[setting]
            ours, whose = ours_of(experiment), "all"
        elif setting in OF_METHODS:
            read, ours_of_method = OF_METHODS[setting]
            ours, whose = ours_of_method(method, experiment), row.method
            if ours is None and setting != "schedule":
                continue
        else:
            continue
        theirs = read(text)
        if ours != pytest.approx(theirs, rel=1e-3) if isinstance(theirs, float) else ours != theirs:
            yield Difference(row.table, whose, setting, str(ours), text)


@cache
def opened(name: str, key: str) -> Method:
    """A row's method as its experiment opens it."""
    experiment = experiments()[name].for_row(key)
    variant = next((one for one in experiment.variants if one.key == key), None)
    return open_method(experiment, load_card(key) if variant is None else variant_card(variant)).method


def test_the_differences_are_the_known_decisions() -> None:
    assert {difference for row in runnable_rows() for difference in differences(row)} == known()
