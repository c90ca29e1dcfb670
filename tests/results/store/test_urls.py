"""No password of a URL is shown, also if the URL is misspelt."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from reproduce.storage import open_store, opened_store, storage_paths, store_file
from results.store.database import file_url
from results.store.urls import shown_url, store_place, without_passwords

URLS = {
    "postgresql://me:Geheim77@host/db": "postgresql://me:***@host/db",
    "postgresql+psycopg://me:Geheim77@host:5432/db": "postgresql+psycopg://me:***@host:5432/db",
    "postgresql://:Geheim77@host/db": "postgresql://:***@host/db",
    "postgresql://me:Geh@Geheim77@host/db": "postgresql://me:***@host/db",
    "postgresql://me:a/Geheim77:b@host/db": "postgresql://me:***@host/db",
    "postgresql://host/db?user=me&password=Geheim77&x=1": "postgresql://host/db?user=me&password=***&x=1",
    "postgresql://host/db?sslpassword=Geheim77": "postgresql://host/db?sslpassword=***",
}
PLAIN = ["sqlite:///runs/a:b@c.sqlite", "runs/store.sqlite", "postgresql://me@host/db", "postgresql://host:5432/db"]


@pytest.mark.parametrize(("url", "shown"), URLS.items())
def test_passwords_are_stars(url, shown):
    assert shown_url(url) == shown
    assert "Geheim77" not in without_passwords(f"cannot open {url}: really", url)
    assert "Geheim77" not in without_passwords(f"cannot open {url}: really")


@pytest.mark.parametrize("url", PLAIN)
def test_urls_without_a_password_stay_as_they_are(url):
    assert shown_url(url) == url


def test_pieces_of_a_password_that_a_driver_quotes_are_hidden():
    url = "postgresql://me:p@Geheim77:9@host/db"
    assert without_passwords("no host 'Geheim77' with port '9'; the reason is pale", url) == (
        "no host '***' with port '***'; the reason is pale"
    )


def test_an_encoded_password_is_hidden_in_plain_text_too():
    assert without_passwords("wrong password a b!", "postgresql://me:a%20b%21@host/db") == "wrong password ***"


FOLDERS = [
    *("a%20b", "a b", "really?", "c#1", "e\u0301t\u00e9 '; x", "sqlite:", "postgresql:x@y", "mode=memory", ":memory:"),
    *("%", "%%2F", "a+b", " blank ", "?uri=true", "back\\slash", "\u6587\u5b57"),
]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_path_is_taken_as_it_is_written(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for place in (f"{name}/{name}.sqlite", f"{tmp_path}/{name}/{name}.2"):
        where = storage_paths(place, None, None, None)
        open_store(where)
        assert Path(place).is_file()
        assert (where.artifacts, where.shown_store) == (Path(place).parent / "artifacts", place)
        assert opened_store(place, None).url == place
    assert {path.name for path in tmp_path.iterdir()} == {name}
    assert {path.name for path in (tmp_path / name).iterdir()} == {f"{name}.sqlite", f"{name}.2"}


@pytest.mark.parametrize("name", FOLDERS)
def test_the_url_of_a_file_names_that_file(tmp_path, name):
    url = file_url(tmp_path / name).render_as_string()
    assert Path(sa.make_url(url).database) == tmp_path / name
    assert store_file(url) == tmp_path / name


@pytest.mark.parametrize("url", [*URLS, "sqlite:///a%20b/c.sqlite", "postgres://host/db", "mysql+pymysql://me:p@h/db"])
def test_a_url_stays_a_url(url):
    assert store_place(url) == url
