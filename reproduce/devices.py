"""What trains: a CPU or a GPU, and how many trainings side by side."""

import os

import torch

from protocols.splits import FOLDS
from reproduce.errors import InputError


def check_device(device: str) -> str:
    """The device's name if it is there; raises InputError."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise InputError(f"device {device!r}: not a device name; use cpu, cuda or cuda:0") from error
    there = {"cpu": 1, "cuda": torch.cuda.device_count()}
    if chosen.type not in there:
        raise InputError(f"device {device!r}: this suite trains on cpu and cuda")
    if (chosen.index or 0) >= there[chosen.type]:
        raise InputError(
            f"device {device!r} is not there: {there[chosen.type]} {chosen.type} device(s) found; use --device cpu"
        )
    return device


def default_workers(device: str) -> int:
    """Trainings side by side: the four folds of a trial, if there are cores for them; one on a GPU."""
    return 1 if device.startswith("cuda") else min(FOLDS, os.cpu_count() or 1)
