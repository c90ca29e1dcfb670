"""Changes core modules in small ways, one at a time, and counts how often their tests notice: `make mutants`.

A changed module is a mutant, and a mutant that no test notices survives. Each one runs in a forked process that has
the libraries loaded already, so that it costs little more than its tests. Files are never changed: an import hook
hands out the changed code. Survivors are printed; each is a missing test, or a change that alters nothing.
"""

import argparse
import ast
import contextlib
import importlib.abc
import importlib.util
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).resolve().parent.parent

# These run over all losses; `-k` takes those of one.
CONTRACTS = ("tests/losses/test_contract.py", "tests/losses/test_refusals.py", "tests/losses/test_schedule.py")

# By module: arguments of pytest for the tests that must notice a change.
TESTS: dict[str, tuple[str, ...]] = {
    "protocols/mlrc.py": ("tests/protocols/test_mlrc.py",),
    "protocols/standard.py": ("tests/protocols/test_standard.py",),
    "protocols/splits.py": ("tests/protocols/test_splits.py",),
    "protocols/search/space.py": ("tests/protocols/search/test_space.py",),
    "protocols/search/study.py": ("tests/protocols/search/test_study.py", "tests/protocols/test_mlrc.py"),
    "protocols/metrics/retrieval.py": ("tests/protocols/metrics/test_retrieval.py",),
    "protocols/metrics/neighbours.py": ("tests/protocols/metrics",),
    "protocols/training/train_fold.py": ("tests/protocols/training", "tests/protocols/test_standard.py"),
    "protocols/evaluation/evaluate_run.py": (
        "tests/protocols/evaluation",
        "tests/protocols/training/test_principal_components.py",
        "tests/protocols/training/train_fold/test_precision.py",
    ),
    "results/spec/racing.py": ("tests/results/spec/test_racing.py",),
    "results/spec/seeds.py": ("tests/contracts/test_fingerprints.py", "tests/protocols/test_setup.py"),
    "results/spec/training_spec.py": ("tests/results/spec", "tests/results/records"),
    "results/store/check.py": ("tests/results/store",),
    "results/store/database.py": ("tests/results/store",),
    "results/store/store.py": ("tests/results/store", "tests/reproduce/commands/test_lists.py"),
    "results/atomic_files.py": ("tests/results/test_atomic_files.py", "tests/faults/test_order_of_writes.py"),
    "results/answer/intervals.py": ("tests/results/answer/test_intervals.py",),
    "results/answer/compare.py": ("tests/results/answer/test_compare.py",),
    "results/answer/values.py": ("tests/results/answer/test_compare.py",),
    "results/answer/pair_tests.py": (
        "tests/results/answer/test_pair_tests.py",
        "tests/results/answer/test_compare.py",
    ),
    "results/answer/question.py": ("tests/results/answer/test_question.py",),
    "results/records/records.py": (
        "tests/results/records",
        "tests/results/answer/test_search_findings.py",
        "tests/contracts/test_fingerprints.py::test_fingerprint_of_a_run",
    ),
    "losses/proxy_anchor.py": (
        "tests/losses/test_proxy_anchor.py",
        *CONTRACTS,
        "-k",
        "proxy_anchor and not nir or defaults or refusals",
    ),
    "losses/proxy_isa.py": (
        "tests/losses/test_proxy_isa.py",
        *CONTRACTS,
        "-k",
        "proxy_isa or ProxyISA or defaults or refusals",
    ),
    "losses/ccp.py": (
        "tests/losses/test_ccp.py",
        "tests/losses/test_near_proxies.py",
        *CONTRACTS,
        "-k",
        "ccp or near_proxies or defaults or refusals",
    ),
    "losses/nir.py": ("tests/losses/test_nir.py", *CONTRACTS, "-k", "nir or defaults or refusals"),
    "losses/soft_triple.py": (
        "tests/losses/test_soft_triple.py",
        "tests/losses/test_old_releases.py",
        *CONTRACTS,
        "-k",
        "soft_triple or defaults or refusals",
    ),
    "losses/proxy_gml.py": ("tests/losses/test_proxy_gml.py", *CONTRACTS, "-k", "proxy_gml or defaults or refusals"),
}
MADE = "not long and not faults and not cluster and not late"
"""The tests of `make test`."""

