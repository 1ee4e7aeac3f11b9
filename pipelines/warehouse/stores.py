"""Opens the store at a location: a folder or `s3://bucket/prefix`."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from pipelines.base.address import is_s3, redacted
from pipelines.base.errors import UsageError
from pipelines.warehouse.storage import Store

if TYPE_CHECKING:
    from pipelines.warehouse.storage_s3 import S3Store


def open_store(location: str, *, hurried: bool = False, **reach: Any) -> Store:
    """The store at a folder or an `s3://bucket/prefix`; `reach` matters to S3 alone. A `hurried` one soon gives up.

    `reach` is endpoint_url, region and profile, where they are known. Raises UsageError for any other location.
    """
    if is_s3(location):
        from pipelines.warehouse.storage_s3 import S3Store

        return S3Store(location, hurried=hurried, **reach)
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
        self._reached: dict[frozenset[tuple[str, str | None]], S3Store] = {}
        self._lock = Lock()

    def open(self, location: str, **reach: Any) -> Store:
        """The store at a location, as `open_store` opens it."""
        if not is_s3(location):
            return open_store(location)
        from pipelines.warehouse.storage_s3 import S3Store

        key = frozenset(reach.items())
        with self._lock:
            if key not in self._reached:
                self._reached[key] = S3Store(location, **reach)
        return self._reached[key].at(location)
