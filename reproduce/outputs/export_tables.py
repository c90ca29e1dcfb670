"""Results for other tools, as tables in a folder that is whole or absent; without torch."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from reproduce.errors import InputError
from results.store import Store
from results.whole_files import whole_folder

FORMATS = ("parquet", "csv")


@contextmanager
def new_folder(to: Path) -> Iterator[Path]:
    """A folder to fill that becomes `to` if all goes well: nothing half-written ever lies there.

    Raises InputError if `to` holds something already or cannot be made.
    """
    target = to.absolute()
    with ExitStack() as stack:
        try:
            if target.exists() and any(target.iterdir()):
                raise InputError(f"--to {to}: is not empty; name a new folder")
            folder = stack.enter_context(whole_folder(target))
        except OSError as error:
            raise InputError(f"--to {to}: cannot be written ({error.strerror}); choose another place") from error
        yield folder


def export_tables(store: Store, form: str, folder: Path) -> None:
    """Writes the store's runs, folds, curves, test points and class scores as `runs.parquet`, `runs.csv` and so on.

    Raises InputError for an unknown format and for a store without a training.
    """
    if form not in FORMATS:
        raise InputError(f"--format {form!r}: use {' or '.join(FORMATS)}")
    frames = {"folds": store.folds()}
    if frames["folds"].empty:
        raise InputError(f"{store.url}: no finished training yet; make some with `reproduce run`")
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
