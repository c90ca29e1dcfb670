"""`claims`: judges claims of papers by their printed numbers and by the runs in the store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.commands.table import Format
from reproduce.commands.terminal import check_format, print_table
from reproduce.errors import InputError
from reproduce.storage import existing_store_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reports.published.eligibility import StoredExperiment
    from results.published.claims_file import Claim

ClaimsFile = Annotated[
    Path | None,
    typer.Argument(
        help="A CSV file of claims; docs/claims.md explains its columns. Without a file, the main claims of the papers."
    ),
]
AnyDataset = Annotated[
    bool,
    typer.Option(
        "--any-dataset", help="Where a claim's dataset was not run, show runs of the two methods on other datasets."
    ),
]


def claims(
    file: ClaimsFile = None,
    output: Format = "terminal",
    any_dataset: AnyDataset = False,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Judge claims that one method is better than another, by the printed numbers and by the runs in the store.

    Print alone tells whether a difference is larger than the noise of the runs behind it. Runs answer holds or
    contradicted under the claim's conditions; under others seen here too, not seen here or the other way here; else
    cannot tell, not compared or not run.
    """
    from reports.published.claim_answers import answer_claims
    from reports.tables.claims_table import claims_table
    from reproduce.outputs.tables import stored_experiments

    check_format(output)
    read = _read(file)
    opened = existing_store_at(store, artifacts)
    if opened is None:
        typer.echo(f"{store}: there is no store yet, so only the printed numbers answer", err=True)
    stored = [] if opened is None else stored_experiments(opened)
    _warn_of_names(read, stored)
    title = "Claims" if file else "Main claims of the papers"
    print_table(claims_table(answer_claims(read, stored, any_dataset), title), output)


def _read(file: Path | None) -> "tuple[Claim, ...]":
    from results.published.claims_file import ClaimsFileError, read_claims, shipped_claims

    if file is None:
        return shipped_claims()
    try:
        return read_claims(file.read_text(encoding="utf-8"), str(file))
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: is not text in UTF-8; save it as CSV with this encoding") from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); give the path of a CSV file") from error
    except ClaimsFileError as error:
        raise InputError(str(error)) from error


def _warn_of_names(read: "Iterable[Claim]", stored: "Iterable[StoredExperiment]") -> None:
    """Say which names are neither in the suite nor in the store, since a misspelled name is never run."""
    from reproduce.config.method_card import card_names
    from results.published.tables import DATASETS, read_published

    methods = {*card_names(), *read_published("methods")["variant"]}
    methods |= {record.method for one in stored for record in one.measured.records}
    datasets = {*DATASETS.values(), *(one.dataset for one in stored)}
    warnings: dict[str, str] = {}
    for claim in read:
        for kind, name, known in (
            ("method", claim.a.method, methods),
            ("method", claim.b.method, methods),
            ("dataset", claim.dataset, datasets),
        ):
            if name not in known:
                text = f"line {claim.line}: no {kind} is called {name!r}; `reproduce {kind}s` lists the names"
                warnings.setdefault(name, text)
    for text in warnings.values():
        typer.echo(text, err=True)
