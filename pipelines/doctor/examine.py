"""The whole examination, source by source."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from pipelines.base.address import is_s3, redacted
from pipelines.base.errors import counted
from pipelines.config import sources
from pipelines.config.access import Access
from pipelines.config.settings import Settings, Warehouse
from pipelines.doctor.aws import ACTIVATION, DEFINITION, examine_account
from pipelines.doctor.billing import BillExam
from pipelines.doctor.finding import Finding, Stop, Subject, until_stopped
from pipelines.ingest.inventory.answers import Inventory
from pipelines.ingest.inventory.commitments import read_commitments
from pipelines.ingest.inventory.invoices import read_invoices
from pipelines.ingest.inventory.offers import read_offers
from pipelines.ingest.inventory.registrations import REGISTRATION, read_registrations
from pipelines.ingest.inventory.reservations import read_reservations
from pipelines.ingest.runs import events as run_events
from pipelines.ingest.runs.tracker import require_known_kind, runs_fingerprint
from pipelines.ingest.serving import cloudwatch
from pipelines.ingest.serving import events as serving_events
from pipelines.models.warehouse import PRIVATE, work_folder
from pipelines.warehouse.publication import Publications
from pipelines.warehouse.storage import Store
from pipelines.warehouse.stores import open_store

# As many warnings of a source as are shown.
_WARNINGS = 10


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
        why = "because endpoint_url points to another store than AWS" if source.endpoint_url else ""
        why = why if is_s3(source.location) else "because the bill is a folder"
        if ask_aws or not why:
            yield from examine_account(source, tags, bill.kind)
        else:
            for check in (DEFINITION, ACTIVATION):
                yield Subject(f"billing {source.name}").unchecked(check, f"{why}; use --aws to query AWS.")
    if not settings.runs:
        named = "tags name provisional runs" if settings.policy.provisional_runs else "no cost has a run"
        yield Finding("configuration", "runs", "warn", f"no [[runs]] source, so no recorded run; {named}.")
    for source in settings.runs:
        yield from examine_runs(source)
    for source in settings.serving:
        yield from examine_serving(source)
    families = settings.accelerator_families
    yield from examine_reservations(settings.reservations, families)
    yield from examine_registrations(settings.proof)
    for section, held, noun, key, read in (
        ("commitments", settings.commitments, "commitment", "commitment_discount_id", read_commitments),
        ("invoices", settings.invoices, "invoice", "invoice_id", read_invoices),
        ("capacity offers", settings.capacity_offers, "offer", "", partial(read_offers, known_types=families)),
    ):
        for source in held:
            yield from examine_inventory(Subject(f"{section} {source.name}"), noun, partial(read, [source]), key)
    yield from examine_warehouse(warehouse, now)
    if settings.access:
        yield from examine_access(settings.access)
    if settings.privacy.pseudonyms:
        yield from examine_privacy(work_folder(warehouse.location, warehouse.endpoint_url))


@until_stopped
def examine_runs(source: sources.RunSource) -> Iterator[Finding]:
    """A run source: of a kind that is read, reachable, and with something in it."""
    subject = Subject(f"runs {source.name}")
    with subject.trying("kind"):
        # Also where the location cannot be reached, for a build stops at it first.
        require_known_kind(source)
    with subject.trying("reachable", "s3:ListBucket", source.location):
        store = open_store(source.location, **source.reach, hurried=True)
        found = store.list()
    yield subject.ok("reachable", f"{redacted(source.location)} holds {counted(len(found), 'file')}.")
    with subject.trying("kind"):
        runs_fingerprint(source)
    yield subject.ok("kind", f"{source.kind}.")
    if not found:
        yield subject.warn("newest file", "no run is recorded yet.")
        return
    newest = max(found, key=lambda item: item.modified_at)
    yield subject.ok("newest file", f"{newest.key}, written {newest.modified_at:%Y-%m-%d %H:%M} UTC.")
    with subject.trying("readable", "s3:GetObject", source.location):
        # Events are read as a build reads them, other records by their newest file.
        warned = run_events.read(source).warnings if source.kind == "events" else []
        if source.kind != "events":
            store.read(newest.key)
    yield from _warned(subject, warned)


@until_stopped
def examine_serving(source: sources.ServingSource) -> Iterator[Finding]:
    """A source of servers and their traffic: reachable, with something in it. Logs are too large to read here.

    Events are read as a build reads them.
    """
    subject = Subject(f"serving {source.name}")
    if source.location is None:
        with subject.trying("readable"):
            found = [*cloudwatch.found_answers(source, [])]
        yield subject.judged("readable", f"CloudWatch gives {counted(len(found), 'answer')}.", is_ok=bool(found))
        return
    with subject.trying("reachable", "s3:ListBucket", source.location):
        found = open_store(source.location, **source.reach, hurried=True).list()
    yield subject.judged(
        "reachable", f"{redacted(source.location)} holds {counted(len(found), 'file')}.", is_ok=bool(found)
    )
    if source.kind == "events" and found:
        with subject.trying("readable", "s3:GetObject", source.location):
            warned = serving_events.read(source).warnings
        yield from _warned(subject, warned)


def _warned(subject: Subject, warnings: Sequence[str]) -> Iterator[Finding]:
    """The first warnings of reading a source, and how many more there are."""
    more = counted(len(warnings) - _WARNINGS, "more warning")
    shown = [*warnings[:_WARNINGS], *([f"{more}; a build lists all of them."] if len(warnings) > _WARNINGS else [])]
    yield from (subject.warn("warning", warning) for warning in shown)


@until_stopped
def examine_reservations(held: Sequence[sources.AnswerSource], families: Mapping[str, str]) -> Iterator[Finding]:
    """Sources of reserved capacity, each read alone, then together what is readable: two sources may contradict."""
    readable, known = [], set()
    for source in held:
        read = partial(read_reservations, [source], families)
        subject = Subject(f"reservations {source.name}")
        findings = [*examine_inventory(subject, "reservation", read, "reservation_id")]
        yield from findings
        if all(finding.status != "fail" for finding in findings):
            readable.append(source)
            known |= {finding.message for finding in findings}
    if len(readable) > 1:
        subject = Subject("reservations")
        with subject.trying("agree"):
            together = read_reservations(readable, families).warnings
        yield from (subject.warn("agree", warning) for warning in together if warning not in known)


@until_stopped
def examine_inventory(subject: Subject, noun: str, read: Callable[[], Inventory], key: str = "") -> Iterator[Finding]:
    """A source of capacity, commitments, invoices or offers, read as a build reads it: how many it has, by `key`."""
    with subject.trying("readable"):
        found = read()
    # A billing period of FOCUS has no invoice; a commitment that cannot be read, no kind.
    table = found.table.drop_nulls("commitment_kind") if key == "commitment_discount_id" else found.table
    held = len({*table[key]} - {""}) if key else table.height
    yield subject.ok("readable", f"{counted(held, noun)} found.")
    yield from (subject.warn("warning", warning) for warning in found.warnings)


@until_stopped
def examine_registrations(source: sources.ProofSource) -> Iterator[Finding]:
    """The folder of pre-registrations, read as a build reads it, without those recorded before."""
    if source.registrations is None:
        return
    subject = Subject("proof")
    with subject.trying("readable", "s3:GetObject", source.registrations):
        found = read_registrations(source, {})[REGISTRATION].height
    summary = f"{source.registrations} holds {counted(found, 'registration')}."
    yield subject.judged("readable", summary, is_ok=found > 0)


@until_stopped
def examine_warehouse(warehouse: Warehouse, now: datetime) -> Iterator[Finding]:
    """The warehouse: its publication, and whether a build may write. On S3 a small object is written and removed."""
    subject = Subject("warehouse")
    with subject.trying("reachable", "s3:ListBucket", warehouse.location):
        store = open_store(warehouse.location, **warehouse.reach, hurried=True)
        is_new = not is_s3(warehouse.location) and not Path(warehouse.location).exists()
        published = None if is_new else Publications(store).newest()
    yield subject.ok("reachable", f"{warehouse.location}.")
    if published is None:
        yield subject.warn("publication", "none yet; run `trainledger build`.")
    else:
        age = now - published.published_at.replace(tzinfo=None)
        months = {delivery["billing_period"] for delivery in published.inputs.get("deliveries", ())}
        summary = f"number {published.number} of {published.published_at:%Y-%m-%d %H:%M} UTC"
        summary += f", {counted(age.days, 'day')} ago"
        yield subject.ok("publication", f"{summary}, {counted(len(months), 'billing month')}.")
    # Nothing is created by a check: the nearest existing folder decides.
    work = work_folder(warehouse.location, warehouse.endpoint_url)
    folder = next(path for path in (work, *work.parents) if path.exists())
    check, other = "writable", "choose another location"
    if is_s3(warehouse.location):
        check, other = "cache", "set XDG_CACHE_HOME to another folder"
    if os.access(folder, os.W_OK | os.X_OK):
        yield subject.ok(check, f"{folder} is writable.")
    else:
        yield subject.fail(check, f"{folder} is not writable: change its permissions, or {other}.", 2)
    if is_s3(warehouse.location):
        yield from _probed(subject, store, warehouse.location)


@until_stopped
def examine_access(access: Access) -> Iterator[Finding]:
    """The policy of who may see which teams, read as the dashboard reads it."""
    subject = Subject("access")
    with subject.trying("policy"):
        readers = access.grants().readers
    yield subject.ok("policy", f"{access.policy} names {counted(len(readers), 'reader')}.")


def examine_privacy(work: Path) -> Iterator[Finding]:
    """Whether other users of the machine can read the ids that pseudonyms stand for; permissions of S3 are not seen."""
    modes = [(work / name, (work / name).stat().st_mode & 0o077) for name in PRIVATE if (work / name).is_dir()]
    is_open = [str(folder) for folder, others in modes if others]
    message = f"{', '.join(is_open)} can be read by other users: run `chmod 700` on them, or build as their owner."
    closed = "folders with ids as delivered are closed to other users."
    yield Subject("privacy").judged("closed folders", message if is_open else closed, is_ok=not is_open)


def _probed(subject: Subject, store: Store, location: str) -> Iterator[Finding]:
    probe = f"doctor-{secrets.token_hex(6)}.txt"
    with subject.trying("writable", "s3:PutObject", location):
        store.write(probe, b"written by trainledger doctor\n")
    yield subject.ok("PutObject", "permitted.")
    for name, step in (("GetObject", store.read), ("DeleteObject", store.delete)):
        try:
            with subject.trying("writable", f"s3:{name}", location):
                step(probe)
            yield subject.ok(name, "permitted.")
        except Stop as stop:
            yield stop.finding
