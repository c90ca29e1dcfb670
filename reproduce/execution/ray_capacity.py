"""How many trainings a cluster has room for, and what each of them gets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reproduce.errors import InputError

Node = dict[str, Any]
"""A node as Ray lists it: `Alive`, `NodeID`, `NodeManagerAddress`, `NodeManagerHostname`, `Resources`."""


@dataclass(frozen=True)
class Room:
    """What trains in a cluster. gpu_share: part of a GPU that each of the `workers` trainings gets; 0 on CPUs."""

    device: str
    workers: int
    gpu_share: float


def usable_nodes(nodes: Sequence[Node], device: str, threads: int) -> list[Node]:
    """The nodes on which a training of so many threads can run; on cuda it needs a GPU as well."""
    return [
        node
        for node in nodes
        if node["Alive"] and _amount(node, "CPU") >= threads and (device == "cpu" or _amount(node, "GPU") >= 1)
    ]


def room_in(nodes: Sequence[Node], device: str, workers: int | None, threads: int) -> Room:
    """What `--device` and `--workers` mean on these nodes; raises InputError if they cannot be had.

    workers: None for one training per GPU, or for as many as the cores have room for. More than there are GPUs share
    them evenly, each GPU among the whole number of trainings that is enough for all.
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
