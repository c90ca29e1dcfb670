"""Two processes have the same code if files and packages are equal; every difference is named."""

from dataclasses import replace

from reproduce.execution.clusters import nodes as module
from reproduce.execution.clusters.nodes import CodeVersion, code_version, difference


def with_torch(version: CodeVersion, torch: str) -> CodeVersion:
    origin = version.origin.model_copy(update={"versions": {**version.origin.versions, "torch": torch}})
    return replace(version, origin=origin)


def test_a_process_has_its_own_code():
    assert difference(code_version(), code_version()) == ""


def test_a_package_of_another_version_is_named():
    here = code_version()
    assert difference(with_torch(here, "2.0"), with_torch(here, "1.0")) == "torch 1.0 there, 2.0 here"


def test_a_changed_file_is_noticed(tmp_path, monkeypatch):
    for folder in ("losses", "reports"):
        (tmp_path / folder).mkdir()
    loss, page = tmp_path / "losses" / "a.py", tmp_path / "reports" / "page.py"
    loss.write_text("margin = 1\n")
    page.write_text("width = 1\n")
    monkeypatch.setattr(module, "_CHECKOUT", tmp_path)
    before = code_version()
    page.write_text("width = 2\n")
    assert difference(before, code_version()) == ""
    loss.write_text("margin = 2\n")
    assert difference(before, code_version()) == "its files of the suite are not those of this run"
