"""No command shows the password of a store's URL: not in its lines, its errors or a traceback."""

import io
import sys

import pytest
import typer

from reproduce import cli
from tests.support.command_line import TINY, ask, reproduce

PASSWORD = "Geheim77"


def commands_with_a_store() -> list[str]:
    """All commands with the option --store, as typer knows them."""
    group = typer.main.get_command(cli.app)
    found = []

    def visit(command, name):
        for key, inner in getattr(command, "commands", {}).items():
            visit(inner, f"{name} {key}".strip())
        if not hasattr(command, "commands") and any("--store" in parameter.opts for parameter in command.params):
            found.append(name)

    visit(group, "")
    return sorted(found)


ARGUMENTS = {"run": ["tiny.yaml"], "plan": ["tiny.yaml"], "export model": ["tiny"], "export embeddings": ["tiny"]}

# No server, a port that is none, another database, a missing driver.
URLS = [
    f"postgresql://me:{PASSWORD}@127.0.0.1:9/db",
    f"postgresql://127.0.0.1:9/db?password={PASSWORD}",
    f"postgresql://me:a@b:{PASSWORD}@127.0.0.1/db",
    f"mysql://me:{PASSWORD}@127.0.0.1/db",
    f"postgresql+nodriver://me:{PASSWORD}@127.0.0.1/db",
]


def test_the_commands_with_a_store_are_known():
    assert {"run", "plan", "status", "table", "report", "figure"} <= set(commands_with_a_store())


def test_no_error_shows_the_password(tmp_path, capsys, monkeypatch):
    """`run` has a test of its own: it reads images before it opens the store. `bench` opens no store."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TINY)
    for name in set(commands_with_a_store()) - {"run", "bench"}:
        for url in URLS:
            monkeypatch.setattr(sys, "stdin", io.StringIO())
            words = (*name.split(), *ARGUMENTS.get(name, []), "--store", url)
            answer = ask(*words, capsys=capsys, monkeypatch=monkeypatch)
            assert PASSWORD not in answer.out + answer.err, words
            assert len(answer.err.splitlines()) <= 1, words


@pytest.mark.cluster
def test_a_run_and_its_status_show_stars(tmp_path, postgresql_server):
    url = postgresql_server.new_database()
    (tmp_path / "tiny.yaml").write_text(TINY)
    for command in (
        ("run", "tiny.yaml", "--methods", "untrained", "--workers", "1"),
        ("status",),
        ("plan", "tiny.yaml"),
        ("table", "nowhere"),
        ("report", "tiny"),
    ):
        answer = reproduce(tmp_path, *command, "--store", url)
        assert answer.code == (2 if "nowhere" in command else 0), answer.err
        assert PASSWORD not in answer.out + answer.err
        if command[0] in ("run", "status"):
            assert "postgresql://suite:***@127.0.0.1" in answer.out
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or PASSWORD.encode() not in file.read_bytes(), file


@pytest.mark.cluster
def test_a_wrong_password_is_not_shown(tmp_path, postgresql_server):
    url = postgresql_server.new_database().replace(PASSWORD, "Falsch88")
    answer = reproduce(tmp_path, "status", "--store", url)
    assert answer.code == 2
    assert "password authentication failed" in answer.err
    assert len(answer.err.splitlines()) == 1
    assert "Falsch88" not in answer.out + answer.err


def test_a_missing_driver_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    url = f"postgresql://me:{PASSWORD}@host/db"
    answer = ask("status", "--store", url, capsys=capsys, monkeypatch=monkeypatch)
    assert answer.code == 2
    assert answer.err == (
        "error: store postgresql://me:***@host/db: PostgreSQL needs the package psycopg, the extra `postgres` of this "
        "suite; run `pip install 'psycopg[binary]'`\n"
    )
