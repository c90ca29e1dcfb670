"""The nodes of a Ray cluster: which can train and how much, and that they see the same folders and code."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protocols.processes import GPU_THREADS
from reproduce.errors import InputError
from reproduce.execution.clusters.nodes import (
    cannot_import,
    check_kind_of_device,
    code_version,
    difference,
    mark,
    other_code,
    unseen_folder,
)

Node = dict[str, Any]
"""A node in the form of Ray's list: `Alive`, `NodeID`, `NodeManagerAddress`, `NodeManagerHostname`, `Resources`."""


@dataclass(frozen=True)
class Room:
    """The capacity of a cluster for trainings.

    Attributes:
        device: cpu or cuda.
        workers: How many trainings run at the same time.
        sharing: How many trainings share a GPU; 0 on CPUs.
        threads: Threads and cores of each training.
    """

    device: str
    workers: int
    sharing: int
    threads: int


def usable_nodes(nodes: Sequence[Node], device: str, threads: int) -> list[Node]:
    """Return the nodes that can run a training with this number of threads; for cuda they need a GPU as well."""
    return [
        node
        for node in nodes
        if node["Alive"] and _amount(node, "CPU") >= threads and (device == "cpu" or _amount(node, "GPU") >= 1)
    ]


def room_in(nodes: Sequence[Node], device: str, workers: int | None, cpu_threads: int) -> Room:
    """Apply `--device` and `--workers` to the nodes of a cluster; raise InputError if no node can run a training.

    A training has `cpu_threads` cores on a CPU, and `GPU_THREADS` beside a GPU. Without a number of workers there is
    one per GPU, or on CPUs as many as the cores allow. If there are more workers than GPUs, each GPU is shared by the
    same number of trainings, rounded up. Workers for which a node has no cores are left out, since Ray would fill some
    GPUs and leave others idle.
    """
    check_kind_of_device(device, "--ray")
    if device == "auto":
        device = "cuda" if usable_nodes(nodes, "cuda", GPU_THREADS) else "cpu"
    threads = cpu_threads if device == "cpu" else GPU_THREADS
    usable = usable_nodes(nodes, device, threads)
    if not usable:
        wanted = f"{threads} core(s)" + (" and a GPU" if device == "cuda" else "")
        raise InputError(f"--ray: no node of the cluster has {wanted} for a training on {device}")
    by_cores = [int(_amount(node, "CPU")) // threads for node in usable]
    if device == "cpu":
        return Room(device, workers or sum(by_cores), 0, threads)
    room = [(cores, int(_amount(node, "GPU"))) for cores, node in zip(by_cores, usable, strict=True)]
    gpus = sum(min(each) for each in room)
    sharing = math.ceil(min(workers or gpus, sum(by_cores)) / gpus)
    at_most = sum(min(cores, sharing * gpus_of_node) for cores, gpus_of_node in room)
    return Room(device, min(workers or gpus, at_most), sharing, threads)


def _amount(node: Node, resource: str) -> float:
    return float(node["Resources"].get(resource, 0))


_ANSWER_SECONDS = 120
"""Seconds that a node may take to start a process and import torch."""


def check_nodes(ray: Any, nodes: Sequence[Node], folders: Sequence[Path]) -> None:
    """Raise InputError if a node does not answer, does not see a folder, or cannot import the same suite.

    The folders are made if they do not exist.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    marks = [mark(folder) for folder in folders]
    try:
        check = ray.remote(num_cpus=0, max_retries=0)(_node_check())
        # All checks start before the first answer is awaited.
        answers = [
            check.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
                [str(path) for path in marks]
            )
            for node in nodes
        ]
        for node, answer in zip(nodes, answers, strict=True):
            _read_answer(ray, node, answer)
    finally:
        for path in marks:
            path.unlink(missing_ok=True)


def _read_answer(ray: Any, node: Node, answer: Any) -> None:
    name = f"--ray: node {node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
    try:
        unseen, import_error, version = ray.get(answer, timeout=_ANSWER_SECONDS)
    except ray.exceptions.RayError as error:
        raise InputError(f"{name} does not answer ({type(error).__name__})") from error
    if unseen:
        raise InputError(f"{name} {unseen_folder(unseen[0])}")
    if import_error:
        raise InputError(f"{name} {cannot_import(import_error)}")
    if other := difference(code_version(), version):
        raise InputError(f"{name} {other_code(other)}")


def _node_check() -> Any:
    """Return the function that runs on a node.

    The function is defined here so that Ray sends its code, also to nodes that cannot import this module.
    """

    def check(marks: list[str]) -> tuple[list[str], str, Any]:
        import importlib
        import os

        unseen = [path for path in marks if not os.path.exists(path)]
        try:
            importlib.import_module("reproduce.execution.tasks")
            version = importlib.import_module("reproduce.execution.clusters.nodes").code_version()
        except Exception as error:
            return unseen, f"{type(error).__name__}: {error}".splitlines()[0], None
        return unseen, "", version

    return check
