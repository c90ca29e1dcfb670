"""`packaging/slurm.sbatch` starts Ray on all nodes and then the run, with stand-ins for the programs of a cluster."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import TINY, environment
from tests.support.processes import wait_until

SCRIPT = Path(__file__).resolve().parents[3] / "packaging" / "slurm.sbatch"

# Each stand-in notes how it was called.
STAND_INS = {
    "scontrol": "printf '%s\\n' $NODES",
    "hostname": "echo 10.0.0.1",
    "ray": "",
    "srun": "",
    # The first call counts the nodes of the cluster, the second is the run.
    "python": 'if [ "$1" = -m ]; then touch "$HERE/runs"; '
    "trap 'sleep 0.5; echo run stopped >> \"$HERE/calls\"; exit 143' TERM; "
    'if [ -n "$LONG" ]; then while :; do sleep 0.1; done; fi; exit "$CODE"; fi; cat > "$HERE/counts_nodes.py"',
}


@pytest.fixture
def started(tmp_path):
    def start(nodes: str, **variables: str) -> "subprocess.Popen[str]":
        (tmp_path / "bin").mkdir()
        for name, does in STAND_INS.items():
            program = tmp_path / "bin" / name
            program.write_text(f'#!/bin/bash\necho "{name} $*" >> "$HERE/calls"\n{does}\n')
            program.chmod(0o755)
        environment = {
            **os.environ,
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HERE": str(tmp_path),
            "NODES": nodes,
            "SLURM_JOB_NODELIST": "n[1-3]",
            "SLURM_JOB_ID": "77",
            "SLURM_CPUS_ON_NODE": "16",
            "CODE": "0",
            "LONG": "",
            **variables,
        }
        return subprocess.Popen(
            ["bash", str(SCRIPT), "tiny.yaml", "--data", "a folder"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


@pytest.mark.parametrize(("nodes", "code"), [("n1 n2 n3", 0), ("n1", 2)])
def test_ray_starts_on_all_nodes_before_the_run_and_ends_after_it(started, tmp_path, nodes, code):
    process = started(nodes, CODE=str(code))
    printed, _ = process.communicate(timeout=60)
    assert (process.returncode, printed) == (code, "")
    calls = (tmp_path / "calls").read_text().splitlines()
    address, count = "10.0.0.1:20077", len(nodes.split())
    head = "ray start --head --node-ip-address 10.0.0.1 --port 20077 --num-cpus 16"
    others = "srun --nodes 2 --ntasks 2 --ntasks-per-node 1 --exclude n1 --kill-on-bad-exit=0 ray start --address "
    others += f"{address} --num-cpus 16 --block"
    run = f"python -m reproduce run tiny.yaml --data a folder --ray {address}"
    (started_head,) = [call for call in calls if call.startswith(head)]
    assert [call for call in calls if call.startswith("srun")] == [others] * (count > 1)
    steps = [started_head, f"python - {address} {count}", run, "ray stop --force"]
    assert sorted(steps, key=calls.index) == steps
    compile((tmp_path / "counts_nodes.py").read_text(), "counts_nodes.py", "exec")


def test_the_signal_before_the_limit_reaches_the_run_and_the_script_waits_for_it(started, tmp_path):
    process = started("n1", LONG="1")
    wait_until(lambda: (tmp_path / "runs").exists())
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert (tmp_path / "calls").read_text().splitlines()[-2:] == ["run stopped", "ray stop --force"]


@pytest.mark.slow
def test_a_job_array_trains_a_method_in_each_task_and_the_merge_trains_nothing(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    arguments = ["stores", "untrained,contrastive", "tiny.yaml", "--device", "cpu", "--compare", "contrastive"]

    def bash(script, **variables):
        command = ["bash", str(SCRIPT.with_name(script)), *arguments]
        known = {**environment(), "PATH": path, **variables}
        done = subprocess.run(command, cwd=tmp_path, env=known, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    for task in "01":
        bash("slurm_array.sbatch", SLURM_ARRAY_TASK_ID=task)
    said = bash("slurm_merge.sbatch")
    assert "0 trainings made" in said
    assert "nothing is left to do" in said or "0 to do" in said