LIBRARIES = (
    *("numpy", "scipy.stats", "pandas", "pydantic", "sqlalchemy", "optuna", "torch", "pytorch_metric_learning.losses"),
    *("PIL.Image", "sklearn.cluster", "hypothesis", "pytest"),
)
"""Loaded once, before the first fork. Nothing of the suite is among them."""

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}
_CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult},
    **{ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.MatMult: ast.Add},
}


UNSEEN = re.compile("VERSION$|^_?(ENTRIES|(SCORED|(GPU_)?CHUNK)_ELEMENTS|(LEAST|SORTED)_ROWS|WAIT_SECONDS)$")
"""Names of constants whose value changes no result."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: str
    line: int
    before: str
    after: str
    code: CodeType

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before}  ->  {self.after}"


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in a node's place."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            changed = deepcopy(node)
            changed.ops[place] = _COMPARED[type(operator)]()
            yield changed
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _CALCULATED:
        changed = deepcopy(node)
        changed.op = _CALCULATED[type(node.op)]()
        yield changed
    elif isinstance(node, ast.BoolOp):
        changed = deepcopy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield changed
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield from (ast.Constant(node.value + 1), ast.Constant(node.value - 1))
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        changed = deepcopy(node)
        changed.test = ast.UnaryOp(ast.Not(), changed.test)
        yield changed
    elif isinstance(node, ast.Return) and node.value is not None and not is_empty(node.value):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Raise | ast.Break | ast.Continue | ast.Expr) or is_kept(node):
        yield ast.Pass()


def is_kept(node: ast.AST) -> bool:
    """Whether a value is written into an object. Without an assignment to a name, its next use would fail anyway."""
    return isinstance(node, ast.Assign) and all(isinstance(one, ast.Attribute | ast.Subscript) for one in node.targets)


def is_empty(node: ast.expr) -> bool:
    """Whether it is None, or False, which says the same to an `if`."""
    return isinstance(node, ast.Constant) and not node.value


def places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Parent, field and index of all nodes that may change, which are not annotations, docstrings or messages."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "ops", "op", "bases"):
            continue
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if not isinstance(child, ast.AST) or not may_change(child):
                continue
            yield node, field, index
            if not isinstance(child, ast.Raise | ast.JoinedStr):
                yield from places(child)


def may_change(node: ast.AST) -> bool:
    """Not docstrings, checks of what is equally long, versions, and sizes that cost only time: no test sees them."""
    if isinstance(node, ast.Assign):
        return not any(isinstance(one, ast.Name) and UNSEEN.search(one.id) for one in node.targets)
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    keyword = isinstance(node, ast.keyword) and node.arg in ("strict", "stacklevel")
    return not (docstring or keyword or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"))


def put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def mutants_of(path: str) -> list[Mutant]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = []
    for parent, field, index in list(places(tree)):
        value = getattr(parent, field)
        original = value if index is None else value[index]
        for changed in changes(original):
            line = getattr(original, "lineno", 0)
            put(parent, field, index, ast.copy_location(changed, original))
            code = compile(ast.fix_missing_locations(tree), str(ROOT / path), "exec")
            put(parent, field, index, original)
            found.append(Mutant(path, line, first_line(original), first_line(changed), code))
    return found


def first_line(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0][:70]


class ChangedModule(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports a mutant in place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self.name = mutant, mutant.path.removesuffix(".py").replace("/", ".")

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, ROOT / self.mutant.path, loader=self)

    def get_code(self, fullname: str) -> CodeType:
        return self.mutant.code

    def get_source(self, fullname: str) -> str:
        return (ROOT / self.mutant.path).read_text(encoding="utf-8")


def in_fork(work: Callable[[], int]) -> int:
    """Start a process of its own group; return its id."""
    child = os.fork()
    if child == 0:
        os.setsid()
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    return child


def run_tests(path: str, marks: str, folder: Path, mutant: Mutant | None) -> int:
    """Exit code of the module's tests, in this process."""
    import pytest
    from hypothesis import Phase, settings

    if mutant is not None:
        sys.meta_path.insert(0, ChangedModule(mutant))
    with (folder / f"{os.getpid()}.txt").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    # A failing example need not be made small, and none is kept.
    settings.register_profile("mutants", deadline=None, database=None, phases=(Phase.explicit, Phase.generate))
    options = ("-x", "-q", "-m", marks, "-p", "no:cacheprovider", "--hypothesis-profile", "mutants")
    return int(pytest.main([*options, "--basetemp", str(folder / str(os.getpid())), *TESTS[path]]))


