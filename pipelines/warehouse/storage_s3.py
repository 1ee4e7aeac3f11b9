"""S3 and compatible stores, through boto3."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pipelines.base.address import bucket_and_prefix
from pipelines.base.aws import code_of, connect, error_of
from pipelines.base.errors import MalformedError, SourceError, UsageError
from pipelines.base.paths import checked_name
from pipelines.warehouse.storage import Object, Store, fresh_file

T = TypeVar("T")

_PERMISSION = "s3:ListBucket on the bucket and s3:GetObject on its objects"
# Those of an operation's own; parts of a large object need the one to write it.
_PERMISSIONS = {"DeleteObject": "s3:DeleteObject on the bucket's objects"} | dict.fromkeys(
    ("PutObject", "CopyObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"),
    "s3:PutObject on the bucket's objects",
)
_BUFFER_BYTES = 1 << 20
_GONE = "the object does not exist; have it delivered again"
_ELSEWHERE = "the bucket is in another region; check `region` and `endpoint_url`"
_FIXES = {
    "NoSuchBucket": "there is no such bucket; check `location`",
    "NoSuchKey": _GONE,
    "404": _GONE,
    "PermanentRedirect": _ELSEWHERE,
    "AuthorizationHeaderMalformed": _ELSEWHERE,
}
_ABSENT = ("NoSuchKey", "404")
_REFUSED = ("PreconditionFailed", "412", *_ABSENT)
# Two conditional writes met: neither is refused for good.
_CONFLICTS = ("ConditionalRequestConflict", "409")


class S3Store(Store):
    """A bucket, or a prefix of one. An object's ETag stands for its content."""

    def __init__(self, location: str, *, hurried: bool = False, **reach: Any):
        self._locate(location)
        self.options = {name: reach.get(name) for name in ("endpoint_url", "region", "profile")}
        # Checksums that S3 does not require are not understood by every compatible store.
        self._session, self._s3 = connect(
            "s3",
            self.location,
            **self.options,
            hurried=hurried,
            max_pool_connections=16,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # A client cannot travel to an executor, which makes one with credentials of its own.
        return partial(S3Store, self.location, **self.options), ()

    def at(self, location: str) -> S3Store:
        """The store of another location, reached in the same way and through the same client."""
        other = object.__new__(S3Store)
        vars(other).update(vars(self))
        vars(other).pop("_region", None)
        other._locate(location)
        return other

    def list(self, prefix: str = "") -> list[Object]:
        if prefix:
            checked_name(prefix.removesuffix("/"), self.location)
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self._at(prefix))

        def collect() -> list[Object]:
            start = len(self._at(""))
            return [
                Object(item["Key"][start:], item["Size"], item["ETag"].strip('"'), item["LastModified"])
                for page in pages
                for item in page.get("Contents", ())
                if not item["Key"].endswith("/")
            ]

        return sorted(self._requested(collect, prefix), key=lambda item: item.key)

    def open(self, key: str) -> BinaryIO:
        body = self._requested(lambda: self._s3.get_object(**self._object(key))["Body"], key)
        return io.BufferedReader(_Stream(body, lambda call: self._requested(call, key)), _BUFFER_BYTES)

    def read(self, key: str) -> bytes:
        return self._requested(lambda: self._whole(key)["Body"], key)

    def download(self, key: str, path: Path) -> None:
        with fresh_file(path) as temporary:
            address = self._object(key)
            self._requested(lambda: self._s3.download_file(address["Bucket"], address["Key"], str(temporary)), key)

    def upload(self, path: Path, key: str) -> None:
        address = self._object(key)
        with path.open("rb") as file:
            self._requested(lambda: self._s3.upload_fileobj(file, address["Bucket"], address["Key"]), key)

    def move(self, key: str, to: str) -> None:
        address = self._object(to)
        self._requested(lambda: self._s3.copy(self._object(key), address["Bucket"], address["Key"]), key)
        self.delete(key)

    def write(self, key: str, data: bytes) -> None:
        self._requested(lambda: self._s3.put_object(**self._object(key), Body=io.BytesIO(data)), key)

    def write_new(self, key: str, data: bytes) -> bool:
        return self.write_if(key, data, None) is not None

    def write_if(self, key: str, data: bytes, etag: str | None) -> str | None:
        """Write an object while it is the one of `etag` (None: absent); its new tag, or None if it is not."""
        from botocore.exceptions import BotoCoreError, ClientError

        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        for pause in (0.1, 0.5, 2.0, None):
            try:
                return self._s3.put_object(**self._object(key), Body=data, **condition)["ETag"]
            except (ClientError, BotoCoreError) as error:
                code = code_of(error)
                if code in _CONFLICTS and pause is not None:
                    time.sleep(pause)
                elif code in _REFUSED:
                    # An attempt whose answer was lost is sent again, and refused because of itself.
                    answer = getattr(error, "response", None) or {}
                    is_repeated = answer.get("ResponseMetadata", {}).get("RetryAttempts", 0) > 0
                    there = self.read_tagged(key) if is_repeated else None
                    return there[1] if there and there[0] == data else None
                else:
                    raise self._error(error, key) from error

    def read_tagged(self, key: str) -> tuple[bytes, str] | None:
        """An object's bytes and the tag they have for `write_if`; None when it is absent."""

        def get() -> tuple[bytes, str]:
            answer = self._whole(key)
            return answer["Body"], answer["ETag"]

        return self._unless_absent(get, key)

    def update(self, key: str, change: Callable[[bytes | None], bytes]) -> None:
        while True:
            data, etag = self.read_tagged(key) or (None, None)
            if self.write_if(key, change(data), etag):
                return

    def delete(self, key: str) -> None:
        self._requested(lambda: self._s3.delete_object(**self._object(key)), key)

    def exists(self, key: str) -> bool:
        return self._unless_absent(lambda: self._s3.head_object(**self._object(key)), key) is not None

    def uri(self, key: str) -> str:
        return f"s3://{self.bucket}/{self._at(key)}"

    def delta_options(self) -> dict[str, str]:
        keys = self._session.get_credentials()
        options = {"AWS_REGION": self._region}
        if keys:
            frozen = keys.get_frozen_credentials()
            options |= {"AWS_ACCESS_KEY_ID": frozen.access_key, "AWS_SECRET_ACCESS_KEY": frozen.secret_key}
            if frozen.token:
                options["AWS_SESSION_TOKEN"] = frozen.token
        if endpoint := self.options["endpoint_url"]:
            options |= {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": str(endpoint.startswith("http:")).lower()}
        return options

    def _locate(self, location: str) -> None:
        self.bucket, self.prefix = bucket_and_prefix(location)
        self.location = f"s3://{self.bucket}/{self.prefix}".rstrip("/")
        if not self.bucket:
            raise UsageError(f"{location} names no bucket; write s3://bucket/prefix.")

    def _at(self, key: str) -> str:
        return f"{self.prefix}/{key}" if self.prefix else key

    def _object(self, key: str) -> dict[str, str]:
        # A listed key that is refused is a fault of that object alone.
        return {"Bucket": self.bucket, "Key": self._at(checked_name(key, self.location, error=MalformedError))}

    @cached_property
    def _region(self) -> str:
        """Where the bucket is: boto3 finds its own way there, a Delta client needs the region."""
        if self.options["region"] or self.options["endpoint_url"]:
            return self._s3.meta.region_name or "us-east-1"
        answer = self._requested(lambda: self._s3.head_bucket(Bucket=self.bucket), "")
        return answer.get("BucketRegion") or self._s3.meta.region_name or "us-east-1"

    def _whole(self, key: str) -> dict[str, Any]:
        """The answer of a GET with its bytes. One that breaks off is requested again, which boto3 does not do."""
        from botocore.exceptions import HTTPClientError, IncompleteReadError

        for pause in (0.1, 0.5, 2.0, None):
            answer = self._s3.get_object(**self._object(key))
            try:
                return answer | {"Body": answer["Body"].read()}
            except (HTTPClientError, IncompleteReadError):
                if pause is None:
                    raise
                time.sleep(pause)
        raise AssertionError("unreachable")

    def _requested(self, call: Callable[[], T], key: str) -> T:
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return call()
        except (ClientError, BotoCoreError, Boto3Error, KeyError, TypeError) as error:
            raise self._error(error, key) from error

    def _unless_absent(self, call: Callable[[], T], key: str) -> T | None:
        try:
            return self._requested(call, key)
        except SourceError as error:
            if code_of(error.__cause__) in _ABSENT:
                return None
            raise

    def _error(self, error: Exception, key: str) -> SourceError:
        permission = _PERMISSIONS.get(getattr(error, "operation_name", ""), _PERMISSION)
        found = error_of(error, self.uri(key), permission, _FIXES)
        # What was removed after it was listed is a fault of that object alone.
        return MalformedError(str(found)) if code_of(error) in _ABSENT else found


class _Stream(io.RawIOBase):
    """The bytes of an answer; one that breaks off is an error like that of a request."""

    def __init__(self, body: Any, requested: Callable[[Callable[[], bytes]], bytes]):
        self._body, self._requested = body, requested

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._requested(lambda: self._body.read(len(buffer)))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._body.close()
        super().close()
