"""The address of the suite's repository."""

import subprocess

import pytest

from reproduce.outputs.page import repository_address


def citation(folder, line):
    (folder / "CITATION.cff").write_text(f"cff-version: 1.2.0\n{line}\n")
    return folder


def clone_of(folder, remote):
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", remote], check=True)
    return folder


@pytest.mark.parametrize("written", ["https://github.com/some/suite", "https://github.com/some/suite.git"])
def test_the_citation_file_names_the_address(tmp_path, written):
    clone_of(tmp_path, "https://gitlab.com/other/fork.git")
    assert repository_address(citation(tmp_path, f"repository-code: {written}")) == "https://github.com/some/suite"


def test_without_it_the_clone_names_the_address(tmp_path):
    clone_of(tmp_path, "https://gitlab.com/other/fork.git")
    assert repository_address(citation(tmp_path, "version: 1")) == "https://gitlab.com/other/fork"


@pytest.mark.parametrize(
    "remote",
    [
        "git@github.com:some/suite.git",
        "/some/folder",
        "https://name:secret@github.com/some/suite",
        "https://a.example/x",
    ],
)
def test_an_address_that_is_not_public_is_not_shown(tmp_path, remote):
    assert repository_address(clone_of(tmp_path, remote)) == ""


def test_there_is_no_address_without_citation_and_clone(tmp_path):
    assert repository_address(tmp_path) == ""
