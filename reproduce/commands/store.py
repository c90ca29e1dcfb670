"""`reproduce store`: checks, exports and imports stores."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from reproduce.commands.options import STORE, Artifacts, StoreAt
from reproduce.errors import InputError
from reproduce.storage import opened_store, storage_paths
from reproduce.terminal import say

app = typer.Typer(
    name="store",
    help="Check a store, or write a store into one file and add such a file to another store.",
    no_args_is_help=True,
)


@app.command()
def check(
    records_only: Annotated[
        bool,
        typer.Option("--records-only", help="Do not look at checkpoints, for a store that was copied without them."),
    ] = False,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Read every row and every checkpoint, and name what is damaged, missing or foreign.

    Ends with exit status 1 if something is damaged or missing. Nothing in the store is changed.
    """
    from reproduce.outputs.store_files import check_files, missing_checkpoints
    from reproduce.run.progress import Bars
    from results.store.check import check_records
    from results.wording import counted

    opened = opened_store(store, artifacts)
    with Bars() as bars:
        records = check_records(opened.database, bars.of("reading rows"))
        findings = list(records.faults)
        if not records_only:
            findings += missing_checkpoints(records, opened.artifacts)
            findings += check_files(records, opened.artifacts, bars.of("reading checkpoints"))
    for finding in findings:
        say(f"{finding.kind}: {finding.name}: {finding.reason}")
    counts = Counter(finding.kind for finding in findings)
    checked = "checkpoints were not checked" if records_only else "all files were read"
    found = f"{counts['damaged']} damaged, {counts['missing']} missing, {counts['foreign']} foreign"
    say(f"{counted(records.rows, 'row')} read, {checked}: {found}")
    if counts["damaged"] or counts["missing"]:
        raise typer.Exit(1)


@app.command("export")
def export_to(
    file: Annotated[Path, typer.Argument(help="The zip file to write.")],
    checkpoints: Annotated[bool, typer.Option("--checkpoints", help="Add the checkpoints.")] = False,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Write records and searches into one file, to attach to a paper or to keep."""
    from reproduce.outputs.store_files import export_store

    opened_store(store, artifacts)
    size = export_store(storage_paths(store, artifacts), file, checkpoints=checkpoints)
    say(f"written to {file}: {size:,} bytes, {'with' if checkpoints else 'without'} checkpoints")


@app.command("import")
def import_from(
    file: Annotated[
        Path,
        typer.Argument(help="A file that `store export` wrote; `fourteen` is that of 13 losses on glyphs, kept here."),
    ],
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Check a file that `store export` wrote, and add what it holds to the store, by fingerprint.

    If the two have different results under one fingerprint, all of these are named, and nothing is added.
    """
    from reproduce.outputs.store_files import KEPT, import_store, kept_methods
    from results.store.experiment_results import FOLDER
    from results.wording import counted

    where = storage_paths(store, artifacts)
    kept = None if file.exists() else KEPT.get(str(file))
    if kept is not None and not (file := FOLDER / f"{kept.record}.zip").is_file():
        raise InputError(f"{file}: comes with a checkout of the suite and not with its package; copy it from there")
    added = ", ".join(counted(number, kind.removesuffix("s")) for kind, number in import_store(file, where).items())
    say(f"added to {where.store}: {added}")
    if kept is not None:
        methods, place = ",".join([*kept_methods(kept), "my_loss.yaml"]), "" if store == STORE else f" --store {store}"
        say(f"train yours only: python -m reproduce run {kept.experiment} --methods {methods} --compare my_loss{place}")
