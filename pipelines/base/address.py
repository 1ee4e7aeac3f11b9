"""Addresses of S3 by their parts, and addresses without credentials, for messages and records."""

from typing import overload
from urllib.parse import urlsplit, urlunsplit

_S3 = "s3://"


def is_s3(location: str) -> bool:
    """Whether a location is in S3, not a folder."""
    return location.startswith(_S3)


def bucket_and_prefix(location: str) -> tuple[str, str]:
    """The bucket of a location in S3 and the prefix below it, which may be empty."""
    bucket, _, prefix = location.removeprefix(_S3).rstrip("/").partition("/")
    return bucket, prefix


@overload
def redacted(uri: str) -> str: ...


@overload
def redacted(uri: str | None) -> str | None: ...


def redacted(uri: str | None) -> str | None:
    """An address without user, password, query or fragment, which may hold secrets."""
    if uri is None or "://" not in uri:
        return uri
    if is_s3(uri):
        # A key may contain ? and #.
        bucket, slash, key = uri.removeprefix(_S3).partition("/")
        return f"{_S3}{bucket.rpartition('@')[2]}{slash}{key}"
    parts = urlsplit(uri)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
