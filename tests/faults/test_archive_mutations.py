"""Damaged and hostile archives: they are unpacked whole, or refused in one line, and nothing outside changes."""

import io
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.download import DownloadError, unpack
from tests.support.bad_input import SAME_FOLDER, damaged_bytes, time_limit

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")

NAMES = st.sampled_from(
    [
        *("a.jpg", "b/c.jpg", "b", "b/", "b/c.jpg/d", "", ".", "./", "/", "..", "../x", "a/../../x", "/etc/x", "C:/x"),
        *(
            "..\\x",
            "\\x",
            "a\x01b",
            "ä" * 100,
            "x" * 300,
            "a/" * 60 + "x",
            " ",
            "...",
            "b/./c.jpg",
            "[red]",
            "-",
            "~/x",
        ),
        *(".a.zip.unpacking", "there", "there/x", "CON", "nul.txt", "a\n.jpg", "%s", "é\u0301"),
    ]
) | st.text(max_size=6)
CONTENT = st.binary(max_size=40) | st.just(bytes(30_000))
TYPES = st.sampled_from(
    [*(tarfile.REGTYPE,) * 6, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)


@st.composite
def zips(draw: st.DrawFn) -> bytes:
    buffer = io.BytesIO()
    kind = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))
    with zipfile.ZipFile(buffer, "w", kind) as file:
        for name, content in draw(st.lists(st.tuples(NAMES, CONTENT), max_size=4)):
            member = zipfile.ZipInfo(name.encode(errors="ignore").decode())
            member.compress_type = kind
            member.external_attr = draw(st.sampled_from([0, 0o120777 << 16, 0o40755 << 16, 0o100000 << 16]))
            file.writestr(member, content)
    return buffer.getvalue()


@st.composite
def tars(draw: st.DrawFn) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=draw(st.sampled_from(["w", "w:gz"]))) as file:
        for name, content in draw(st.lists(st.tuples(NAMES, CONTENT), max_size=4)):
            member = tarfile.TarInfo(name.encode(errors="ignore").decode())
            member.type, member.linkname = draw(TYPES), draw(NAMES).encode(errors="ignore").decode()
            member.mode = draw(st.sampled_from([0o644, 0, 0o7777]))
            member.size = len(content) if member.type == tarfile.REGTYPE else 0
            file.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@st.composite
def damaged_archives(draw: st.DrawFn) -> tuple[str, bytes]:
    """The suffix and the bytes of an archive, in which up to four places are changed, cut or doubled."""
    suffix = draw(st.sampled_from([".zip", ".tar", ".tgz"]))
    content = draw(zips() if suffix == ".zip" else tars())
    return suffix, draw(damaged_bytes(content))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def unpack_damaged(folder: Path, suffix: str, content: bytes) -> None:
    shutil.rmtree(folder / "deep", ignore_errors=True)
    to = folder / "deep" / "to"
    to.mkdir(parents=True)
    (to / "there").write_text("kept")
    path = folder / "deep" / f"a{suffix}"
    path.write_bytes(content)
    try:
        with time_limit():
            unpack(path, to)
        reason = ""
    except (DownloadError, OSError) as error:
        reason = str(error)
    assert "\n" not in reason
    assert not reason or tree(to) == {"there": b"kept"}
    assert (to / "there").read_text() == "kept"
    assert not (to / f".a{suffix}.unpacking").exists()
    assert {entry.name for entry in folder.iterdir()} == {"deep"}
    assert {entry.name for entry in (folder / "deep").iterdir()} == {"to", path.name}


@settings(max_examples=50, derandomize=True, suppress_health_check=SAME_FOLDER)
@given(archive=damaged_archives())
def test_some_damaged_archives(tmp_path, archive):
    unpack_damaged(tmp_path, *archive)


@pytest.mark.faults
@settings(max_examples=1000, suppress_health_check=SAME_FOLDER)
@given(archive=damaged_archives())
def test_a_thousand_damaged_archives(tmp_path, archive):
    unpack_damaged(tmp_path, *archive)
