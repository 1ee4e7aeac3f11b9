"""S3 and everything that speaks its language, through boto3."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pipelines.errors import SourceError, UnreachableError, UsageError
from pipelines.storage import Object, Store, checked_key, fresh_file

T = TypeVar("T")

_MENDS = {
    "NoSuchBucket": "there is no such bucket; check `location`",
    "AccessDenied": "access is denied; grant s3:ListBucket on the bucket and s3:GetObject on its objects",
    "403": "access is denied; grant s3:ListBucket on the bucket and s3:GetObject on its objects",
    "NoSuchKey": "there is no such object; have it delivered again",
    "404": "there is no such object; have it delivered again",
}


class S3Store(Store):
    """A bucket, or a prefix of one. An object's ETag stands for its content."""

    def __init__(self, location: str, *, endpoint_url: str | None, region: str | None, profile: str | None):
        self.location = location.rstrip("/")
        self.bucket, _, self.prefix = self.location.removeprefix("s3://").partition("/")
        if not self.bucket:
            raise UsageError(f"{location} names no bucket; write s3://bucket/prefix.")
        self.options = {"endpoint_url": endpoint_url, "region": region, "profile": profile}
        self._s3 = self._client()

    def list(self, prefix: str = "") -> list[Object]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self._at(prefix))

        def collect() -> list[Object]:
            start = len(self._at(""))
            return [
                Object(item["Key"][start:], item["Size"], item["ETag"].strip('"'), item["LastModified"])
                for page in pages
                for item in page.get("Contents", ())
                if not item["Key"].endswith("/")
            ]

        return sorted(self._asked(collect, prefix), key=lambda item: item.key)

    def open(self, key: str) -> BinaryIO:
        return self._asked(lambda: self._s3.get_object(**self._object(key))["Body"], key)

    def read(self, key: str) -> bytes:
        return self._asked(lambda: self._s3.get_object(**self._object(key))["Body"].read(), key)

    def download(self, key: str, path: Path) -> None:
        with fresh_file(path) as temporary:
            place = self._object(key)
            self._asked(lambda: self._s3.download_file(place["Bucket"], place["Key"], str(temporary)), key)

    def upload(self, path: Path, key: str) -> None:
        place = self._object(key)
        self._asked(lambda: self._s3.upload_file(str(path), place["Bucket"], place["Key"]), key)

    def write(self, key: str, data: bytes) -> None:
        self._asked(lambda: self._s3.put_object(**self._object(key), Body=io.BytesIO(data)), key)

    def write_new(self, key: str, data: bytes) -> bool:
        from botocore.exceptions import ClientError

        try:
            self._s3.put_object(**self._object(key), Body=data, IfNoneMatch="*")
        except ClientError as error:
            if error.response["Error"]["Code"] in ("PreconditionFailed", "ConditionalRequestConflict", "412", "409"):
                return False
            raise self._sorry(error, key) from error
        return True

    def delete(self, key: str) -> None:
        self._asked(lambda: self._s3.delete_object(**self._object(key)), key)

    def exists(self, key: str) -> bool:
        from botocore.exceptions import ClientError

        try:
            self._s3.head_object(**self._object(key))
        except ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
                return False
            raise self._sorry(error, key) from error
        return True

    def uri(self, key: str) -> str:
        return f"s3://{self.bucket}/{self._at(key)}"

    def delta_options(self) -> dict[str, str]:
        keys = self._session.get_credentials()
        options = {"AWS_REGION": self._s3.meta.region_name or "us-east-1"}
        if keys:
            frozen = keys.get_frozen_credentials()
            options |= {"AWS_ACCESS_KEY_ID": frozen.access_key, "AWS_SECRET_ACCESS_KEY": frozen.secret_key}
            if frozen.token:
                options["AWS_SESSION_TOKEN"] = frozen.token
        if endpoint := self.options["endpoint_url"]:
            options |= {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": str(endpoint.startswith("http:")).lower()}
        return options

    def _at(self, key: str) -> str:
        return f"{self.prefix}/{key}" if self.prefix else key

    def _object(self, key: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": self._at(checked_key(key, self.location))}

    def _client(self) -> Any:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        patience = Config(
            retries={"mode": "standard", "max_attempts": 5}, connect_timeout=10, read_timeout=60, max_pool_connections=16
        )
        try:
            self._session = boto3.Session(
                profile_name=self.options["profile"], region_name=self.options["region"]
            )
            return self._session.client("s3", endpoint_url=self.options["endpoint_url"], config=patience)
        except (BotoCoreError, ValueError) as error:
            raise UsageError(f"{self.location}: {_sentence(error)}; check profile, region and endpoint_url.") from None

    def _asked(self, ask: Callable[[], T], key: str) -> T:
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return ask()
        except (ClientError, BotoCoreError, Boto3Error) as error:
            raise self._sorry(error, key) from error

    def _sorry(self, error: Exception, key: str) -> SourceError:
        from botocore.exceptions import ClientError, NoCredentialsError

        place = self.uri(key)
        if isinstance(error, NoCredentialsError):
            return SourceError(f"{place}: no AWS credentials were found; set up a profile or an instance role.")
        if not isinstance(error, ClientError):
            return UnreachableError(f"{place} did not answer ({_sentence(error)}); check the network and endpoint_url.")
        code = error.response["Error"]["Code"]
        mend = _MENDS.get(code)
        if mend:
            return SourceError(f"{place}: {mend}.")
        return UnreachableError(f"{place}: S3 answered {code}; try again later or check the permissions.")


def _sentence(error: Exception) -> str:
    return str(error).rstrip(".").splitlines()[0]
