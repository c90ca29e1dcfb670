"""A local Ray gives the numbers of local processes bit for bit, replaces dead workers, and leaves no process behind."""

import errno
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest
import torch

from protocols.jobs import TrainJob
from protocols.processes import threads_per_training
from reproduce.errors import InputError
from reproduce.execution.clusters.nodes import CodeVersion, code_version, environment_of_workers
from reproduce.execution.clusters.ray import RayCluster
from reproduce.execution.executor import WorkerDiedError
from reproduce.execution.local import InProcess, LocalProcesses
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.tasks import TrainTask
from results.records.artifacts import weights_path
from results.store.store import Store
from tests.support.command_line import TINY, ask, command, in_background, reproduce
from tests.support.processes import HAS_PROC, descendants, parents, titled, wait_until
from tests.support.scheduling import Observer, carry_out_all, reproduction, without_time
from tests.support.small_problem import COSFACE, TRIPLET, small_problem

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("same_threads_afterwards")]


@pytest.fixture
def needs_ray():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray[client]'")


with_ray = pytest.mark.usefixtures("needs_ray")
with_proc = pytest.mark.skipif(not HAS_PROC, reason="finds processes in /proc")


def cluster(folder, workers=2, device="cpu"):
    return RayCluster("local", device, workers, (folder / "cache", folder / "artifacts"))


def long_problem(folder):
    training = small_problem(folder).training.model_copy(update={"iterations_per_epoch": 100, "max_epochs": 3})
    return small_problem(folder, training=training)


def training_processes(ancestor: int) -> list[int]:
    return titled("ray::_carry_out", ancestor)


@with_ray
def test_a_cluster_gives_the_numbers_of_local_processes_bit_for_bit(tmp_path):
    problem = small_problem(tmp_path / "cache")
    here = carry_out_all(LocalProcesses("cpu", 2), problem, tmp_path / "here")
    there = carry_out_all(cluster(tmp_path), problem, tmp_path / "artifacts")
    assert without_time(here[0]) == without_time(there[0])
    assert without_time(here[1]) == without_time(there[1])
    for mine, theirs in zip(here[2], there[2], strict=True):
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[key], theirs[key]) for key in mine)
    assert [fold.provenance.threads for fold in there[0]] == [threads_per_training()] * 6
    assert there[0][0].best_map_at_r > 0
    assert list((tmp_path / "artifacts").glob(".seen-*")) == []


@with_ray
def test_progress_and_errors_arrive_unchanged(tmp_path):
    problem = small_problem(tmp_path / "cache")
    first, other = problem.fold_specs(TRIPLET, "search", 0)
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    executor = cluster(tmp_path, workers=1)
    try:
        assert executor.ticks() == []
        wrong = executor.submit(TrainTask(TrainJob(first), problem.training_data(other), None))
        with pytest.raises(Exception, match="fold 0") as told:
            wrong.result(120)
        with pytest.raises(Exception, match="fold 0") as expected:
            InProcess("cpu").submit(TrainTask(TrainJob(first), problem.training_data(other), None)).result()
        assert type(told.value) is type(expected.value)
        no_folder = executor.submit(TrainTask(TrainJob(first), problem.training_data(first), blocked / "w.pt"))
        with pytest.raises(OSError, match="file") as broken:
            no_folder.result(120)
        assert broken.value.errno in (errno.ENOTDIR, errno.EEXIST)
        seen = []
        wait_until(lambda: seen.extend(executor.ticks()) or len(seen) >= 5)
    finally:
        executor.close()
    # The first of them is the beginning of the training that was wrong.
    assert [(tick.fingerprint, tick.iterations) for tick in seen] == [(first.fingerprint, n) for n in (0, 0, 0, 3, 6)]


class KillsOneWorker(RayCluster):
    """Kills the process of one training when progress is first reported."""

    killed: int | None = None

    def ticks(self):
        ticks = super().ticks()
        if ticks and self.killed is None and (processes := training_processes(os.getpid())):
            self.killed = processes[0]
            os.kill(self.killed, signal.SIGKILL)
        return ticks


@with_ray
@with_proc
def test_a_killed_worker_costs_one_retry_and_changes_no_number(tmp_path):
    problem = long_problem(tmp_path / "cache")
    folders = (tmp_path / "cache", tmp_path / "artifacts")
    stores, found = {}, {}
    executors = {"calm": lambda: InProcess("cpu"), "killed": lambda: KillsOneWorker("local", "cpu", 2, folders)}
    for name, start in executors.items():
        stores[name] = Store(f"sqlite:///{tmp_path}/{name}.sqlite", tmp_path / name)
        executor = start()
        try:
            found[name] = Scheduler(problem, stores[name], executor, Observer()).run(
                {"triplet": reproduction(problem), "cosface": reproduction(problem, COSFACE)}
            )
        finally:
            executor.close()
    assert executor.killed is not None
    # The other trainings were not disturbed.
    assert ["WorkerCrashedError" in reason for reason in stores["killed"].failures()["reason"]] == [True]
    for method in ("triplet", "cosface"):
        assert without_time(found["calm"][method]) == without_time(found["killed"][method])
    assert len(stores["killed"].folds()) == 4


