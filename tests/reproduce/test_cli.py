"""`reproduce --help` imports nothing that takes long to load; how an error ends a command, and any on Windows."""

import os
import subprocess
import sys

import pytest

from reproduce.__main__ import main
from reproduce.commands import cli
from tests.support.command_line import ROOT, environment

HEAVY = ("pandas", "scipy", "numpy", "sqlalchemy", "pydantic", "yaml", "optuna", "torch", "matplotlib", "jinja2")
SHOW_IMPORTED = """
import sys
from reproduce.commands.cli import app
app([*sys.argv[1:], "--help"], standalone_mode=False)
print({module.partition(".")[0] for module in sys.modules} & %r, file=sys.stderr)
"""


def imported(*arguments: str) -> tuple[str, str]:
    """What a help command prints, and the set of heavy packages that were imported."""
    code = SHOW_IMPORTED % set(HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment(), capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr.strip()


def test_a_python_without_the_packages_is_told_which_environment_has_them():
    code = "import sys; sys.modules['typer'] = None; from reproduce.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "has no package typer; activate the environment that has it: source .venv/bin/activate" in line


@pytest.mark.parametrize("place", ["{}.py", "{}/__init__.py"])
def test_packages_of_the_suites_names_beside_the_user_or_on_the_path_change_nothing(tmp_path, place):
    for name in ("losses", "protocols", "reports", "results"):
        file = tmp_path / place.format(name)
        file.parent.mkdir(exist_ok=True)
        file.write_text("raise SystemExit('another package')")
    variables = environment() | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    for words in (["methods"], ["table", str(ROOT / "results" / "measured" / "quickstart.json.xz")]):
        done = subprocess.run(
            [sys.executable, "-m", "reproduce", *words], cwd=tmp_path, env=variables, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "Proxy-Anchor" in done.stdout


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("statistics.py", "mine = 1"),
        ("rich/__init__.py", "mine = 1"),
        ("random.py", "raise SystemExit('my script')"),
        ("struct.py", "open('no such file')"),
        ("copy.py", "import no_such_package"),
    ],
)
def test_a_file_on_the_path_that_hides_a_package_is_named(tmp_path, name, content):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(content)
    variables = environment() | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "reproduce", "methods"]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == f"error: {file} hides the package of its name; rename it, or leave PYTHONPATH out\n"


def test_a_notebooks_backend_stops_no_figure(tmp_path):
    (tmp_path / "s.csv").write_text(
        "method,seed,score\n" + "".join(f"{m},{s},{s / 9}\n" for m in "ab" for s in (1, 2, 3))
    )
    done = subprocess.run(
        [sys.executable, "-m", "reproduce", "audit", "s.csv", "--to", "out"],
        cwd=tmp_path,
        env=environment() | {"MPLBACKEND": "module://not_installed.backend_inline"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.glob("out/**/*.svg"))


def test_a_file_called_reproduce_is_passed_by_with_the_option_of_the_documentation(tmp_path):
    (tmp_path / "reproduce.py").write_text("raise SystemExit('mine')")
    help_of = [sys.executable, "-P", "-m", "reproduce", "--help"]
    done = subprocess.run(help_of, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert (done.returncode, "status" in done.stdout) == (0, True)


def test_windows_is_told_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err.count("\n")) == (2, 1)


def test_a_wrong_option_points_to_the_help_of_its_command(say):
    assert "No such option: --skip; see `reproduce fit --help`" in say("fit", "mine", "--skip").err


def test_help_imports_no_heavy_package():
    shown, heavy = imported()
    assert "run" in shown
    assert "status" in shown
    assert heavy == "set()"


@pytest.mark.parametrize("columns", ["0", "00", ""])
def test_a_terminal_of_no_column_is_one_of_unknown_width(columns, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "reproduce", "audit", "missing.csv"],
        cwd=tmp_path,
        env=environment() | {"COLUMNS": columns},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr.count("missing.csv")) == (2, 1)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("libtorch.so: failed to map segment from shared object"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] . can't allocate memory\nframe 0\nframe 1"),
        RuntimeError("can't start new thread"),
    ],
)
def test_a_limit_of_memory_is_one_line(say, monkeypatch, error):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(cli, "app", fails)
    answer = say("methods")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "not enough memory" in answer.err
    assert "fewer --workers" in answer.err


def test_another_error_of_python_is_no_limit_of_memory(monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("a fault of the suite")

    monkeypatch.setattr(cli, "app", fails)
    with pytest.raises(RuntimeError, match="a fault of the suite"):
        cli.main()


SAY_WHAT_ASCII_LACKS = """
import sys
from reproduce.commands import cli
from reproduce.terminal import say
@cli.app.command("probe")
def probe():
    say("caf\\u00e9 \\u2013 \\U0001f600 \\udcff")
    sys.stdout.write("\\u03b1\\n")
    raise cli.InputError("\\u6587")
sys.argv[1:] = ["probe"]
cli.main()
"""


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", (rb"caf\xe9 \u2013 \U0001f600 \udcff", rb"\u03b1", rb"\u6587")),
        ("utf-8", ("caf\u00e9 \u2013 \U0001f600 \\udcff".encode(), "\u03b1".encode(), "\u6587".encode())),
        ("ascii:replace", (b"caf? ? ? ?", b"?", rb"\u6587")),
    ],
)
def test_signs_that_the_output_lacks_are_escaped(encoding, shown):
    code = SAY_WHAT_ASCII_LACKS.replace("\\\\", "\\")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment(), "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout.splitlines() == list(shown[:2])
    assert done.stderr.splitlines() == [b"error: " + shown[2]]


PRINT_A_LONG_TABLE = """
import sys
from rich.table import Table
from reproduce.commands import cli
from reproduce.terminal import output_console
@cli.app.command("probe")
def probe():
    table = Table("name", *("number" for _ in range(40)))
    for row in range(400):
        table.add_row("n" * 50, *(f"{row:09d}" for _ in range(40)), style="bold red")
    output_console().print(table)
sys.argv[1:] = ["probe"]
cli.main()
"""


def test_an_output_that_nobody_reads_is_no_error():
    for code in (
        PRINT_A_LONG_TABLE,
        PRINT_A_LONG_TABLE.replace("output_console().print(table)", "print(10**6 * ' a')"),
    ):
        command = f"'{sys.executable}' -c \"$CODE\" | head -c 1"
        environ = {**environment(), "CODE": code}
        done = subprocess.run(["bash", "-c", command], env=environ, capture_output=True, check=False)
        assert done.stderr == b""
    closed = f"'{sys.executable}' -c '{PRINT_A_LONG_TABLE}' >&- <&-"
    done = subprocess.run(["bash", "-c", closed], env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_files_have_every_digit_and_no_colour():
    done = subprocess.run(
        [sys.executable, "-c", PRINT_A_LONG_TABLE],
        env={**environment(), "FORCE_COLOR": "1", "COLUMNS": "40"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\x1b" not in done.stdout
    assert done.stdout.count("000000399") == 40
