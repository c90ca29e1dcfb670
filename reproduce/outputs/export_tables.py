"""Exports results as Parquet or CSV tables, without torch."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from reproduce.errors import InputError
from results.store.store import Store
from results.whole_files import whole_folder

FORMATS = ("parquet", "csv")


@contextmanager
def new_folder(to: Path) -> Iterator[Path]:
    """Give a temporary folder to write into, and rename it to `to` when everything is written.

    After an error there is no folder `to`, so an export is never incomplete.
    """
    target = to.absolute()
    with ExitStack() as stack:
        try:
            if target.exists() and any(target.iterdir()):
                raise InputError(f"--to {to}: the folder is not empty; give a new folder")
            folder = stack.enter_context(whole_folder(target))
        except OSError as error:
            raise InputError(f"--to {to}: cannot be written ({error.strerror}); choose another folder") from error
        yield folder


def export_tables(store: Store, form: str, folder: Path) -> None:
    """Write the store's runs, folds, curves, test points and class scores as `runs.parquet`, `runs.csv` and so on."""
    if form not in FORMATS:
        raise InputError(f"--format {form!r}: use {' or '.join(FORMATS)}")
    frames = {"folds": store.folds()}
    if frames["folds"].empty:
        raise InputError(f"{store.url}: there is no finished training yet; make some with `reproduce run`")
    frames |= {
        "runs": store.runs(),
        "curves": store.curves(),
        "test_points": store.test_points(),
        "class_scores": store.class_scores(),
    }
    for name, frame in frames.items():
        if form == "parquet":
            frame.to_parquet(folder / f"{name}.parquet", index=False)
        else:
            frame.to_csv(folder / f"{name}.csv", index=False)
