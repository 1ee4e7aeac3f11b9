"""The whole examination, source by source."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pipelines.config.settings import BillingSource, Settings
from pipelines.doctor.aws import ACTIVATION, DEFINITION, AwsExam
from pipelines.doctor.billing import BillExam
from pipelines.doctor.finding import Finding
from pipelines.doctor.sources import (
    examine_commitments,
    examine_registrations,
    examine_reservations,
    examine_runs,
    examine_warehouse,
)
from pipelines.models.warehouse import work_folder


def examine(settings: Settings, now: datetime, *, ask_aws: bool = False) -> Iterator[Finding]:
    """Every finding about the configured sources at `now`, naive UTC.

    The billing services of AWS are queried for bills on S3, and with `ask_aws` for every bill.
    """
    warehouse, tags = settings.warehouse, settings.tag_keys
    raw_root = work_folder(warehouse.location, warehouse.endpoint_url) / "raw"
    if not settings.billing:
        yield Finding("configuration", "billing", "fail", "no bill is configured; add a [[billing]] source.", 2)
    for source in settings.billing:
        bill = BillExam(source, tags, Path(raw_root), now)
        yield from bill.findings()
        why = _why_not_queried(source)
        if ask_aws or not why:
            yield from AwsExam(source, tags, bill.kind).findings()
        else:
            yield Finding(bill.subject, DEFINITION, "not checked", f"{why}; use --aws to query AWS.")
            yield Finding(bill.subject, ACTIVATION, "not checked", f"{why}; use --aws to query AWS.")
    if not settings.runs:
        yield Finding("configuration", "runs", "warn", "no [[runs]] source: nothing is joined to a run.")
    for source in settings.runs:
        yield from examine_runs(source)
    yield from examine_reservations(settings.reservations)
    yield from examine_registrations(settings.proof)
    yield from examine_commitments(settings.commitments)
    yield from examine_warehouse(warehouse, now)


def _why_not_queried(source: BillingSource) -> str:
    """Why AWS is not queried about a bill by default; empty where it is."""
    if not source.location.startswith("s3://"):
        return "because the bill is a folder"
    return "because endpoint_url points to another store than AWS" if source.endpoint_url else ""
