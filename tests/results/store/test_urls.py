"""No password of a URL is shown, also if the URL is misspelt."""

import pytest

from results.store.urls import shown_url, without_passwords

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
