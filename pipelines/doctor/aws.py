"""Checks that query AWS: the definition of an export, and the activation of its tags."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pipelines.base.address import bucket_and_prefix
from pipelines.base.aws import connect, entries_of, requesting
from pipelines.base.errors import SourceError, TrainledgerError
from pipelines.config.sources import BillingSource
from pipelines.doctor.finding import Finding, Subject, denied, is_denied
from pipelines.ingest.billing.tags import bare, is_of_caller

DEFINITION, ACTIVATION = "export definition", "tags activated"
# What an export should be set to (facts aws-billing 1.2); the first is what hours need, the others are choices.
NEEDED = {"TIME_GRANULARITY": "HOURLY", "INCLUDE_RESOURCES": "TRUE"}
_CHOSEN = (
    "INCLUDE_SPLIT_COST_ALLOCATION_DATA", "INCLUDE_CAPACITY_RESERVATION_DATA", "INCLUDE_IAM_PRINCIPAL_DATA",
)  # fmt: skip


class _Denied(SourceError):
    """A permission that is missing."""


def examine_account(source: BillingSource, tags: Mapping[str, Sequence[str]], kind: str | None) -> Iterator[Finding]:
    """The export as its account defines it, and whether our tag keys are activated there."""
    subject = Subject(f"billing {source.name}")
    definition = _report if kind == "cur" else _export
    for check, findings in (
        (DEFINITION, definition(subject, source)),
        (ACTIVATION, _activation(subject, source, tags)),
    ):
        try:
            # AWS's answers are read in it, and a part of one may be missing.
            with requesting("AWS", check):
                yield from findings
        except _Denied as error:
            yield subject.warn(check, str(error))
        except TrainledgerError as error:
            yield subject.unchecked(check, str(error))


def _export(subject: Subject, source: BillingSource) -> Iterator[Finding]:
    client, (bucket, name) = _client(source, "bcm-data-exports"), _bucket_and_name(source)
    for export in _entries(client, "list_exports", "Exports", "bcm-data-exports:ListExports"):
        if export["ExportName"] != name:
            continue
        with _querying("bcm-data-exports:GetExport", export["ExportArn"]):
            answer = client.get_export(ExportArn=export["ExportArn"])
        if answer["Export"]["DestinationConfigurations"]["S3Destination"]["S3Bucket"] != bucket:
            continue
        settings = next(iter(answer["Export"]["DataQuery"].get("TableConfigurations", {}).values()), {})
        summary = ", ".join(f"{option} {settings.get(option, 'unset')}" for option in (*NEEDED, *_CHOSEN))
        status = answer.get("ExportStatus", {})
        wrong = [f"{option} is not {wanted}" for option, wanted in NEEDED.items() if settings.get(option) != wanted]
        if status.get("StatusCode") == "UNHEALTHY":
            wrong.append(f"AWS reports it as unhealthy: {status.get('StatusReason', 'without a reason')}")
        yield subject.judged(DEFINITION, "; ".join((summary, *wrong)) + ".", is_ok=not wrong)
        return
    yield _unknown(subject, source, "export")


def _report(subject: Subject, source: BillingSource) -> Iterator[Finding]:
    client, (bucket, name) = _client(source, "cur"), _bucket_and_name(source)
    for report in _entries(client, "describe_report_definitions", "ReportDefinitions", "cur:DescribeReportDefinitions"):
        if (report["ReportName"], report["S3Bucket"]) == (name, bucket):
            extra, is_refreshed = report.get("AdditionalSchemaElements", []), bool(report.get("RefreshClosedReports"))
            refreshed = f"closed months {'' if is_refreshed else 'not '}refreshed"
            summary = ", ".join((report["TimeUnit"], *extra, refreshed))
            wrong = [] if report["TimeUnit"] == "HOURLY" else ["its time unit is not HOURLY"]
            wrong += [] if "RESOURCES" in extra else ["it does not include RESOURCES"]
            wrong += [] if is_refreshed else ["late refunds and credits of closed months are not delivered"]
            yield subject.judged(DEFINITION, "; ".join((summary, *wrong)) + ".", is_ok=not wrong)
            return
    yield _unknown(subject, source, "report")


def _activation(subject: Subject, source: BillingSource, tags: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    client = _client(source, "ce")
    known = _entries(client, "list_cost_allocation_tags", "CostAllocationTags", "ce:ListCostAllocationTags")
    for name, keys in tags.items():
        alike = [tag for tag in known if bare(tag["TagKey"]) in {bare(key) for key in keys}]
        active = [tag["TagKey"] for tag in alike if tag["Status"] == "Active"]
        check = f"activated {name}"
        if active:
            yield subject.ok(check, f"{', '.join(active)}.")
        elif alike:
            inactive = ", ".join(tag["TagKey"] for tag in alike)
            fix = "activate it under Cost allocation tags of the payer; usage before that stays untagged"
            yield subject.warn(check, f"{inactive} is not active: {fix}.")
        else:
            why = "a new key is listed up to 24 hours after its first use"
            yield subject.warn(check, f"AWS lists none of {', '.join(keys)}: {why}.")
    active = [tag["TagKey"] for tag in known if tag["Status"] == "Active" and is_of_caller(tag["TagKey"])]
    none = "none; activate keys such as iamPrincipal/team to have the team of who called Amazon Bedrock"
    yield subject.ok("activated tags of callers", f"{', '.join(active) or none}.")


def _unknown(subject: Subject, source: BillingSource, thing: str) -> Finding:
    bucket, name = _bucket_and_name(source)
    where = f"called {name} into bucket {bucket}"
    fix = "use the credentials of its owner"
    return subject.unchecked(DEFINITION, f"the account of these credentials has no {thing} {where}; {fix}.")


def _bucket_and_name(source: BillingSource) -> tuple[str, str]:
    """The bucket of an export, and its name, the last folder of its location."""
    bucket, prefix = bucket_and_prefix(source.location)
    return bucket, prefix.rpartition("/")[2] or bucket


def _client(source: BillingSource, service: str) -> Any:
    # The billing services are in this region, whichever the bucket is in.
    reach = {"endpoint_url": None, "region": "us-east-1", "profile": source.profile}
    return connect(service, f"billing {source.name}", **reach, hurried=True)[1]


def _entries(client: Any, call: str, items: str, action: str) -> list[dict]:
    with _querying(action):
        return entries_of(client, call, items, "AWS", action)


@contextmanager
def _querying(action: str, resource: str = "*") -> Iterator[None]:
    """Turn AWS's errors into sentences; _Denied for a permission that is missing."""
    try:
        with requesting("AWS", action):
            yield
    except SourceError as error:
        if is_denied(error):
            raise _Denied(denied(action, resource)) from error
        raise
