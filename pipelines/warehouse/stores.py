"""Opens the store at a location: a folder or `s3://bucket/prefix`."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from pipelines.base.address import is_s3, redacted
from pipelines.base.errors import UsageError
from pipelines.warehouse.storage import Store

if TYPE_CHECKING:
    from pipelines.warehouse.storage_s3 import S3Store


def open_store(
    location: str,
    *,
    endpoint_url: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    hurried: bool = False,
) -> Store:
    """The store at a folder or an `s3://bucket/prefix`; options matter to S3 alone. A `hurried` one soon gives up.

    Raises UsageError for any other location.
    """
    if is_s3(location):
        from pipelines.warehouse.storage_s3 import S3Store

        return S3Store(location, endpoint_url=endpoint_url, region=region, profile=profile, hurried=hurried)
    if "://" in location:
        raise UsageError(f"{redacted(location)} is neither a folder nor s3://bucket/prefix; change `location`.")
    from pipelines.warehouse.storage_local import LocalStore

    return LocalStore(location)


class Stores:
    """Opens stores for one piece of work; those on S3 that are reached alike share one client.

    Making a client takes a tenth of a second of processor time. It keeps the credentials it was made with, so
    whatever runs for days opens stores anew for each piece of work.
    """

    def __init__(self) -> None:
        self._reached: dict[tuple[str | None, ...], S3Store] = {}
        self._lock = Lock()

    def open(self, location: str, *, endpoint_url: str | None, region: str | None, profile: str | None) -> Store:
        """The store at a location, as `open_store` opens it."""
        if not is_s3(location):
            return open_store(location)
        from pipelines.warehouse.storage_s3 import S3Store

        reach = (endpoint_url, region, profile)
        with self._lock:
            if reach not in self._reached:
                self._reached[reach] = S3Store(location, endpoint_url=endpoint_url, region=region, profile=profile)
        return self._reached[reach].at(location)
