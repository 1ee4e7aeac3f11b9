"""Checks that query AWS: the definition of an export, and the activation of its tags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from pipelines.base.aws import aws_session
from pipelines.config.settings import BillingSource
from pipelines.doctor.finding import Finding, code_of, denied, is_denied
from pipelines.ingest.billing.tags import bare

DEFINITION, ACTIVATION = "export definition", "tags activated"
# The billing services are in this region, whichever the bucket is in.
_HOME = "us-east-1"
# What an export should be set to (facts aws-billing 1.2); the first is what hours need, the others are choices.
NEEDED = {"TIME_GRANULARITY": "HOURLY", "INCLUDE_RESOURCES": "TRUE"}
_CHOSEN = ("INCLUDE_SPLIT_COST_ALLOCATION_DATA", "INCLUDE_CAPACITY_RESERVATION_DATA")


class NoAnswer(Exception):
    """AWS gave no answer: the status of the finding, and why."""

    def __init__(self, message: str, status: str = "not checked"):
        self.status = status
        super().__init__(message)


class AwsExam:
    """The checks of one export that query the billing services of its account."""

    def __init__(self, source: BillingSource, tags: Mapping[str, Sequence[str]], kind: str | None):
        self.source = source
        self.subject = f"billing {source.name}"
        self._tags = tags
        self._kind = kind
        self._bucket, _, prefix = source.location.removeprefix("s3://").rstrip("/").partition("/")
        self._name = (prefix or self._bucket).rpartition("/")[2]

    def findings(self) -> Iterator[Finding]:
        """The export as it is defined, and whether our tag keys are activated."""
        for check, examine in ((DEFINITION, self._definition), (ACTIVATION, self._activation)):
            try:
                yield from examine()
            except NoAnswer as reason:
                status = "warn" if reason.status == "warn" else "not checked"
                yield Finding(self.subject, check, status, str(reason))

    def _definition(self) -> Iterator[Finding]:
        yield self._report() if self._kind == "cur" else self._export()

    def _export(self) -> Finding:
        client = self._client("bcm-data-exports")
        pages = _pages(client.list_exports, "Exports", "bcm-data-exports:ListExports")
        arns = [export["ExportArn"] for export in pages if export["ExportName"] == self._name]
        for arn in arns:
            answer = _answer_of(lambda arn=arn: client.get_export(ExportArn=arn), "bcm-data-exports:GetExport", arn)
            export = answer["Export"]
            destination = export["DestinationConfigurations"]["S3Destination"]
            if destination["S3Bucket"] != self._bucket:
                continue
            settings = next(iter(export["DataQuery"].get("TableConfigurations", {}).values()), {})
            summary = ", ".join(f"{name} {settings.get(name, 'unset')}" for name in (*NEEDED, *_CHOSEN))
            status = answer.get("ExportStatus", {})
            wrong = [f"{name} is not {wanted}" for name, wanted in NEEDED.items() if settings.get(name) != wanted]
            if status.get("StatusCode") == "UNHEALTHY":
                wrong.append(f"AWS reports it as unhealthy: {status.get('StatusReason', 'without a reason')}")
            return self._judged(summary, wrong)
        raise NoAnswer(self._unknown("export"))

    def _report(self) -> Finding:
        client = self._client("cur")
        pages = _pages(client.describe_report_definitions, "ReportDefinitions", "cur:DescribeReportDefinitions")
        for report in pages:
            if (report["ReportName"], report["S3Bucket"]) == (self._name, self._bucket):
                extra = report.get("AdditionalSchemaElements", [])
                refreshed = bool(report.get("RefreshClosedReports"))
                summary = ", ".join(
                    (report["TimeUnit"], *extra, f"closed months {'' if refreshed else 'not '}refreshed")
                )
                wrong = [] if report["TimeUnit"] == "HOURLY" else ["its time unit is not HOURLY"]
                wrong += [] if "RESOURCES" in extra else ["it does not include RESOURCES"]
                wrong += [] if refreshed else ["late refunds and credits of closed months are not delivered"]
                return self._judged(summary, wrong)
        raise NoAnswer(self._unknown("report"))

    def _activation(self) -> Iterator[Finding]:
        client = self._client("ce")
        known = list(_pages(client.list_cost_allocation_tags, "CostAllocationTags", "ce:ListCostAllocationTags"))
        for name, keys in self._tags.items():
            alike = [tag for tag in known if bare(tag["TagKey"]) in {bare(key) for key in keys}]
            active = [tag["TagKey"] for tag in alike if tag["Status"] == "Active"]
            check = f"activated {name}"
            if active:
                yield Finding(self.subject, check, "ok", f"{', '.join(active)}.")
            elif alike:
                summary = ", ".join(tag["TagKey"] for tag in alike)
                fix = "activate it under Cost allocation tags of the payer; usage before that stays untagged"
                yield Finding(self.subject, check, "warn", f"{summary} is not active: {fix}.")
            else:
                why = "a new key is listed up to 24 hours after its first use"
                yield Finding(self.subject, check, "warn", f"AWS lists none of {', '.join(keys)}: {why}.")

    def _judged(self, summary: str, wrong: list[str]) -> Finding:
        message = f"{summary}: {'; '.join(wrong)}." if wrong else f"{summary}."
        return Finding(self.subject, DEFINITION, "warn" if wrong else "ok", message)

    def _unknown(self, thing: str) -> str:
        where = f"called {self._name} into bucket {self._bucket}"
        return f"the account of these credentials has no {thing} {where}; use the credentials of its owner."

    def _client(self, service: str) -> Any:
        from botocore.exceptions import BotoCoreError

        try:
            return self._session.client(service, region_name=_HOME, config=_haste())
        except (BotoCoreError, ValueError) as error:
            raise NoAnswer(_first_line(error)) from None

    @cached_property
    def _session(self) -> Any:
        return aws_session(self.source.profile)


def may_describe_capacity(source: Any) -> Iterator[Finding]:
    """Whether the reserved capacity of each region of a [[reservations]] source may be read from AWS."""
    from botocore.exceptions import BotoCoreError

    for region in source.queried_regions:
        for action in ("DescribeCapacityReservations", "DescribeCapacityBlocks"):
            subject, check = f"reservations {source.name}", region or "region of profile"
            try:
                client = aws_session(source.profile, region).client(
                    "ec2", endpoint_url=source.endpoint_url, config=_haste()
                )
                call = getattr(client, "describe_capacity_" + action.removeprefix("DescribeCapacity").lower())
                # A dry run is refused by this name where the real call would be answered.
                _answer_of(lambda call=call: call(DryRun=True), f"ec2:{action}", "*", answered="DryRunOperation")
                yield Finding(subject, check, "ok", f"ec2:{action} is permitted.")
            except NoAnswer as reason:
                # Without the permission this source cannot be read at all.
                failed = reason.status == "warn"
                yield Finding(subject, check, "fail" if failed else "not checked", str(reason), 3 if failed else 0)
            except (BotoCoreError, ValueError) as error:
                yield Finding(subject, check, "not checked", _first_line(error))


def _pages(call: Callable[..., dict], items: str, action: str) -> Iterator[dict]:
    token: dict[str, str] = {}
    while True:
        answer = _answer_of(lambda token=token: call(**token), action, "*")
        yield from answer.get(items, ())
        if not answer.get("NextToken"):
            return
        token = {"NextToken": answer["NextToken"]}


def _answer_of(call: Callable[[], Any], action: str, resource: str, answered: str = "") -> Any:
    """AWS's answer. NoAnswer for a permission that is missing, or for no answer."""
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
    from botocore.parsers import ResponseParserError

    try:
        return call()
    except NoCredentialsError:
        raise NoAnswer("no AWS credentials found; set up a profile or an instance role.") from None
    except ClientError as error:
        if answered and code_of(error) == answered:
            return None
        if is_denied(error):
            raise NoAnswer(denied(action, resource), "warn") from None
        raise NoAnswer(f"{action} was answered with {_first_line(error)}") from None
    except (BotoCoreError, ResponseParserError) as error:
        raise NoAnswer(f"{action} was not answered: {_first_line(error)}") from None


def _haste() -> Any:
    from botocore.config import Config

    return Config(connect_timeout=3, read_timeout=20, retries={"mode": "standard", "max_attempts": 1})


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") + "."
