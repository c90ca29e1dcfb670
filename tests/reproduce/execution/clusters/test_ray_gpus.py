"""Trainings that share GPUs of a cluster, with a pretended Ray: what they ask for, and what follows on a full GPU."""

from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from protocols.processes import THREAD_VARIABLES
from reproduce.errors import InputError
from reproduce.execution.clusters import nodes, ray
from reproduce.execution.clusters.nodes import outcome_of
from reproduce.execution.clusters.ray import RayCluster

FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nAnd more")


class PretendedRay:
    """Has one node with 8 GPUs and 64 cores. `begun` has what was asked for each task, and its future."""

    exceptions = SimpleNamespace(RayError=ConnectionError)

    def __init__(self):
        self.begun, self.asked = [], []

    def init(self, **_):
        pass

    def shutdown(self):
        pass

    def is_initialized(self):
        return True

    def nodes(self):
        return [{"NodeID": "a", "Alive": True, "Resources": {"CPU": 64.0, "GPU": 8.0}}]

    def remote(self, **options):
        self.asked.append(options)
        return lambda function: SimpleNamespace(
            options=lambda **more: SimpleNamespace(
                remote=lambda *arguments: self.begin({**options, **more}, arguments)
            ),
            # The mailbox has nothing to tell.
            remote=lambda: SimpleNamespace(take=SimpleNamespace(remote=lambda: None)),
        )

    def begin(self, options, arguments):
        future = Future()
        self.begun.append((options, arguments, future))
        return SimpleNamespace(future=lambda: future)

    def wait(self, _refs, timeout, num_returns=1):
        return [], []

    def cancel(self, _ref, force):
        pass


@pytest.fixture
def pretended(monkeypatch):
    made = PretendedRay()
    monkeypatch.setattr(ray, "import_ray", lambda: made)
    monkeypatch.setattr(ray, "check_nodes", lambda *_: None)
    return made


def test_a_training_asks_for_two_cores_and_its_part_of_a_gpu(pretended):
    executor = RayCluster("local", "auto", 16, (Path(),))
    assert (executor.device, executor.workers) == ("cuda", 16)
    executor.submit("task")
    ((options, arguments, _),) = pretended.begun
    assert (options["num_cpus"], options["num_gpus"], options["max_calls"]) == (2, 0.5, 1)
    assert options["runtime_env"] == {"env_vars": dict.fromkeys(THREAD_VARIABLES, "2")}
    assert arguments[:4] == ("task", "cuda", 2, 2)
    executor.close()


def test_trainings_that_find_a_gpu_full_get_a_larger_part_and_begin_again(pretended, caplog):
    executor = RayCluster("local", "cuda", 24, (Path(),))
    futures = [executor.submit(name) for name in "abc"]
    assert [options["num_gpus"] for options, *_ in pretended.begun] == [1 / 3] * 3
    # Two at the same time cost one step, not two.
    for _, _, ended in pretended.begun[:2]:
        ended.set_result(FULL)
    executor.ticks()
    assert [(arguments[0], options["num_gpus"]) for options, arguments, _ in pretended.begun[3:]] == [
        ("a", 1 / 2),
        ("b", 1 / 2),
    ]
    assert "too small for 3 trainings at the same time; from now on 2" in caplog.text
    # The third, which had a third, gets as much as the others had now. They get a GPU each.
    for _, _, ended in pretended.begun[2:5]:
        ended.set_result(FULL)
    executor.ticks()
    assert [options["num_gpus"] for options, *_ in pretended.begun[5:]] == [1 / 2, 1, 1]
    assert not any(future.done() for future in futures)
    for _, _, ended in pretended.begun[5:]:
        ended.set_result("done")
    assert [future.result() for future in futures] == ["done"] * 3
    executor.close()


@pytest.mark.parametrize("sharing", [1, 2])
def test_on_a_node_only_a_training_that_is_alone_fails(monkeypatch, sharing):
    def full(*_):
        raise FULL

    monkeypatch.setattr(nodes, "carry_out", full)
    monkeypatch.setattr(nodes, "is_foreign", lambda task: False)
    outcome = outcome_of("task", "cuda", 2, lambda tick: None, sharing)
    if sharing == 1:
        assert isinstance(outcome, InputError)
        assert "alone on the GPU" in str(outcome)
    else:
        assert outcome is FULL
