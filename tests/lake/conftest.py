"""Where a lake lies: in a folder, on S3, or in both in turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lake_places import Place


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    (tmp_path / "warehouse").mkdir()
    return Place(str(tmp_path / "warehouse"), tmp_path)


@pytest.fixture
def s3(tmp_path: Path, s3_endpoint: str) -> Place:
    import boto3

    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket="example-warehouse")
    return Place("s3://example-warehouse/some/prefix", tmp_path, s3_endpoint)


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest) -> Place:
    return request.getfixturevalue(request.param)
