"""The whole examination, source by source."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pipelines.base.address import redacted
from pipelines.base.errors import TrainledgerError
from pipelines.config.settings import (
    BillingSource,
    CommitmentSource,
    ProofSource,
    ReservationSource,
    RunSource,
    Settings,
    Warehouse,
)
from pipelines.doctor.aws import ACTIVATION, DEFINITION, AwsExam, may_describe_capacity
from pipelines.doctor.billing import BillExam
from pipelines.doctor.finding import Finding, bucket_arn, failed, object_arn
from pipelines.ingest.inventory.commitments import read_commitments
from pipelines.ingest.inventory.registrations import REGISTRATION, read_registrations
from pipelines.ingest.inventory.reservations import read_reservations, reservation_files
from pipelines.ingest.runs.tracker import runs_fingerprint
from pipelines.models.warehouse import work_folder
from pipelines.warehouse.publication import Publications
from pipelines.warehouse.storage import Store
from pipelines.warehouse.stores import open_store


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


def examine_runs(source: RunSource) -> Iterator[Finding]:
    """A run source: reachable, of a kind that is read, and with something in it."""
    subject = f"runs {source.name}"
    try:
        found = _open(source).list()
    except TrainledgerError as error:
        yield failed(subject, "reachable", error, ("s3:ListBucket", bucket_arn(source.location)))
        return
    yield Finding(subject, "reachable", "ok", f"{redacted(source.location)} holds {len(found):,} files.")
    try:
        runs_fingerprint(source)
    except TrainledgerError as error:
        yield failed(subject, "kind", error)
        return
    yield Finding(subject, "kind", "ok", f"{source.kind}.")
    if not found:
        yield Finding(subject, "newest file", "warn", "no run is recorded yet.")
        return
    newest = max(found, key=lambda item: item.modified_at)
    yield Finding(subject, "newest file", "ok", f"{newest.key}, written {newest.modified_at:%Y-%m-%d %H:%M} UTC.")
    try:
        _open(source).read(newest.key)
    except TrainledgerError as error:
        yield failed(subject, "readable", error, ("s3:GetObject", object_arn(source.location)))


def examine_reservations(sources: Sequence[ReservationSource]) -> Iterator[Finding]:
    """Sources of reserved capacity: their files, read as a build reads them, or the permission to ask AWS."""
    readable = []
    for source in sources:
        findings = [*(_saved(source) if source.location else may_describe_capacity(source))]
        yield from findings
        if source.location and all(finding.status != "fail" for finding in findings):
            readable.append(source)
    if len(readable) > 1:
        try:
            read_reservations(readable)
        except TrainledgerError as error:
            yield failed("reservations", "agree", error)


def examine_commitments(sources: Sequence[CommitmentSource]) -> Iterator[Finding]:
    """Sources of commitments, read as a build reads them."""
    for source in sources:
        subject = f"commitments {source.name}"
        try:
            held = read_commitments([source]).table.height
        except TrainledgerError as error:
            yield failed(subject, "readable", error)
        else:
            yield Finding(subject, "readable", "ok", f"{held:,} commitment{'' if held == 1 else 's'} found.")


def _saved(source: ReservationSource) -> Iterator[Finding]:
    subject, location = f"reservations {source.name}", str(source.location)
    try:
        _, files, _ = reservation_files(source, hurried=True)
    except TrainledgerError as error:
        yield failed(subject, "reachable", error, ("s3:ListBucket", bucket_arn(location)))
        return
    count = f"{len(files):,} file{'' if len(files) == 1 else 's'} of reservations"
    yield Finding(subject, "reachable", "ok" if files else "warn", f"{location} holds {count}.")
    try:
        read = read_reservations([source])
    except TrainledgerError as error:
        yield failed(subject, "readable", error, ("s3:GetObject", object_arn(location)))
        return
    held = read.table["reservation_id"].n_unique()
    yield Finding(subject, "readable", "ok", f"{held:,} reservation{'' if held == 1 else 's'} found.")
    yield from (Finding(subject, "warning", "warn", warning) for warning in read.warnings)


def examine_registrations(source: ProofSource) -> Iterator[Finding]:
    """The folder of pre-registrations, read as a build reads it, without those recorded before."""
    if source.registrations is None:
        return
    try:
        found = read_registrations(source, {})[REGISTRATION].height
    except TrainledgerError as error:
        yield failed("proof", "readable", error, ("s3:GetObject", object_arn(source.registrations)))
        return
    count = f"{found:,} registration{'' if found == 1 else 's'}"
    yield Finding("proof", "readable", "ok" if found else "warn", f"{source.registrations} holds {count}.")


def examine_warehouse(warehouse: Warehouse, now: datetime) -> Iterator[Finding]:
    """The warehouse: its publication, and whether a build may write. On S3 a small object is written and removed."""
    try:
        store = _open(warehouse)
        is_new = not warehouse.location.startswith("s3://") and not Path(warehouse.location).exists()
        published = None if is_new else Publications(store).newest()
    except TrainledgerError as error:
        action = ("s3:ListBucket", bucket_arn(warehouse.location))
        yield failed("warehouse", "reachable", error, action)
        return
    yield Finding("warehouse", "reachable", "ok", f"{warehouse.location}.")
    yield _publication(published, now)
    yield from _writable(warehouse, store)


def _publication(published: Any, now: datetime) -> Finding:
    if published is None:
        return Finding("warehouse", "publication", "warn", "none yet; run `trainledger build`.")
    age = now - published.published_at.replace(tzinfo=None)
    months = {delivery["billing_period"] for delivery in published.inputs.get("deliveries", ())}
    summary = f"number {published.number} of {published.published_at:%Y-%m-%d %H:%M} UTC, {age.days} days ago"
    return Finding("warehouse", "publication", "ok", f"{summary}, {len(months)} billing months.")


def _writable(warehouse: Warehouse, store: Store) -> Iterator[Finding]:
    if not warehouse.location.startswith("s3://"):
        # Nothing is created by a check: the nearest existing folder decides.
        folder = next(path for path in (Path(warehouse.location), *Path(warehouse.location).parents) if path.exists())
        if os.access(folder, os.W_OK | os.X_OK):
            yield Finding("warehouse", "writable", "ok", f"{folder} is writable.")
        else:
            fix = "change its permissions, or choose another location"
            yield Finding("warehouse", "writable", "fail", f"{folder} is not writable: {fix}.", 2)
        return
    probe = f"doctor-{secrets.token_hex(6)}.txt"
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("s3:PutObject", lambda: store.write(probe, b"written by trainledger doctor\n")),
        ("s3:GetObject", lambda: store.read(probe)),
        ("s3:DeleteObject", lambda: store.delete(probe)),
    ]
    for action, step in steps:
        try:
            step()
        except TrainledgerError as error:
            yield failed("warehouse", "writable", error, (action, object_arn(warehouse.location)))
            if action == "s3:PutObject":
                return
        else:
            yield Finding("warehouse", action.removeprefix("s3:"), "ok", "permitted.")


def _open(source: Any) -> Store:
    return open_store(
        source.location,
        endpoint_url=source.endpoint_url,
        region=source.region,
        profile=source.profile,
        hurried=True,
    )
