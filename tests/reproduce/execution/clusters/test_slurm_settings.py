"""The value of `--slurm`: key=value pairs, whose mistakes are named in one line."""

import pytest

from reproduce.errors import InputError
from reproduce.execution.clusters.slurm_job import SlurmSettings, read_slurm_settings


def test_pairs_are_read_and_the_rest_has_defaults():
    assert read_slurm_settings("time=60") == SlurmSettings(time=60)
    assert read_slurm_settings(" partition=gpu, time=240,gpus=1,cpus=8,mem=32,batch=4") == SlurmSettings(
        time=240, partition="gpu", gpus=1, cpus=8, mem=32, batch=4
    )


def test_a_batch_on_a_gpu_runs_side_by_side_as_far_as_its_cores_allow():
    assert read_slurm_settings("time=60,gpus=1,batch=4").side_by_side(2) == 4
    assert read_slurm_settings("time=60,gpus=1,batch=4,cpus=6").side_by_side(2) == 3
    assert read_slurm_settings("time=60,gpus=1,batch=4,cpus=64").side_by_side(2) == 4
    assert read_slurm_settings("time=60,gpus=1").side_by_side(2) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not one of time=, partition=, gpus=, cpus=, mem=, batch=; for example --slurm partition=gpu"),
        ("partition=gpu", "time= is missing, the limit of a job in minutes; for example"),
        ("time", "'time' is not one of"),
        ("time=", "'time=' is not one of"),
        ("time=60,nodes=2", "'nodes=2' is not one of"),
        ("time=60,time=90", "time is given twice"),
        ("time=1:00:00", "time=1:00:00: use a whole number, at least 15"),
        ("time=14", "time=14: use a whole number, at least 15"),
        ("time=٣٠", "use a whole number"),
        ("time=" + "9" * 5000, "use a whole number"),
        ("time=60,mem=16GB", "mem=16GB: use a whole number, at least 1"),
        ("time=60,batch=0", "batch=0: use a whole number, at least 1"),
        ("time=60,gpus=-1", "gpus=-1: use a whole number, at least 0"),
        ("time=60,gpus=2", "gpus=2: a training uses one GPU; use gpus=0 or gpus=1"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(InputError) as error:
        read_slurm_settings(text)
    assert str(error.value).startswith("--slurm: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
