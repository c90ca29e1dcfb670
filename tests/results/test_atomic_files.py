"""Files and folders that are whole or absent: interrupted writes, full disks, several writers at once."""

import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from results.atomic_files import atomic_folder, file_name, is_sound, try_out, write_atomically


def test_a_file_is_written_with_its_folder(tmp_path):
    path = tmp_path / "new" / "deeper" / "text.md"
    write_atomically(path, "± 0.1")
    assert path.read_bytes() == "± 0.1".encode()
    write_atomically(path, memoryview(b"more bytes"))
    assert path.read_bytes() == b"more bytes"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")

    def full_disk(self, data):
        with self.open("wb") as file:
            file.write(bytes(data)[:2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new content")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_threads_that_write_one_file_do_not_disturb_each_other(tmp_path):
    contents = [str(writer) * 300_000 for writer in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for number in range(5):
            path = tmp_path / str(number) / "deeper" / "file"
            list(pool.map(write_atomically, [path] * 8, contents))
            assert path.read_text() in contents
            assert list(path.parent.iterdir()) == [path]


def test_a_folder_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "a" / "folder"
    with atomic_folder(path) as folder:
        (folder / "file").write_text("1")
        assert not path.exists()
    assert list(tmp_path.rglob("*")) == [path.parent, path, path / "file"]


def test_a_folder_whose_filling_fails_is_absent(tmp_path):
    def fill() -> None:
        with atomic_folder(tmp_path / "folder") as folder:
            (folder / "file").write_text("1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_not_replaced(tmp_path):
    mine = tmp_path / "folder" / "mine"
    mine.parent.mkdir()
    mine.write_text("mine")
    with pytest.raises(OSError, match="not empty"), atomic_folder(mine.parent):
        pass
    assert list(tmp_path.rglob("*")) == [mine.parent, mine]


@pytest.mark.parametrize("name", ["../../etc/x", "a/b", "..", "", "ä b", "tiny"])
def test_names_stay_in_their_folder(name):
    assert re.fullmatch(r"[\w-][\w.-]*", file_name(name))


def test_an_archive_is_sound_if_it_has_members_with_their_content(tmp_path):
    path = tmp_path / "archive.zip"
    assert not is_sound(path)
    with zipfile.ZipFile(path, "w"):
        pass
    assert not is_sound(path), "it is empty"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("member", b"content of the member")
    assert is_sound(path)
    path.write_bytes(path.read_bytes().replace(b"content", b"Content"))
    assert not is_sound(path)


def test_what_cannot_be_written_is_told_before_it_is_made(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "x.md", tmp_path / "folder", tmp_path / f"{'x' * 256}.md"):
        with pytest.raises(OSError, match=r"."):
            write_atomically(path, "text")
        with pytest.raises(OSError, match=r"."):
            try_out(path)
    try_out(tmp_path / "new" / "x.md")
    assert list((tmp_path / "new").iterdir()) == []
