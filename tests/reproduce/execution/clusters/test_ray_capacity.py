"""The capacity of a cluster's nodes, in examples counted by hand."""

import math

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
        ("cpu", None, 2, Room("cpu", 1 + 8, 0, 2)),
        ("cpu", None, 4, Room("cpu", 4, 0, 4)),
        ("cpu", 5, 2, Room("cpu", 5, 0, 2)),
        ("auto", None, 64, Room("cuda", 2, 1, 2)),
        ("cuda", 1, 64, Room("cuda", 1, 1, 2)),
        ("cuda", 2, 64, Room("cuda", 2, 1, 2)),
        ("cuda", 3, 64, Room("cuda", 3, 2, 2)),
        ("cuda", 5, 64, Room("cuda", 5, 3, 2)),
        # Eight trainings have cores, so more than four on each GPU would leave it partly empty.
        ("cuda", 100, 64, Room("cuda", 8, 4, 2)),
    ],
)
def test_workers_and_their_share_of_a_gpu(device, workers, threads, room):
    assert room_in(CLUSTER, device, workers, threads) == room


def test_auto_means_cpu_if_no_node_has_a_gpu():
    assert room_in([HEAD, SMALL], "auto", None, 1) == Room("cpu", 3, 0, 1)


def gpus_in_use(nodes, room):
    """Give trainings to nodes as Ray does, which fills a GPU before it takes the next; count the GPUs with one."""
    left, used = room.workers, 0
    for each in nodes:
        cores, gpus = (int(each["Resources"][kind]) for kind in ("CPU", "GPU"))
        here = min(left, cores // room.threads, gpus * room.sharing)
        left, used = left - here, used + math.ceil(here / room.sharing)
    assert left == 0
    return used


@pytest.mark.parametrize("cores", [16, 64, 128])
@pytest.mark.parametrize("nodes", [1, 20])
@pytest.mark.parametrize("per_gpu", [None, 1, 2, 4])
def test_all_gpus_of_a_node_are_used_whatever_its_cores_are(cores, nodes, per_gpu):
    each = [node(f"{number}", CPU=cores, GPU=8) for number in range(nodes)]
    # The driver may have any number of cores: a quarter of 128 was once asked for each training.
    room = room_in(each, "auto", per_gpu and per_gpu * 8 * nodes, cpu_threads=32)
    assert gpus_in_use(each, room) == 8 * nodes
    assert room.workers == nodes * min(8 * (per_gpu or 1), cores // 2)


def test_the_smaller_of_cores_and_gpus_is_the_room():
    assert room_in([node(CPU=8, GPU=8)], "cuda", None, 1) == Room("cuda", 4, 1, 2)
    # The small node has cores for four trainings, two on each of two GPUs; the large one for all.
    assert room_in([node(CPU=8, GPU=8), node(CPU=64, GPU=8)], "cuda", 24, 1) == Room("cuda", 4 + 16, 2, 2)


@pytest.mark.parametrize(
    ("nodes", "device", "said"),
    [
        (CLUSTER, "cuda:1", "device 'cuda:1': with --ray use cpu, cuda or auto"),
        ([HEAD, node(CPU=1, GPU=8)], "cuda", r"no node of the cluster has 2 core\(s\) and a GPU"),
        ([HEAD], "auto", r"no node of the cluster has 2 core\(s\) for a training on cpu"),
    ],
)
def test_devices_that_the_cluster_does_not_have_give_one_line(nodes, device, said):
    with pytest.raises(InputError, match=said) as error:
        room_in(nodes, device, None, 2)
    assert "\n" not in str(error.value)
