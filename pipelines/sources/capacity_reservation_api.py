"""Reservations asked of AWS itself: EC2's reservations and blocks, SageMaker's training plans, region by region."""

from __future__ import annotations

from typing import Any

from pipelines.errors import SourceError, UnreachableError, UsageError
from pipelines.settings import ReservationSource
from pipelines.sources.capacity_reservation import Reservation
from pipelines.sources.capacity_reservation_answer import reservations_in

# Service, paginator, and the permission of the same name.
CALLS = (
    ("ec2", "describe_capacity_reservations", "ec2:DescribeCapacityReservations"),
    ("ec2", "describe_capacity_blocks", "ec2:DescribeCapacityBlocks"),
    ("sagemaker", "list_training_plans", "sagemaker:ListTrainingPlans"),
)
_DENIED = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException")
_STALE = ("AuthFailure", "ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId",
          "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException")  # fmt: skip
_LACKING = ("InvalidAction", "UnknownOperation", "UnknownOperationException", "UnsupportedOperation")


def ask_aws(source: ReservationSource) -> tuple[list[Reservation], list[str]]:
    """What AWS tells of all configured regions, and what it has no answer for, one sentence each.

    Raises SourceError naming the permission that is missing, UnreachableError where nobody answers.
    """
    found: list[Reservation] = []
    doubts: list[str] = []
    for region in source.asked_regions:
        for service, call, permission in CALLS:
            client = _client(source, service, region)
            place = f"[[reservations]] {source.name}, {client.meta.region_name}"
            pages = _pages(client, call, permission, place)
            if pages is None:
                doubts.append(f"{place}: there is no {permission} here; what it would tell is not known.")
            for page in pages or ():
                found += reservations_in(page, f"{place} {permission}")
    return found, doubts


def _pages(client: Any, call: str, permission: str, place: str) -> list[dict[str, Any]] | None:
    """All pages of a call; None where this region or endpoint does not know it."""
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    try:
        return list(client.get_paginator(call).paginate())
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in _LACKING:
            return None
        if code in _DENIED:
            raise SourceError(f"{place}: access is denied; grant {permission}.") from error
        if code in _STALE:
            raise SourceError(f"{place}: the credentials are not accepted; renew them or check `profile`.") from error
        raise UnreachableError(f"{place}: {permission} answered {code}; try again later.") from error
    except NoCredentialsError as error:
        raise SourceError(f"{place}: no AWS credentials found; set up a profile or an instance role.") from error
    except BotoCoreError as error:
        mend = "check the network, `regions` and `endpoint_url`"
        raise UnreachableError(f"{place} did not answer {permission} ({_sentence(error)}); {mend}.") from error


def _client(source: ReservationSource, service: str, region: str | None) -> Any:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    patience = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=10, read_timeout=60)
    try:
        session = boto3.Session(profile_name=source.profile, region_name=region)
        return session.client(service, endpoint_url=source.endpoint_url, config=patience)
    except (BotoCoreError, ValueError) as error:
        mend = "check profile, regions and endpoint_url"
        raise UsageError(f"[[reservations]] {source.name}: {_sentence(error)}; {mend}.") from None


def _sentence(error: Exception) -> str:
    return str(error).rstrip(".").splitlines()[0]
