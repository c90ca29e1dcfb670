"""Where a number was made."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from results.records import provenance as origin
from results.records.provenance import processor

ROOT = Path(__file__).resolve().parents[3]


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def fresh_commit():
    origin._commit.cache_clear()
    yield
    origin._commit.cache_clear()


@pytest.fixture
def elsewhere(tmp_path, monkeypatch, fresh_commit):
    """The suite as if its files lay in a folder of their own."""
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(origin, "__file__", str(tmp_path / "results" / "records" / "provenance.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("REPRODUCE_COMMIT", raising=False)
    return tmp_path


def test_the_commit_is_this_checkouts(fresh_commit):
    if not (ROOT / ".git").exists():
        pytest.skip("the tests do not run from a git checkout")
    made = origin.provenance("cpu", threads=3)
    assert made.commit == git(ROOT, "rev-parse", "HEAD")
    assert made.tree_dirty <= bool(git(ROOT, "status", "--porcelain"))
    assert made.tree_dirty >= bool(git(ROOT, "diff", "HEAD", "--name-only", "--", "*.py"))


def test_machine_and_versions_are_told(fresh_commit):
    made = origin.provenance("NVIDIA something", threads=3)
    assert (made.device, made.threads, made.cpu_count) == ("NVIDIA something", 3, origin.granted_cores())
    for package in ("torch", "numpy", "optuna", "pytorch-metric-learning"):
        pytest.importorskip(package.replace("-", "_"))
        assert made.versions[package] == metadata.version(package)
    assert "python" in made.versions
    assert made.processor == processor()


def test_granted_cores_are_those_of_the_process_within_its_quota(tmp_path, monkeypatch):
    monkeypatch.setattr(origin, "_CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)))
    assert origin.granted_cores() == 6
    for written, cores in (("max 100000", 6), ("400000 100000", 4), ("50000 100000", 1), ("800000 100000", 6)):
        (tmp_path / "cpu.max").write_text(f"{written}\n")
        assert origin.granted_cores() == cores


def test_quotas_of_control_groups_of_both_versions_count(tmp_path, monkeypatch):
    monkeypatch.setattr(origin, "_CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(origin, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)))
    inner = tmp_path / "cpu,cpuacct" / "docker" / "a"
    inner.mkdir(parents=True)
    (tmp_path / "own").write_text("9:name=systemd:/x\n4:cpu,cpuacct:/docker/a\n3:cpuset:/\n0::/\n")
    assert origin.granted_cores() == 6
    for folder, quota, cores in ((inner, "-1", 6), (inner, "250000", 2), (inner.parents[1], "100000", 1)):
        (folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
        (folder / "cpu.cfs_period_us").write_text("100000\n")
        assert origin.granted_cores() == cores
    (tmp_path / "own").write_text("4:cpu,cpuacct:/seen/outside/of/the/container\n")
    assert origin.granted_cores() == 1
    (tmp_path / "own").write_text("0::/user.slice\n")
    (tmp_path / "cpu.max").write_text("300000 100000\n")
    assert origin.granted_cores() == 3


def test_code_and_cards_make_a_tree_dirty_and_a_users_file_or_a_new_record_does_not(elsewhere):
    (elsewhere / "results" / "code.py").write_text("x = 1\n")
    (elsewhere / "results" / "measured").mkdir()
    (elsewhere / "results" / "measured" / "old.json").write_text("{}\n")
    git(elsewhere, "init", "-q")
    git(elsewhere, "add", ".")
    git(elsewhere, "commit", "-q", "-m", "first")
    (elsewhere / "results" / "measured" / "old.json").unlink()
    for name in ("my_loss.py", "results/table.json"):
        (elsewhere / name).touch()
    assert origin._commit() == (git(elsewhere, "rev-parse", "HEAD"), False)
    for name in ("more.py", "my code.py", "größe.py", 'a"b.py', "code.py"):
        (elsewhere / "results" / name).write_text("x = 2\n")
        origin._commit.cache_clear()
        assert origin._commit()[1], name
        if name != "code.py":
            (elsewhere / "results" / name).unlink()


@pytest.mark.parametrize("path", [None, ""])
def test_outside_a_checkout_and_without_git_nothing_vouches_for_the_code(elsewhere, monkeypatch, path):
    if path is not None:
        monkeypatch.setenv("PATH", path)
    assert origin._commit() == ("unknown", True)


@pytest.mark.parametrize(("told", "dirty"), [("a" * 40, False), ("a" * 40 + "-dirty", True)])
def test_a_variable_tells_the_commit_of_copied_files(elsewhere, monkeypatch, told, dirty):
    monkeypatch.setenv("REPRODUCE_COMMIT", told)
    assert origin._commit() == ("a" * 40, dirty)


def test_the_checkout_knows_its_commit_better_than_the_variable(elsewhere, monkeypatch):
    monkeypatch.setenv("REPRODUCE_COMMIT", "a" * 40)
    git(elsewhere, "init", "-q")
    git(elsewhere, "commit", "-q", "--allow-empty", "-m", "first")
    assert origin._commit()[0] == git(elsewhere, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    "variables", [("GIT_DIR",), ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"), ("GIT_COMMON_DIR",)]
)
def test_the_repository_whose_hook_starts_the_suite_is_not_the_suites(
    elsewhere, tmp_path_factory, monkeypatch, variables
):
    another = tmp_path_factory.mktemp("paper")
    for folder in (elsewhere, another):
        (folder / "a.txt").write_text(folder.name)
        git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "first")
    own = git(elsewhere, "rev-parse", "HEAD")
    of_hook = {"GIT_WORK_TREE": another, "GIT_INDEX_FILE": another / ".git" / "index"}
    for name in variables:
        monkeypatch.setenv(name, str(of_hook.get(name, another / ".git")))
    assert origin._commit() == (own, False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_checkout_of_another_user_has_its_commit(elsewhere):
    git(elsewhere, "init", "-q")
    git(elsewhere, "commit", "-q", "--allow-empty", "-m", "first")
    head = git(elsewhere, "rev-parse", "HEAD")
    for path in (elsewhere, elsewhere / ".git"):
        os.chown(path, 65534, 65534)
    assert origin._commit() == (head, False)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 167\nmodel name\t: Intel(R) Xeon(R)\n\nmodel name\t: another",
            "Intel(R) Xeon(R), family 6, model 167",
        ),
        ("processor\t: 0\nBogoMIPS\t: 108.00\n", "arm"),
        (None, "arm"),
    ],
)
def test_the_processor_is_named_as_linux_describes_it(text, name, monkeypatch):
    def read(path, encoding):
        if text is None:
            raise FileNotFoundError(path)
        return text

    monkeypatch.setattr(platform, "processor", lambda: "arm")
    monkeypatch.setattr(Path, "read_text", read)
    processor.cache_clear()
    try:
        assert processor() == name
    finally:
        processor.cache_clear()
