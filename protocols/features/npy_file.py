"""Arrays in .npy files, read in parts with ordinary reads.

There is no memory map: if another program writes or shortens a mapped file, the numbers change under the reader, or the
system ends the process (SIGBUS). The system keeps what was read, so processes that read the same file share one copy.
"""

import math
import os
import warnings
from dataclasses import dataclass
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.verified_files import changed

_HEADER_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class NpyFileError(ValueError):
    """A file is no complete .npy file of numbers or texts. The message is the reason, without the file's name."""


@dataclass(frozen=True)
class NpyFile:
    """The array in a file, as its header describes it.

    Attributes:
        shape: Its shape (n, ...).
        dtype: Type of its values.
        first_byte: Where its values begin.
        by_columns: Whether it is a matrix that is stored column by column (Fortran order).
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    first_byte: int
    by_columns: bool

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Read rows (k,) of the array; returns (k, ...). Raises ChangedFileError if the file has become shorter."""
        try:
            with self.path.open("rb", buffering=0) as file:
                taken = self._columns(file, rows) if self.by_columns else self._rows(file, rows)
        except OSError as error:
            raise changed(self.path) from error
        return taken.view(self.dtype).reshape(len(rows), *self.shape[1:])

    def _rows(self, file: FileIO, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        size = math.prod(self.shape[1:]) * self.dtype.itemsize
        taken = np.empty(len(rows) * size, dtype=np.uint8)
        # Rows that follow each other in the file are read at once.
        starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1).tolist()
        for first, last in pairwise([*starts, len(rows)]):
            self._fill(taken[first * size : last * size], file, int(rows[first]) * size)
        return taken

    def _columns(self, file: FileIO, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        (n, width), size = self.shape, self.dtype.itemsize
        if not len(rows):
            return np.empty(0, dtype=np.uint8)
        first, last = int(rows.min()), int(rows.max()) + 1
        column = np.empty((last - first, size), dtype=np.uint8)
        taken = np.empty((len(rows), width, size), dtype=np.uint8)
        for number in range(width):
            self._fill(column.reshape(-1), file, (number * n + first) * size)
            taken[:, number] = column[rows - first]
        return taken.reshape(-1)

    def _fill(self, part: NDArray[np.uint8], file: FileIO, position: int) -> None:
        file.seek(self.first_byte + position)
        read = 0
        while read < len(part):  # One call reads at most 2 GiB.
            more = file.readinto(part[read:].data)
            if not more:
                raise changed(self.path)
            read += more


def open_npy(path: Path) -> NpyFile:
    """Read the header of a file, and check that the file is as long as the header says; raise NpyFileError if not."""
    if not path.is_file():
        raise NpyFileError("no such file")
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of numpy and Python, about the text of a damaged header.
            size = os.fstat(file.fileno()).st_size
            _check_kind(file.read(4), size)
            file.seek(0)
            shape, by_columns, dtype = _HEADER_READERS[np.lib.format.read_magic(file)](file)
            first_byte = file.tell()
    except OSError as error:
        raise NpyFileError(f"cannot be read ({error.strerror})") from error
    except NpyFileError:
        raise
    except Exception as error:  # A header is a Python expression: a torn one can fail in every way.
        raise NpyFileError("not an .npy file, or its header is torn") from error
    if dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0:
        raise NpyFileError(f"not an .npy file of numbers or texts (it holds {dtype} of the shape {shape})")
    described = first_byte + math.prod(shape) * dtype.itemsize
    if size != described:
        raise NpyFileError(f"torn: it has {size:,} bytes, and by its header it should have {described:,}")
    return NpyFile(path, shape, dtype, first_byte, by_columns and len(shape) > 1)


def _check_kind(beginning: bytes, size: int) -> None:
    if not size:
        raise NpyFileError("empty; whatever wrote it did not finish")
    if beginning.startswith(b"PK"):
        raise NpyFileError("an .npz archive, not an .npy file")
