"""The value of `--slurm`: what each job of a SLURM cluster asks for."""

from dataclasses import dataclass, fields

from reproduce.errors import InputError

SHORTEST_MINUTES = 15
"""submitit takes a pre-emption in the last ten minutes for the time limit, so limits near that are refused."""

_EXAMPLE = "--slurm partition=gpu,time=240,gpus=1,mem=16"


@dataclass(frozen=True)
class SlurmSettings:
    """What each job asks for.

    Attributes:
        time: Limit in minutes.
        partition: Name of the partition; None for the cluster's default.
        gpus: GPUs per job, 0 or 1.
        cpus: Cores per job; None for as many as a training has threads.
        mem: Memory per job in GB; None for the cluster's default.
        batch: Trainings per job, one after another.
    """

    time: int
    partition: str | None = None
    gpus: int = 0
    cpus: int | None = None
    mem: int | None = None
    batch: int = 1


_LEAST = {"time": SHORTEST_MINUTES, "gpus": 0, "cpus": 1, "mem": 1, "batch": 1}


def read_slurm_settings(text: str) -> SlurmSettings:
    """Read the value of `--slurm`.

    Args:
        text: `key=value` pairs, separated by commas.

    Raises:
        InputError: A key or a value is wrong, or `time` is missing.
    """
    known = [field.name for field in fields(SlurmSettings)]
    values: dict[str, str] = {}
    for pair in text.split(","):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not value or key not in known:
            raise InputError(f"--slurm: {pair.strip()!r} is not one of {'=, '.join(known)}=; for example {_EXAMPLE}")
        if key in values:
            raise InputError(f"--slurm: {key} is given twice")
        values[key] = value
    if "time" not in values:
        raise InputError(f"--slurm: time= is missing, the limit of a job in minutes; for example {_EXAMPLE}")
    numbers = {key: _number(key, values[key]) for key in _LEAST if key in values}
    if numbers.get("gpus", 0) > 1:
        raise InputError(f"--slurm: gpus={values['gpus']}: a training uses one GPU; use gpus=0 or gpus=1")
    return SlurmSettings(partition=values.get("partition"), **numbers)


def _number(key: str, value: str) -> int:
    # A longer number is no sensible request, and int() refuses very long ones.
    number = int(value) if value.isascii() and value.isdecimal() and len(value) < 8 else -1
    if number < _LEAST[key]:
        raise InputError(f"--slurm: {key}={value}: use a whole number, at least {_LEAST[key]}")
    return number
