"""The capacity of a cluster's nodes, in examples counted by hand."""

import pytest

from reproduce.errors import InputError
from reproduce.execution.clusters.ray_nodes import Room, room_in, usable_nodes


def node(name="n", alive=True, **resources):
    return {"NodeID": name, "Alive": alive, "Resources": {key: float(value) for key, value in resources.items()}}


HEAD, SMALL, LARGE = node("head", CPU=0), node("small", CPU=3), node("large", CPU=16, GPU=2)
DEAD = node("dead", alive=False, CPU=64, GPU=8)
CLUSTER = [HEAD, SMALL, LARGE, DEAD]


def test_nodes_without_the_cores_or_the_gpu_are_not_used():
    assert [each["NodeID"] for each in usable_nodes(CLUSTER, "cpu", 2)] == ["small", "large"]
    assert [each["NodeID"] for each in usable_nodes(CLUSTER, "cpu", 4)] == ["large"]
    assert [each["NodeID"] for each in usable_nodes(CLUSTER, "cuda", 2)] == ["large"]


@pytest.mark.parametrize(
    ("device", "workers", "threads", "room"),
    [
        # A training does not spread over nodes: three cores hold one of two threads.
        ("cpu", None, 2, Room("cpu", 1 + 8, 0)),
        ("cpu", None, 4, Room("cpu", 4, 0)),
        ("cpu", 5, 2, Room("cpu", 5, 0)),
        ("auto", None, 2, Room("cuda", 2, 1.0)),
        ("cuda", 1, 2, Room("cuda", 1, 1.0)),
        ("cuda", 2, 2, Room("cuda", 2, 1.0)),
        ("cuda", 3, 2, Room("cuda", 3, 0.5)),
        ("cuda", 5, 2, Room("cuda", 5, 1 / 3)),
    ],
)
def test_workers_and_their_share_of_a_gpu(device, workers, threads, room):
    assert room_in(CLUSTER, device, workers, threads) == room


def test_auto_means_cpu_if_no_node_has_a_gpu():
    assert room_in([HEAD, SMALL], "auto", None, 1) == Room("cpu", 3, 0)


@pytest.mark.parametrize(
    ("nodes", "device", "said"),
    [
        (CLUSTER, "cuda:1", "device 'cuda:1': with --ray use cpu, cuda or auto"),
        ([HEAD, SMALL], "cuda", r"no node of the cluster has 2 core\(s\) and a GPU"),
        ([HEAD], "auto", r"no node of the cluster has 2 core\(s\) for a training on cpu"),
    ],
)
def test_devices_that_the_cluster_does_not_have_give_one_line(nodes, device, said):
    with pytest.raises(InputError, match=said) as error:
        room_in(nodes, device, None, 2)
    assert "\n" not in str(error.value)
