"""A Ray cluster gives the numbers of local processes bit for bit, replaces dead workers, and its losses are named."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from protocols.jobs import TrainJob
from protocols.machine.processes import threads_per_training
from reproduce.errors import InputError, WorkFailedError
from reproduce.run.local import LocalProcesses
from reproduce.run.ray_cluster import RayCluster, Room, _run_on_node, room_in
from reproduce.run.tasks import TrainTask, WorkerDiedError
from tests.support.command_line import TINY, one_line, refused, reproduce
from tests.support.labs import assert_same_numbers, reasons_of_deaths
from tests.support.processes import HAS_PROC, descendants, titled, wait_until
from tests.support.small_setup import TRIPLET, small_setup
from tests.support.tiny_run import write_own_loss

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    """A cluster of one node with two cores, which is not the test's child; its address and its process."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.getbasetemp().parent
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--include-dashboard", "false"]
    options = ["--node-ip-address", "127.0.0.1", "--port", str(port), "--num-cpus", "2", "--disable-usage-stats"]
    storage = ["--object-store-memory", str(2**28), "--temp-dir", str(folder / "ray")]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    variables = {**os.environ, "RAY_AUTH_MODE": "disabled"}  # It listens to this machine only.
    with subprocess.Popen([*ray, *options, *storage], env=variables, **quiet) as process:
        try:
            wait_until(lambda: _answers(port), 120)
            yield f"127.0.0.1:{port}", process
        finally:
            process.terminate()


