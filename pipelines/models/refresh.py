"""Runs a build: everything the sources deliver, then every table, inputs first, then the publication.

The command line, Dagster and the tests take their steps from here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.models.build import Builder
from pipelines.models.conflicts import refuse_conflicts, refuse_emptied
from pipelines.models.publish import Plan, drop_undelivered, publish
from pipelines.models.records import RECORDS
from pipelines.warehouse.publication import Publication

Report = Callable[[str, str], None]
"""Called with the name of each step when it is done, and with its month or an empty text."""


def refresh(
    builder: Builder, planned: Plan, report: Report = lambda what, month: None, only: Collection[str] = ()
) -> Publication | None:
    """Bring the warehouse up to date and publish; the caller holds its lock.

    Where `only` names tables, just these and their inputs are built, and nothing is published. Raises the first
    failure of a step.
    """
    read_bill(builder, planned, planned.months)
    report("bill", "")
    for what, read in RECORDS.items():
        read(builder.warehouse)
        report(what, "")
    for built in builder.build_steps(builder.steps(planned.months, only)):
        report(built.table, built.period or "")
    if only:
        return None
    published = publish(builder, planned)
    report("publication", "")
    return published


def read_bill(builder: Builder, planned: Plan, months: Sequence[str]) -> list[RawDelivery]:
    """Bring the deliveries of these months into the raw store; SourceError for a month
    of an account that two sources deliver, or one that lost all its lines."""
    delivered = [raw for month in months for raw in builder.warehouse.bill.ingest(month)]
    refuse_conflicts(builder, planned)
    refuse_emptied(builder, planned)
    drop_undelivered(builder, planned)
    return delivered
