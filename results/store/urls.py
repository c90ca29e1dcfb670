"""Where a store is, and how messages show it. Works without SQLAlchemy, so that `--help` does not wait for it."""

import re
from pathlib import Path
from urllib.parse import unquote

StorePlace = str | Path
"""A SQLAlchemy URL, or the path of a SQLite file, in which `?`, `#` and `%20` mean nothing."""

_URL = re.compile(r"[A-Za-z][\w.+-]+://")
_HIDDEN = "***"
# Greedy, so that a password with an unescaped @ is hidden whole.
_IN_URL = re.compile(r"(?P<before>[\w+.-]+://[^\s:/@?]*:)(?P<secret>.*)@", re.DOTALL)
_IN_TEXT = re.compile(r"([\w+.-]+://[^\s:/@?]*:)\S*@")
_PARAMETER = re.compile(
    r"(?P<before>[?&][^=&\s]*password[^=&\s]*=)(?P<secret>[^&\s]*?)(?=[:;,]?(?:[&\s]|$))", re.IGNORECASE
)


def store_place(text: str) -> StorePlace:
    """Return what `--store` names: a URL stays text, everything else is the path of a file."""
    return text if _URL.match(text) else Path(text)


def shown_url(url: StorePlace) -> str:
    """Return the place of a store for messages: a path, or a URL, which need not be valid, with stars for passwords."""
    if isinstance(url, Path):
        return str(url)
    hidden = _IN_URL.sub(rf"\g<before>{_HIDDEN}@", url)
    return _PARAMETER.sub(rf"\g<before>{_HIDDEN}", hidden)


def without_passwords(text: str, url: StorePlace = "") -> str:
    """Replace the passwords of all URLs in a message by stars.

    Drivers quote parts of a URL that they cannot read, so parts of the password of `url` are hidden too.
    """
    if isinstance(url, Path):
        return text
    if url:
        text = text.replace(url, shown_url(url))
    text = _PARAMETER.sub(rf"\g<before>{_HIDDEN}", _IN_TEXT.sub(rf"\1{_HIDDEN}@", text))
    for part in _password_parts(url):
        text = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", _HIDDEN, text)
    return text


def _password_parts(url: str) -> list[str]:
    """Passwords of a URL and the pieces that a parser could cut them into, the longest first."""
    secrets = [match["secret"] for pattern in (_IN_URL, _PARAMETER) for match in pattern.finditer(url)]
    secrets += [unquote(secret) for secret in secrets]
    parts = {*secrets, *(piece for secret in secrets for piece in re.split(r"[@:/?&=#]", secret))}
    return sorted(parts - {""}, key=len, reverse=True)