def exit_codes(
    work: Callable[[Mutant | None], int], mutants: Sequence[Mutant | None], seconds: float
) -> Iterator[tuple[int, int]]:
    """Run the tests for each mutant, on all cores; yield its place and the exit code, 1 where the time is over."""
    waiting, running = list(enumerate(mutants))[::-1], {}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            place, mutant = waiting.pop()
            child = in_fork(partial(work, mutant))
            running[child] = place, time.monotonic() + seconds
        for child, (place, until) in list(running.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                yield place, os.waitstatus_to_exitcode(status)
                del running[child]
            elif time.monotonic() > until:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                yield place, 1
                del running[child]
        time.sleep(0.02)


def survivors_of(path: str, most: int, seed: int, folder: Path) -> tuple[list[Mutant], int]:
    """The mutants that no test notices, and the number of all that were tried.

    Slow tests run only for the mutants that all others let live.

    Raises:
        SystemExit: The tests fail without any change.
    """
    mutants = mutants_of(path)
    alive = drawn = random.Random(f"{seed} {path}").sample(mutants, min(most, len(mutants)))
    for marks in (f"{MADE} and not slow", MADE):
        work, started = partial(run_tests, path, marks, folder), time.monotonic()
        if any(code for _, code in exit_codes(work, [None], 300)):
            output = max(folder.glob("*.txt"), key=os.path.getmtime)
            raise SystemExit(f"{path}: its tests fail without a change\n{output.read_text()[-2000:]}")
        # Two run side by side.
        seconds = 10 + 5 * (time.monotonic() - started)
        alive = [alive[place] for place, code in exit_codes(work, alive, seconds) if code == 0]
    return sorted(alive, key=lambda one: one.line), len(drawn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="paths of modules; all of the table without any")
    parser.add_argument("--most", type=int, default=25, help="most mutants of a module")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are drawn")
    parser.add_argument("--least", type=float, default=0.9, help="share of killed mutants below which the run fails")
    asked = parser.parse_args()
    if unknown := set(asked.modules) - TESTS.keys():
        parser.error(f"no tests are named for {', '.join(sorted(unknown))}; tests/mutants.py has the table")
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in LIBRARIES:
        importlib.import_module(name)
    tried, survived = 0, 0
    for path in asked.modules or TESTS:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            alive, number = survivors_of(path, asked.most, asked.seed, Path(folder))
        tried, survived = tried + number, survived + len(alive)
        print(f"{path}: {number - len(alive)} of {number} killed in {time.monotonic() - started:.0f} s", flush=True)
        for mutant in alive:
            print(f"    {mutant}", flush=True)
    share = 1 - survived / tried
    print(f"{tried - survived} of {tried} mutants killed: {100 * share:.1f} %")
    raise SystemExit(share < asked.least)


if __name__ == "__main__":
    main()
