"""Downloads that stop, go on, lie or leave the folder; against a server of this machine's own."""

import hashlib
import io
import os
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from protocols import download as module
from protocols.download import DownloadError, download, unpack
from tests.support.file_server import serving

CONTENT = os.urandom(300_000)
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def server():
    with serving(CONTENT) as running:
        yield running


@pytest.fixture
def to(tmp_path):
    return tmp_path / "new" / "file.bin"


def partial_of(to: Path) -> Path:
    return to.with_name(to.name + ".partial")


def started(to: Path, content: bytes) -> None:
    to.parent.mkdir()
    partial_of(to).write_bytes(content)


def refused(*words: str):
    return pytest.raises(DownloadError, match="".join(f"(?=.*{word})" for word in words))


def whole(to: Path) -> bool:
    return to.read_bytes() == CONTENT and not partial_of(to).exists()


def test_a_file_arrives(server, to, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 70_000)
    steps = []
    download(server.url, to, md5=MD5, size=len(CONTENT), progress=lambda done, total: steps.append((done, total)))
    assert whole(to)
    assert steps == [(done, 300_000) for done in (70_000, 140_000, 210_000, 280_000, 300_000)]
    assert server.asked == [None]


def test_what_is_there_is_not_fetched_again(server, to):
    started(to, CONTENT[:123_456])
    steps = []
    download(server.url, to, md5=MD5, progress=lambda done, total: steps.append((done, total)))
    assert whole(to)
    assert server.asked == ["bytes=123456-"]
    assert steps[-1] == (300_000, 300_000)


def test_a_connection_that_ends_early_loses_nothing(server, to):
    server.cut_after = 100_000
    for done in (100_000, 200_000):
        with refused("connection ended before the file was complete; run the same command again to continue"):
            download(server.url, to, md5=MD5)
        assert partial_of(to).read_bytes() == CONTENT[:done]
        assert not to.exists()
    download(server.url, to, md5=MD5)
    assert whole(to)
    assert server.asked == [None, "bytes=100000-", "bytes=200000-"]


def test_a_server_without_parts_sends_all_again(server, to):
    server.ranges = False
    started(to, b"x" * 50_000)
    download(server.url, to, md5=MD5)
    assert whole(to)
    assert server.asked == ["bytes=50000-"]


def test_a_partial_file_that_is_whole_only_gets_its_name(server, to):
    started(to, CONTENT)
    download(server.url, to, md5=MD5)
    assert whole(to)
    assert server.asked == ["bytes=300000-"]


def test_a_partial_file_longer_than_the_file_is_of_another(server, to):
    started(to, CONTENT + b"more")
    download(server.url, to, md5=MD5)
    assert whole(to)
    assert server.asked == ["bytes=300004-", None]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"md5": "0" * 32}, (f"MD5 checksum {MD5} instead of 00000",)),
        ({"sha256": "0" * 9}, ("its SHA-256 begins with", "instead of 000000000")),
        ({"size": 300_001}, ("300,000 bytes instead of the published 300,001",)),
    ],
)
def test_another_file_than_published_is_not_kept(server, to, said, words):
    with refused(*words):
        download(server.url, to, **said)
    assert list(to.parent.iterdir()) == []


def test_without_resuming_nothing_is_kept_of_a_broken_download(server, to):
    server.cut_after = 100_000
    with refused("connection ended before the file was complete"):
        download(server.url, to, resume=False)
    assert list(to.parent.iterdir()) == []


def test_without_resuming_one_file_can_be_fetched_by_several_at_once(server, to):
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: download(server.url, to, sha256=sha256, resume=False), range(12)))
    assert to.read_bytes() == CONTENT
    assert list(to.parent.iterdir()) == [to]
    assert server.asked == [None] * 12


def test_a_file_that_is_gone(server, to):
    server.gone = True
    with refused("file.bin: cannot be fetched", "404", "again"):
        download(server.url, to)
    started_before = list(to.parent.iterdir())
    assert started_before == []


# Unpacking


def make_tar(path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for member, content in members:
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


def make_zip(path: Path, members: list[tuple[zipfile.ZipInfo | str, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member, content in members:
            file.writestr(member, content)
    return path


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


FILES = {"birds/images/a.jpg": b"a", "birds/images/b.jpg": b"b" * 5000, "notes.txt": b"n"}


def archive(folder: Path, kind: str) -> Path:
    if kind == "zip":
        return make_zip(folder / "a.zip", list(FILES.items()))
    return make_tar(folder / "a.tgz", [(tarfile.TarInfo(name), content) for name, content in FILES.items()])


@pytest.mark.parametrize("kind", ["zip", "tgz"])
def test_archives_are_unpacked_over_what_an_interrupted_call_left(tmp_path, kind):
    half = tmp_path / "to" / "birds" / "images" / "b.jpg"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"b")
    unpack(archive(tmp_path, kind), tmp_path / "to")
    assert tree(tmp_path / "to") == FILES


@pytest.mark.parametrize("kind", ["zip", "tgz"])
def test_nothing_is_written_outside_of_the_folder(tmp_path, kind):
    if kind == "zip":
        unpack(make_zip(tmp_path / "a.zip", [("a/../../out.txt", b"x"), ("/etc.txt", b"x")]), tmp_path / "deep" / "to")
    else:
        path = make_tar(tmp_path / "a.tgz", [(tarfile.TarInfo("../out.txt"), b"x")])
        with refused(str(path), "cannot be unpacked .*outside the destination"):
            unpack(path, tmp_path / "deep" / "to")
    assert {path.name for path in tmp_path.iterdir()} == {f"a.{kind}", "deep"}
    assert {path.name for path in (tmp_path / "deep").iterdir()} == {"to"}


@pytest.mark.parametrize("kind", ["zip", "tgz"])
@pytest.mark.parametrize("harm", ["cut", "no archive", "changed"])
def test_a_broken_archive_is_told(tmp_path, kind, harm):
    path = archive(tmp_path, kind)
    content = path.read_bytes()
    # The zip's first file's name and sizes are told at its end again; its compressed bytes are not.
    changed = content[:50] + bytes(20) + content[70:]
    path.write_bytes({"cut": content[:-40], "no archive": b"<html>not found</html>" * 40, "changed": changed}[harm])
    with refused(str(path), "cannot be unpacked", "get the file again"):
        unpack(path, tmp_path / "to")
