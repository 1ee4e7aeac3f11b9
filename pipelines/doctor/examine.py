"""The whole examination, source by source."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pipelines.config.settings import BillingSource, Settings
from pipelines.doctor.aws import ACTIVATION, DEFINITION, AwsExam
from pipelines.doctor.billing import BillExam
from pipelines.doctor.finding import Finding
from pipelines.doctor.places import (
    examine_commitments,
    examine_registrations,
    examine_reservations,
    examine_runs,
    examine_warehouse,
)
from pipelines.models.warehouse import work_folder


def examine(settings: Settings, now: datetime, *, ask_aws: bool = False) -> Iterator[Finding]:
    """Everything that can be said of the configured sources at `now`, naive UTC.

    AWS's billing services are asked for bills on S3 itself, and with `ask_aws` for every bill.
    """
    place, tags = settings.warehouse, settings.tag_keys
    raw_root = work_folder(place.location, place.endpoint_url) / "raw"
    if not settings.billing:
        yield Finding("configuration", "billing", "fail", "no bill is named; add a [[billing]] source.", 2)
    for source in settings.billing:
        bill = BillExam(source, tags, Path(raw_root), now)
        yield from bill.findings()
        why = _unasked(source)
        if ask_aws or not why:
            yield from AwsExam(source, tags, bill.kind).findings()
        else:
            yield Finding(bill.subject, DEFINITION, "not checked", f"{why}; ask AWS with --aws.")
            yield Finding(bill.subject, ACTIVATION, "not checked", f"{why}; ask AWS with --aws.")
    if not settings.runs:
        yield Finding("configuration", "runs", "warn", "no [[runs]] source: nothing is joined to a run.")
    for source in settings.runs:
        yield from examine_runs(source)
    yield from examine_reservations(settings.reservations)
    yield from examine_registrations(settings.proof)
    yield from examine_commitments(settings.commitments)
    yield from examine_warehouse(place, now)


def _unasked(source: BillingSource) -> str:
    """Why AWS is not asked about a bill of itself; empty where it is."""
    if not source.location.startswith("s3://"):
        return "because the bill is a folder"
    return "because endpoint_url names another store than AWS" if source.endpoint_url else ""
