"""Addresses without credentials, for messages and records."""

from typing import overload
from urllib.parse import urlsplit, urlunsplit


@overload
def redacted(uri: str) -> str: ...


@overload
def redacted(uri: str | None) -> str | None: ...


def redacted(uri: str | None) -> str | None:
    """An address without user, password, query or fragment, which may hold secrets."""
    if uri is None or "://" not in uri:
        return uri
    parts = urlsplit(uri)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
