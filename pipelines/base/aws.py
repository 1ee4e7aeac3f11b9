"""A boto3 session that shares AWS's service descriptions with every other session of this process."""

from __future__ import annotations

from functools import cache
from typing import Any


def aws_session(profile: str | None = None, region: str | None = None) -> Any:
    """A boto3 session with credentials of its own. BotoCoreError for a profile that does not exist."""
    import boto3
    from botocore.session import Session

    core = Session(profile=profile)
    # Each session would parse the megabytes of JSON that describe a service again.
    core.register_component("data_loader", _loader(core.get_config_variable("data_path")))
    return boto3.Session(region_name=region, botocore_session=core)


@cache
def _loader(data_path: str | None) -> Any:
    from botocore.loaders import create_loader

    return create_loader(data_path)
