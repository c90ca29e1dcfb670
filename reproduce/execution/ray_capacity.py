"""Computes how many trainings fit on a cluster and what part of a GPU each of them gets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reproduce.errors import InputError

Node = dict[str, Any]
"""A node in the form of Ray's list: `Alive`, `NodeID`, `NodeManagerAddress`, `NodeManagerHostname`, `Resources`."""


@dataclass(frozen=True)
class Room:
    """The capacity of a cluster for trainings.

    Attributes:
        device: cpu or cuda.
        workers: How many trainings run at the same time.
        gpu_share: Part of a GPU that each training gets; 0 on CPUs.
    """

    device: str
    workers: int
    gpu_share: float


def usable_nodes(nodes: Sequence[Node], device: str, threads: int) -> list[Node]:
    """Return the nodes that can run a training with this number of threads; for cuda they need a GPU as well."""
    return [
        node
        for node in nodes
        if node["Alive"] and _amount(node, "CPU") >= threads and (device == "cpu" or _amount(node, "GPU") >= 1)
    ]


def room_in(nodes: Sequence[Node], device: str, workers: int | None, threads: int) -> Room:
    """Apply `--device` and `--workers` to the nodes of a cluster.

    If there are more workers than GPUs, each GPU is shared by the same number of trainings, rounded up.

    Args:
        nodes: The nodes of the cluster.
        device: cpu, cuda, or auto for cuda if a node has a GPU.
        workers: Trainings at the same time; None for one per GPU, or on CPUs for as many as the cores allow.
        threads: Threads of one training.

    Raises:
        InputError: The device is unknown, or no node can run a training on it.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"device {device!r}: with --ray use cpu, cuda or auto; Ray chooses which GPU")
    if device == "auto":
        device = "cuda" if usable_nodes(nodes, "cuda", threads) else "cpu"
    usable = usable_nodes(nodes, device, threads)
    if not usable:
        wanted = f"{threads} core(s)" + (" and a GPU" if device == "cuda" else "")
        raise InputError(f"--ray: no node of the cluster has {wanted} for a training on {device}")
    if device == "cpu":
        return Room(device, workers or sum(int(_amount(node, "CPU")) // threads for node in usable), 0)
    gpus = sum(int(_amount(node, "GPU")) for node in usable)
    workers = workers or gpus
    return Room(device, workers, 1 / math.ceil(workers / gpus))


def _amount(node: Node, resource: str) -> float:
    return float(node["Resources"].get(resource, 0))