class LosesOneNode(RayCluster):
    """Kills a whole node when a training on it first reports progress."""

    nodes: Any = None
    lost: Any = None

    def ticks(self):
        ticks = super().ticks()
        if ticks and self.lost is None:
            # The last node that was added is not the one that this process is connected to.
            self.lost = self.nodes.list_all_nodes()[-1]
            self.nodes.remove_node(self.lost, allow_graceful=False)
        return ticks


@pytest.fixture
def two_nodes(needs_ray, monkeypatch):
    """A cluster of two raylets on this machine with one core each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    nodes = Cluster()
    try:
        for _ in range(2):
            nodes.add_node(num_cpus=threads_per_training(), object_store_memory=128 * 2**20, include_dashboard=False)
        yield nodes
    finally:
        nodes.shutdown()


@pytest.mark.long
def test_a_killed_node_costs_retries_and_changes_no_number(tmp_path, two_nodes, monkeypatch):
    monkeypatch.setattr(LosesOneNode, "nodes", two_nodes)
    longer = long_problem(tmp_path / "cache").training.model_copy(update={"max_epochs": 40, "patience": 40})
    problem = small_problem(tmp_path / "cache", training=longer)
    folders = (tmp_path / "cache", tmp_path / "artifacts")
    stores, runs = {}, {}
    executors = {"calm": lambda: InProcess("cpu"), "lost": lambda: LosesOneNode(two_nodes.address, "cpu", 2, folders)}
    for name, start in executors.items():
        stores[name] = Store(f"sqlite:///{tmp_path}/{name}.sqlite", tmp_path / name)
        executor = start()
        try:
            assert executor.workers == {"calm": 1, "lost": 2}[name]
            runs[name] = Scheduler(problem, stores[name], executor, Observer()).run(
                {"triplet": reproduction(problem), "cosface": reproduction(problem, COSFACE)}
            )
        finally:
            executor.close()
    assert executor.lost is not None
    assert len(stores["lost"].failures()) >= 1
    for method in ("triplet", "cosface"):
        assert without_time(runs["calm"][method]) == without_time(runs["lost"][method])
    assert len(stores["lost"].folds()) == 4


@with_ray
@with_proc
def test_closing_ends_running_trainings_and_ray(tmp_path):
    problem = long_problem(tmp_path / "cache")
    settings = problem.training.model_copy(update={"max_epochs": 10_000, "patience": 10_000})
    problem = small_problem(tmp_path / "cache", training=settings)
    before = descendants(os.getpid())
    executor = cluster(tmp_path)
    try:
        futures = [
            executor.submit(TrainTask(TrainJob(spec), problem.training_data(spec), None))
            for spec in problem.fold_specs(TRIPLET, "search", 0)
        ]
        wait_until(executor.ticks)
        wait_until(lambda: len(training_processes(os.getpid())) == 2)
        family = descendants(os.getpid()) - before
    finally:
        executor.close()
    assert family
    wait_until(lambda: not family & set(parents()), 20)
    assert all(isinstance(future.exception(10), WorkerDiedError) for future in futures)


@with_ray
def test_a_lost_cluster_breaks_the_pool_until_it_is_restarted(tmp_path):
    import ray

    problem = small_problem(tmp_path / "cache")
    spec = problem.fold_specs(TRIPLET, "search", 0)[0]
    path = weights_path(tmp_path / "artifacts", spec)
    task = TrainTask(TrainJob(spec), problem.training_data(spec), path)
    executor = cluster(tmp_path, workers=1)
    try:
        ray.shutdown()
        with pytest.raises(BrokenProcessPool, match="the Ray cluster is lost"):
            executor.submit(task)
        assert executor.ticks() == []
        executor.restart()
        assert executor.submit(task).result(120).result.fingerprint == spec.fingerprint
        assert path.exists()
    finally:
        executor.close()


@with_ray
def test_a_node_that_does_not_see_a_folder_is_named(tmp_path, monkeypatch):
    # On a node whose folder is a different one, the file that was made here does not exist.
    monkeypatch.setattr("reproduce.execution.clusters.ray_nodes.mark", lambda folder: folder / ".seen-elsewhere")
    with pytest.raises(InputError) as error:
        cluster(tmp_path, workers=1)
    assert f"node {socket.gethostname()} (" in str(error.value)
    assert f"does not see {tmp_path / 'cache'};" in str(error.value)
    assert "\n" not in str(error.value)


@with_ray
def test_a_node_that_cannot_import_the_suite_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "")
    away = tmp_path / "away"
    away.mkdir()
    (away / "torch.py").write_text("raise ImportError('No module named torch')\n")
    monkeypatch.setattr(
        "reproduce.execution.clusters.ray.environment_of_workers",
        lambda threads: {**environment_of_workers(threads), "PYTHONPATH": str(away)},
    )
    with pytest.raises(InputError, match=r"cannot import this suite \((ImportError|ModuleNotFoundError): No module"):
        cluster(tmp_path, workers=1)


@with_ray
def test_a_node_with_other_code_is_named(tmp_path, monkeypatch):
    other = CodeVersion("another hash", code_version().origin)
    monkeypatch.setattr("reproduce.execution.clusters.ray_nodes.code_version", lambda: other)
    with pytest.raises(
        InputError, match=r"node .* has other code \(its files of the suite are not those of this run\)"
    ):
        cluster(tmp_path, workers=1)


@with_ray
def test_addresses_without_a_cluster_give_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Not listening.
        port = taken.getsockname()[1]
        for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
            with pytest.raises(InputError, match=f"^--ray {address}: no Ray cluster answers at this address") as error:
                RayCluster(address, "cpu", None, ())
            assert "\n" not in str(error.value)
    for address in ("nowhere", "host:http", ""):
        with pytest.raises(InputError, match=r"use auto, local, HOST:PORT or ray://HOST:PORT"):
            RayCluster(address, "cpu", None, ())


def test_without_the_package_ray_the_error_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "tiny.yaml").write_text(TINY)
    answer = ask("run", "tiny.yaml", "--ray", "local", capsys=capsys, monkeypatch=monkeypatch)
    assert answer.code == 2
    assert answer.err.startswith("error: --ray: Ray is not installed (")
    assert answer.err.endswith("run `pip install 'ray[client]'`\n")
    assert len(answer.err.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


@with_ray
def test_the_command_line_makes_the_same_table_with_and_without_ray(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    tables = []
    for store, workers in (("plain", ("--workers", "1")), ("ray", ("--ray", "local", "--workers", "2"))):
        answer = reproduce(
            tmp_path, "run", "tiny.yaml", "--device", "cpu", "--store", f"{store}/store.sqlite", *workers
        )
        assert answer.code == 0, answer.err
        assert answer.err == ""
        tables.append((tmp_path / store / "tables" / "tiny.csv").read_text())
    assert tables[0] == tables[1]
    assert "2 training(s) at a time" in answer.out


@with_ray
@pytest.mark.long
def test_a_loss_and_a_metric_from_files_train_and_test_on_a_cluster(tmp_path):
    # The files are neither in the current folder nor where the workers search for modules.
    (tmp_path / "files").mkdir()
    assert reproduce(tmp_path, "new", "method", "users_own", "--to", "files").code == 0
    metric = "def spread(embeddings, labels):\n    return embeddings.std(dim=0).mean()\n"
    (tmp_path / "files" / "users_metrics.py").write_text(metric)
    methods = "methods: [users_own.yaml]\nmetrics: [./users_metrics.py:spread]"
    (tmp_path / "files" / "mine.yaml").write_text(TINY.replace("methods: [untrained, contrastive]", methods))
    tables = []
    for store, workers in (("plain", ("--workers", "1")), ("ray", ("--ray", "local", "--workers", "2"))):
        answer = reproduce(
            tmp_path, "run", "files/mine.yaml", "--device", "cpu", "--store", f"{store}/store.sqlite", *workers
        )
        assert answer.code == 0, answer.err
        tables.append((tmp_path / store / "tables" / "mine.csv").read_text())
    assert "users_own" in tables[0]
    assert tables[0] == tables[1]


@with_ray
@with_proc
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_stopping_the_command_leaves_no_process(tmp_path, how):
    text = TINY.replace("max_epochs: 2", "max_epochs: 100000").replace("patience: 3", "patience: 100000")
    (tmp_path / "tiny.yaml").write_text(text)
    arguments = command("run", "tiny.yaml", "--device", "cpu", "--ray", "local", "--workers", "2")
    running = in_background(tmp_path, arguments, subprocess.DEVNULL)
    try:
        trainings = wait_until(lambda: training_processes(running.pid), 120)
        family = descendants(running.pid)
        if how == signal.SIGINT:
            os.killpg(running.pid, how)
            _, told = running.communicate(timeout=60)
            assert running.returncode == 130
            assert told == "stopped; everything finished is kept, run the same command to continue\n"
        else:
            running.kill()
            # Ray's own agents take a minute or two to notice.
            family = set(trainings)
        wait_until(lambda: not family & set(parents()), 20)
    finally:
        running.kill()
        running.communicate(timeout=60)
