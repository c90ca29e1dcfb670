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

_NEAREST = ["other_schedule", "other_kind", "other_start", "other_trunk"]
"""By what the nearest record is chosen, the most important first."""

_SCHEDULE = ["epoch_steps", "max_epochs", "validate_every", "patience"]


@dataclass(frozen=True)
class Expected:
    """An expected number.

    Attributes:
        value: The number.
        record: The kept record that it is from; empty for one that is plain arithmetic.
        of_methods: The numbers of the record's methods, if it does not have this one and the number is their mean.
        of_kind: Whether the record trained the same: features, or a network.
    """

    value: float
    record: str = ""
    of_methods: tuple[float, ...] = ()
    of_kind: bool = True


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


def expected_steps(conditions: Conditions, epoch_steps: int, method: str, stage: Stage) -> Expected:
    """Return the expected number of steps of a training.

    Trainings that early stopping cannot end before their last epoch have all steps. Else a record with the same lengths
    of epochs and patience comes first, then one that trained the same (features or a network) and that early stopping
    ended; of these, one with the same start of the embedder and the same trunk. Of several the one with the method and
    the most trainings counts: the number of its method, or the mean over its methods. Without such a record all steps
    are expected.
    """
    training = conditions.training
    most, fewest = training.max_epochs * epoch_steps, first_end(training) * epoch_steps
    if fewest >= most:
        return Expected(most)
    kept = _compared(conditions, epoch_steps)
    kept = kept.assign(other_stage=kept["stage"] != stage)
    shares = kept["steps"] / (kept["epoch_steps"] * kept["max_epochs"])
    ended = shares.groupby(kept["record"]).transform("mean") < _ENDED
    near = kept[~kept["other_schedule"] | (~kept["other_kind"] & ended)]
    if near.empty:
        return Expected(most)
    near = near.sort_values([*_NEAREST, "of_record"])
    near = near[(near[_NEAREST] == near.iloc[0][_NEAREST]).all(axis=1)]
    first = _of_method(near, method).iloc[0]
    lines = near[near["record"] == first["record"]]
    lines = lines[lines["other_stage"] == lines["other_stage"].min()]
    steps = float(_of_method(lines, method)["steps"].mean())
    of = {True: " (an embedder on features)", False: " (a whole network)"}[bool(first["frozen"])]
    return Expected(
        min(max(steps, fewest), most),
        f"{first['record']}{of if first['other_kind'] else ''}",
        of_methods=() if (lines["method"] == method).any() else tuple(lines["steps"]),
        of_kind=not first["other_kind"],
    )


def expected_folds(method: str) -> Expected:
    """Return the part of their folds that raced trials are trained on."""
    kept = _kept()
    lines = kept[kept["stage"] == "racing"]
    return Expected(float(_of_method(lines, method)["trained"].mean()), str(lines["record"].iloc[0]))


def kept_rate(conditions: Conditions, epoch_steps: int, method: str, sharing: int = 0) -> Rate | None:
    """Return the rate of the kept records for a trunk, crop, batch and precision; None if no record has them.

    A CPU's is that of the nearest record (see `expected_steps`), of several the middle one, and of the same method if
    there is one. On a GPU that so many trainings share it is that of `bench_gpu.json`.
    """
    if sharing:
        return _gpu_rate(conditions, sharing)
    kept, training, trunk = _compared(conditions, epoch_steps), conditions.training, conditions.trunk
    same = (kept["batch_size"] == training.batch_size) & ~kept["other_kind"]
    if not trunk.is_input_features:  # What features are of does not matter.
        same &= ~kept["other_trunk"] & (kept["crop"] == conditions.images.crop)
    if not same.any():
        return None
    lines = kept[same].assign(step=kept["seconds"] / kept["steps"])
    lines = _of_method(lines, method).sort_values([*_NEAREST, "step"])
    lines = lines[(lines[_NEAREST] == lines.iloc[0][_NEAREST]).all(axis=1)]
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


def _compared(conditions: Conditions, epoch_steps: int) -> pd.DataFrame:
    """Return the lines of trainings with a loss, and in what their conditions differ."""
    kept, training = _kept(), conditions.training
    kept = kept[kept["stage"].isin(["search", "reproductions"]) & (kept["steps"] > 0)]
    own = pd.Series((epoch_steps, training.max_epochs, training.validate_every, training.patience), index=_SCHEDULE)
    return kept.assign(
        other_schedule=(kept[_SCHEDULE] != own).any(axis=1),
        other_kind=kept["frozen"] != conditions.trunk.is_input_features,
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