def _answers(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def with_ray(test):
    return pytest.mark.cluster(test)


with_proc = pytest.mark.skipif(not HAS_PROC, reason="finds processes in /proc")


def cluster(head, folder, workers=2):
    return RayCluster(head[0], "cpu", workers, (folder / "cache", folder / "artifacts"))


def long_setup(folder, **settings):
    settings = {"iterations_per_epoch": 100, "max_epochs": 3, **settings}
    return small_setup(folder, training=small_setup(folder).conditions.training.model_copy(update=settings))


def training_processes(head) -> list[int]:
    return titled("ray::_run_on_node", head[1].pid)


@with_ray
def test_a_cluster_gives_the_numbers_of_local_processes_bit_for_bit(head, tmp_path):
    setup = small_setup(tmp_path / "cache")
    folds = assert_same_numbers(LocalProcesses("cpu", 2), cluster(head, tmp_path), setup, tmp_path)
    assert [fold.provenance.threads for fold in folds] == [threads_per_training()] * 12


@with_ray
@with_proc
def test_a_killed_worker_costs_one_retry_and_changes_no_number(head, tmp_path):
    class KillsOneWorker(RayCluster):
        """Kills the process of the first training."""

        killed: int | None = None

        def submit(self, task):
            future = super().submit(task)
            if self.killed is None:
                self.killed = wait_until(lambda: training_processes(head), 60)[0]
                os.kill(self.killed, signal.SIGKILL)
            return future

    setup = long_setup(tmp_path / "cache")
    folders = (tmp_path / "cache", tmp_path / "artifacts")
    killing = KillsOneWorker(head[0], "cpu", 2, folders)
    # The other trainings were not disturbed.
    (reason,) = reasons_of_deaths(killing, setup, tmp_path)
    assert "WorkerCrashedError" in reason
    assert killing.killed is not None


@with_ray
@with_proc
def test_errors_arrive_unchanged_and_closing_ends_all_that_runs(head, tmp_path):
    setup = long_setup(tmp_path / "cache", max_epochs=10_000, patience=10_000)
    first, second = setup.fold_specs(TRIPLET, "search", 0)
    executor = cluster(head, tmp_path)
    try:
        wrong = executor.submit(TrainTask(TrainJob(first), setup.training_data(second), None))
        with pytest.raises(Exception, match="fold 0") as raised:
            wrong.result(120)
        assert not isinstance(raised.value, WorkerDiedError)
        for spec in (first, second):
            executor.submit(TrainTask(TrainJob(spec), setup.training_data(spec), None))
        trainings = set(wait_until(lambda: len(found := training_processes(head)) == 2 and found, 60))
    finally:
        executor.close()
    wait_until(lambda: not trainings & descendants(head[1].pid), 30)
    with pytest.raises(WorkFailedError, match=r"the Ray cluster is lost .*; everything finished is kept"):
        executor.submit(TrainTask(TrainJob(first), setup.training_data(first), None))


def test_a_node_that_lacks_a_folder_is_named(tmp_path):
    told = _run_on_node(b"", Room("cpu", 1, 0, 1), (tmp_path, tmp_path / "other"))
    assert isinstance(told, InputError)
    assert str(told).startswith(f"--ray: node {socket.gethostname()} does not see {tmp_path / 'other'}; the cache")


def node(**resources):
    return {"Alive": True, "Resources": resources}


@pytest.mark.parametrize("cores", [16, 128])
@pytest.mark.parametrize("per_gpu", [None, 2, 4])
def test_all_gpus_of_a_node_are_used_whatever_its_cores_are(cores, per_gpu):
    # The driver may have any number of cores: a quarter of 128 was once asked for each training.
    room = room_in([node(CPU=cores, GPU=8)] * 20, "auto", per_gpu and per_gpu * 8 * 20, cpu_threads=32)
    each = min(8 * (per_gpu or 1), cores // 2)
    assert (room.workers, room.sharing) == (20 * each, each // 8)


def test_the_room_is_what_cores_and_gpus_allow():
    dead = {"Alive": False, "Resources": {"CPU": 64, "GPU": 8}}
    assert room_in([node(CPU=8, GPU=8), dead], "cuda", None, 1) == Room("cuda", 4, 1, 2)
    # The small node has cores for four trainings, two on each of two GPUs; the large one for all.
    assert room_in([node(CPU=8, GPU=8), node(CPU=64, GPU=8)], "cuda", 24, 1) == Room("cuda", 4 + 16, 2, 2)
    assert room_in([node(CPU=1), node(CPU=2), dead], "auto", None, 1) == Room("cpu", 3, 0, 1)
    assert room_in([node(CPU=9, GPU=1), node()], "cpu", None, 2) == Room("cpu", 4, 0, 2)


@pytest.mark.parametrize(
    ("nodes", "device", "said"),
    [
        ([node(CPU=8, GPU=8)], "cuda:1", "device 'cuda:1': with --ray use cpu, cuda or auto"),
        ([node(CPU=1), node(CPU=1, GPU=8)], "cuda", "no node of the cluster has 2 cores and a GPU"),
        ([node(CPU=1)], "auto", "no node of the cluster has 2 cores for a training on cpu"),
    ],
)
def test_devices_that_the_cluster_does_not_have_give_one_line(nodes, device, said):
    with one_line(said):
        room_in(nodes, device, None, 2)


@with_ray
def test_addresses_without_a_cluster_give_one_line(head):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Not listening.
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InputError, match=f"^--ray {address}: no Ray cluster answers at this address"):
            RayCluster(address, "cpu", None, ())
    for address in ("nowhere", "host:http", "ray://host:1"):
        with pytest.raises(InputError, match=r"use auto or HOST:PORT"):
            RayCluster(address, "cpu", None, ())


def test_without_the_package_ray_the_error_is_one_line(say, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "tiny.yaml").write_text(TINY)
    refused(say("run", "tiny.yaml", "--ray", "auto"), "error: --ray: Ray is not installed (")
    assert not (tmp_path / "runs").exists()


@with_ray
@pytest.mark.long
def test_a_loss_and_a_metric_from_files_make_the_same_table_on_a_cluster(head, tmp_path):
    write_own_loss(tmp_path)
    tables = []
    for store, workers in (("plain", ("--workers", "1")), ("ray", ("--ray", head[0], "--workers", "2"))):
        answer = reproduce(
            tmp_path, "run", "files/experiment.yaml", "--device", "cpu", "--store", f"{store}/store.sqlite", *workers
        )
        assert (answer.code, answer.err) == (0, "")
        tables.append((tmp_path / store / "tables" / "experiment.csv").read_text())
    assert "users_own" in tables[0]
    assert tables[0] == tables[1]
    assert "2 trainings at a time" in answer.out
