"""Runs a build: everything the sources deliver, then every table, inputs first, then the publication.

A job of a month, or of one source's month, makes the tables of that alone, next to other jobs; a build then publishes
them. Accounts delivered twice and months that lost all their lines are refused before any table is built. The command
line, Dagster and the tests take their steps from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import date, timedelta
from typing import Any

from pipelines.base.dates import month_spans
from pipelines.base.errors import SourceError, UsageError, counted
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.models.build import Builder
from pipelines.models.publish import Plan, drop_undelivered, publish
from pipelines.models.records import RECORDS
from pipelines.warehouse.lock import TABLES, Waiting, shared
from pipelines.warehouse.part import is_within, month_of, shown_part, source_of
from pipelines.warehouse.publication import Publication

_HAD = """
    select billing_currency, cast(sum(line_count) as bigint) as line_count, sum(billed_cost_usd) as billed
    from (
        select * from published_restatement
        where strpos(', ' || source_name || ',', ', {source},') > 0 and billing_month = date '{month}-01'
        qualify delivery_no = max(delivery_no) over (partition by payer_account_id, billing_currency)
    ) as newest
    where line_count > 0
    group by billing_currency
    order by billing_currency
"""

Report = Callable[[str, str], None]
"""Called with the name of each step when it is done, and with its month or an empty text."""


def refresh(builder: Builder, planned: Plan, report: Report = lambda what, month: None) -> Publication:
    """Bring the warehouse up to date and publish; the caller holds its lock. Raises the first failure of a step."""
    read_bill(builder, planned, planned.months)
    drop_undelivered(builder, planned)
    report("bill", "")
    read_records(builder, report)
    for built in builder.build_steps(builder.steps(planned.months)):
        report(built.table, built.period or "")
    published = publish(builder, planned)
    report("publication", "")
    return published


def refresh_parts(
    builder: Builder, planned: Plan, parts: Sequence[str], waiting: Waiting, report: Report = lambda what, month: None
) -> None:
    """Bring the tables of these months up to date and publish nothing; the caller holds the months.

    Of parts that are of one source, these are the tables kept by source, made from what that source delivers. Builds of
    other parts may run at the same time: each waits for the others only to make the tables that they share. Raises the
    first failure of a step, UsageError for what no source delivers.
    """
    refuse_undelivered(planned, parts)
    read_bill(builder, planned, parts)
    report("bill", "")
    with builder.lake.lock(TABLES, waiting=waiting):
        read_records(builder, report)
    of_month = [shared(month_of(part)) for part in parts if source_of(part)]
    for grain, steps in builder.phases(parts):
        held = {"whole": [TABLES], "month": of_month, "source": []}[grain]
        with builder.lake.lock(*held, waiting=waiting) if held else nullcontext():
            for built in builder.build_steps(steps):
                report(built.table, built.period or "")


def refuse_undelivered(planned: Plan, parts: Sequence[str]) -> None:
    """UsageError for requested parts that no source delivers."""
    if not (missing := [part for part in parts if part not in {*planned.months, *planned.parts}]):
        return
    month = month_of(missing[0])
    if month in planned.months:
        sources = ", ".join(sorted(str(source_of(part)) for part in planned.parts if is_within(part, month)))
        raise UsageError(
            f"No billing source delivers {shown_part(missing[0])}; choose a source of the month ({sources})."
        )
    known = month_spans(planned.months) or "none"
    raise UsageError(f"No billing source delivers {', '.join(missing)}; choose a delivered month ({known}).")


def read_records(builder: Builder, report: Report = lambda what, month: None) -> None:
    """Bring the raw tables that we write ourselves up to date."""
    for what, read in RECORDS.items():
        read(builder.warehouse)
        report(what, "")


def read_bill(builder: Builder, planned: Plan, parts: Sequence[str]) -> list[RawDelivery]:
    """Bring the deliveries of these parts into the raw store; SourceError for a month
    of an account that two sources deliver, or one that lost all its lines.

    What one source delivers of a month is compared with the others by the build that publishes.
    """
    read = [raw for part in parts for raw in builder.warehouse.bill.ingest(part)]
    refuse_conflicts(builder, planned, parts)
    refuse_emptied(builder, planned, parts)
    return read


def refuse_conflicts(builder: Builder, planned: Plan, months: Sequence[str]) -> None:
    """SourceError for the first of these months in which two sources deliver the same account.

    Looks at those with a delivery that is not published yet and that several sources deliver.
    """
    bill = builder.warehouse.bill
    published = planned.publication.inputs["deliveries"] if planned.publication else ()
    known = {(made["source"], made["billing_period"], made["fingerprint"]) for made in published}
    new = {
        found.billing_period
        for found in bill.deliveries
        if (found.source, found.billing_period, found.fingerprint) not in known
    }
    for month in sorted(new & {*months}):
        delivered = bill.ingest(month)
        if len(delivered) < 2:
            continue
        with builder.open([]) as engine:
            shared = bill.shared_accounts(delivered, engine).to_dicts()
        if shared:
            raise SourceError(builder.pseudonyms.text(_message(builder, month, shared)))


def _message(builder: Builder, month: str, shared: list[dict[str, Any]]) -> str:
    first = shared[0]
    one, other = first["source_names"][:2]
    more = sum({one, other} <= set(row["source_names"]) for row in shared) - 1
    others = f" and {more} more account{'s' if more > 1 else ''}" if more else ""
    return (
        f"[[billing]] {one} and {other} both deliver {month} of account {first['account_id']} of payer "
        f"{first['payer_account_id']}{others}, so its costs would count twice; {_fix(builder, month, one, other)}."
    )


def _fix(builder: Builder, month: str, one: str, other: str) -> str:
    """What to change: the source with the older months keeps those before `month`."""
    deliveries = builder.warehouse.bill.deliveries
    since = {name: min(found.billing_period for found in deliveries if found.source == name) for name in (one, other)}
    old, new = sorted(since, key=lambda name: since[name])
    if since[old] == month:
        return "remove one of the two entries, or name the months each is read for with first_month and last_month"
    before = date.fromisoformat(f"{month}-01") - timedelta(days=1)
    return (
        f'name the months each is read for, such as last_month = "{before:%Y-%m}" for {old} and '
        f'first_month = "{month}" for {new}, or remove one of the two entries'
    )


def refuse_emptied(builder: Builder, planned: Plan, parts: Sequence[str]) -> None:
    """SourceError for the first of these parts that was published with lines and is delivered without any.

    Every delivery is the month to date, so a month loses no lines; `empty_months` of a source names exceptions.
    """
    sources = {source.name: source for source in builder.warehouse.settings.billing}
    for part in sorted({*parts} if planned.publication else ()):
        for raw in builder.warehouse.bill.ingest(part) if month_of(part) in planned.requested_months else ():
            if not raw.line_count and month_of(part) not in sources[raw.delivery.source].empty_months:
                _refuse_emptied(builder, raw, f"{sources[raw.delivery.source].location}/{raw.delivery.manifest_key}")


def _refuse_emptied(builder: Builder, raw: RawDelivery, manifest: str) -> None:
    delivery = raw.delivery
    with builder.open(["published_restatement"]) as engine:
        had = engine.query(_HAD.format(source=delivery.source, month=delivery.billing_period)).rows()
    if not had:
        return
    lines, billed = sum(row[1] for row in had), " and ".join(f"{row[2]:,.2f} {row[0]}" for row in had)
    raise SourceError(
        f"{manifest} {'contains no line' if delivery.objects else 'names no file'}, yet {delivery.billing_period} was "
        f"published with {counted(lines, 'line')} of {billed} in all; have the month delivered again, or add "
        f'empty_months = ["{delivery.billing_period}"] to its [[billing]] entry if it really is empty now.'
    )
