"""How long trainings take, expected from kept records: how many steps early stopping and how many folds racing leave.

`training_durations.csv` has the numbers; `python -m benchmarks.training_durations` writes it. Nothing is scaled from
one network, size of image or batch to another: where no record has them, no seconds are expected.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pandas as pd

from results.spec.conditions import Conditions, TrainingSettings

FILE = Path(__file__).with_name("training_durations.csv")

Stage = Literal["search", "reproductions", "tests"]

START = 11.0
"""CPU seconds until the first training begins: imports of the process that workers are forked from (9.2, the median of
three), and of the first worker (1.9, the mean of two), on an AMD EPYC (family 25, model 17) that had other work too."""

TRAINING = 0.05
"""CPU seconds of a training of the quickstart beside its steps, in a worker that has trained before: the median of nine
on the same machine, with `small_conv`."""

_ENDED = 0.75
"""A record whose trainings made a larger part of their steps was mostly cut off, and does not say where early stopping
ends trainings of another length."""

_NEAREST = ["other_kind", "other_data", "other_schedule", "other_start", "other_trunk"]
"""By what the nearest record is chosen, the most important first: a network or features, the dataset."""

_OF_SPEED = ["other_schedule", "other_start", "other_trunk"]
"""The same for how fast records of one trunk were, which does not depend on the data."""

UNKNOWN_DATA = ""
"""The dataset of a record whose images are a folder: the next folder has other images."""

_SCHEDULE = ["epoch_steps", "max_epochs", "validate_every", "patience"]


@dataclass(frozen=True)
class Expected:
    """An expected number.

    Attributes:
        value: The number.
        record: The kept record that it is from; empty for one that is plain arithmetic.
        of_methods: The numbers of the record's methods, if it does not have this one and the number is their mean.
        data: The dataset of the record; empty for a folder, and for plain arithmetic.
        is_of_other_data: Whether the record is of another dataset than what is planned.
        ends: The lowest and the highest that any record of any kind would say, if the record is of other data.
    """

    value: float
    record: str = ""
    of_methods: tuple[float, ...] = ()
    data: str = ""
    is_of_other_data: bool = False
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Rate:
    """How fast trainings are.

    Attributes:
        step: Seconds of a step, with its part of the validations, if `image` is 0.
        image: Seconds of an image in an evaluation; 0 where these are in `step`.
        words: Where the rate is from.
        test: Seconds of the test of a run; None counts its images by `image`, or by `step`.
        training: Seconds of a training beside its steps and evaluations.
    """

    step: float
    words: str
    image: float = 0.0
    test: float | None = None
    training: float = TRAINING


def expected_steps(conditions: Conditions, epoch_steps: int, method: str, stage: Stage, data: str) -> Expected:
    """Return the expected number of steps of a training.

    Trainings that early stopping cannot end before their last epoch have all steps. Else only records that trained the
    same, features or a network, are asked: of the same dataset first, then of the same lengths of epochs and patience,
    the same start of the embedder and the same trunk. Of several the one with the method and the most trainings counts:
    the number of its method, or the mean over its methods. A record with another schedule must be one that early
    stopping ended, and says how often the first epoch at which patience could end them its trainings had: that is 3 to
    7.3 in all such records, while their parts of all steps are 4 to 61 %.
    """
    training = conditions.training
    most, fewest = training.max_epochs * epoch_steps, first_end(training) * epoch_steps
    if fewest >= most:
        return Expected(most)
    kept = _compared(conditions, epoch_steps, data)
    kept["other_stage"] = kept["stage"] != stage
    shares = kept["steps"] / (kept["epoch_steps"] * kept["max_epochs"])
    ended = shares.groupby(kept["record"]).transform("mean") < _ENDED
    first_ends = (kept["patience"] // kept["validate_every"] + 1) * kept["validate_every"]
    times = kept["steps"] / (kept["epoch_steps"] * first_ends)
    kept["expected"] = kept["steps"].where(~kept["other_schedule"], times * fewest).clip(fewest, most)
    near = kept[~kept["other_kind"] & (ended | ~kept["other_schedule"])].sort_values([*_NEAREST, "of_record"])
    near = near[(near[_NEAREST] == near.iloc[0][_NEAREST]).all(axis=1)]
    first = _of_method(near, method).iloc[0]
    lines = near[near["record"] == first["record"]]
    lines = lines[lines["other_stage"] == lines["other_stage"].min()]
    of_all = kept.loc[ended, "expected"]
    other = bool(first["other_data"])
    return Expected(
        float(_of_method(lines, method)["expected"].mean()),
        str(first["record"]),
        of_methods=() if (lines["method"] == method).any() else tuple(lines["expected"]),
        data=str(first["data"]),
        is_of_other_data=other,
        ends=(float(of_all.min()), float(of_all.max())) if other else None,
    )


def expected_folds(method: str, data: str) -> Expected:
    """Return the part of their folds that raced trials are trained on."""
    kept = _kept()
    lines = kept[kept["stage"] == "racing"]
    first = lines.iloc[0]
    found = float(_of_method(lines, method)["trained"].mean())
    return Expected(found, str(first["record"]), data=str(first["data"]), is_of_other_data=first["data"] != data)


def kept_rate(conditions: Conditions, epoch_steps: int, method: str, sharing: int = 0) -> Rate | None:
    """Return the rate of the kept records for a trunk, crop, batch and precision; None if no record has them.

    A CPU's is that of the nearest record (see `expected_steps`), of several the middle one, and of the same method if
    there is one. On a GPU that so many trainings share it is that of `bench_gpu.json`.
    """
    if sharing:
        return _gpu_rate(conditions, sharing)
    kept, training, trunk = _compared(conditions, epoch_steps, UNKNOWN_DATA), conditions.training, conditions.trunk
    same = (kept["batch_size"] == training.batch_size) & ~kept["other_kind"]
    if not trunk.is_input_features:  # What features are of does not matter.
        same &= ~kept["other_trunk"] & (kept["crop"] == conditions.images.crop)
    if not same.any():
        return None
    lines = kept[same].assign(step=kept["seconds"] / kept["steps"])
    lines = _of_method(lines, method).sort_values([*_OF_SPEED, "step"])
    lines = lines[(lines[_OF_SPEED] == lines.iloc[0][_OF_SPEED]).all(axis=1)]
    line = lines.iloc[len(lines) // 2]
    tests = _kept()[(_kept()["record"] == line["record"]) & (_kept()["stage"] == "tests")]
    # Other records have the seconds of tests in those of the runs' trainings.
    test = float(_of_method(tests, method)["seconds"].mean()) if len(tests) else 0.0
    return Rate(float(line["step"]), f"{line['record']} ({line['processor']})", test=test)


def _gpu_rate(conditions: Conditions, sharing: int) -> Rate | None:
    kept, trunk = _kept(), conditions.trunk
    same = (kept["stage"] == "steps") & (kept["trunk"] == trunk.name) & (kept["frozen"] == trunk.is_input_features)
    same &= (kept["crop"] == conditions.images.crop) & (kept["batch_size"] == conditions.training.batch_size)
    same &= (kept["precision"] == conditions.training.precision) & (kept["trainings"] <= sharing)
    if not same.any():
        return None
    line = kept[same].sort_values("trainings").iloc[-1]
    several = f", {line['trainings']:.0f} at a time" if line["trainings"] > 1 else ""
    # Trainings that share a GPU share its steps.
    return Rate(float(line["seconds"]) * sharing, f"{line['record']} ({line['processor']}{several})")


def _compared(conditions: Conditions, epoch_steps: int, data: str) -> pd.DataFrame:
    """Return the lines of trainings with a loss, and in what their conditions differ."""
    kept, training = _kept(), conditions.training
    kept = kept[kept["stage"].isin(["search", "reproductions"]) & (kept["steps"] > 0)]
    own = pd.Series((epoch_steps, training.max_epochs, training.validate_every, training.patience), index=_SCHEDULE)
    return kept.assign(
        other_schedule=(kept[_SCHEDULE] != own).any(axis=1),
        other_kind=kept["frozen"] != conditions.trunk.is_input_features,
        other_data=(kept["data"] != data) | (kept["data"] == UNKNOWN_DATA),
        other_start=kept["start"] != conditions.embedder.init,
        other_trunk=kept["trunk"] != conditions.trunk.name,
        of_record=-kept.groupby("record")["trainings"].transform("sum"),
    )


def seconds_without_steps(conditions: Conditions, method: str) -> float:
    """Return the seconds of a training without a loss; 0 if no record has its method and trunk."""
    kept = _kept()
    own = kept[(kept["method"] == method) & (kept["steps"] == 0) & (kept["trunk"] == conditions.trunk.name)]
    return float(own["seconds"].min()) if len(own) else 0.0


def first_end(training: TrainingSettings) -> int:
    """The first epoch at which early stopping can end a training."""
    every = training.validate_every
    return min(training.max_epochs, (training.patience // every + 1) * every)


def _of_method(lines: pd.DataFrame, method: str) -> pd.DataFrame:
    own = lines[lines["method"] == method]
    return own if len(own) else lines


@cache
def _kept() -> pd.DataFrame:
    numbers = [*_SCHEDULE, "steps", "seconds", "trained"]
    return pd.read_csv(FILE, keep_default_na=False, na_values=dict.fromkeys(numbers, ""))
