"""Commitments asked of AWS itself: the Savings Plans of the account, and the reservations of each region."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipelines.errors import SourceError, UnreachableError, UsageError
from pipelines.settings import CommitmentSource

_DENIED = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException")


def ask_aws(source: CommitmentSource) -> Iterator[tuple[Any, str]]:
    """Each answer with the call it is from. Raises SourceError naming the permission that is missing."""
    plans = _client(source, "savingsplans", source.asked_regions[0])
    asked: dict[str, Any] = {}
    while True:
        answer = _call(plans.describe_savings_plans, "savingsplans:DescribeSavingsPlans", source, asked)
        yield answer, f"[[commitments]] {source.name} savingsplans:DescribeSavingsPlans"
        if not answer.get("nextToken"):
            break
        asked = {"nextToken": answer["nextToken"]}
    for region in source.asked_regions:
        client = _client(source, "ec2", region)
        answer = _call(client.describe_reserved_instances, "ec2:DescribeReservedInstances", source, {})
        place = f"[[commitments]] {source.name}, {client.meta.region_name} ec2:DescribeReservedInstances"
        yield {name: value for name, value in answer.items() if name != "ResponseMetadata"}, place


def _call(call: Any, permission: str, source: CommitmentSource, asked: dict[str, Any]) -> dict[str, Any]:
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    place = f"[[commitments]] {source.name}"
    try:
        answer = call(**asked)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in _DENIED:
            raise SourceError(f"{place}: access is denied; grant {permission}.") from error
        raise UnreachableError(f"{place}: {permission} answered {code}; check the credentials or try later.") from error
    except NoCredentialsError as error:
        raise SourceError(f"{place}: no AWS credentials found; set up a profile or an instance role.") from error
    except BotoCoreError as error:
        mend = "check the network, `regions` and `endpoint_url`"
        raise UnreachableError(f"{place} did not answer {permission} ({str(error).rstrip('.')}); {mend}.") from error
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}


def _client(source: CommitmentSource, service: str, region: str | None) -> Any:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    patience = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=10, read_timeout=60)
    try:
        session = boto3.Session(profile_name=source.profile, region_name=region)
        return session.client(service, endpoint_url=source.endpoint_url, config=patience)
    except (BotoCoreError, ValueError) as error:
        raise UsageError(
            f"[[commitments]] {source.name}: {str(error).rstrip('.')}; check profile, regions and endpoint_url."
        ) from None
