"""What sources deliver, as assets: the bill, the runs, and what is told beside them."""

from collections.abc import Iterator

import dagster as dg

from pipelines.defs.partitions import BILLING_MONTHS
from pipelines.defs.resources import Ledger
from pipelines.defs.steps import ONE_RUN, PATIENCE, POOL, asset_key, months_of, step
from pipelines.models.catalog import COMMITMENTS, PROOF_TABLES, RAW_TABLES, RESERVATIONS
from pipelines.models.emptied import refuse_emptied
from pipelines.models.publish import drop_undelivered
from pipelines.sources.cur_columns import LISTS
from pipelines.sources.cur_delivery import RawDelivery


@dg.multi_asset(
    name="bill",
    specs=[
        dg.AssetSpec(
            asset_key(listed.table),
            description=f"Lines of each {listed.export} as delivered, one billing month at a time.",
            owners=["team:ml-finops"],
            kinds={"s3", "parquet"},
        )
        for listed in LISTS
    ],
    partitions_def=BILLING_MONTHS,
    backfill_policy=ONE_RUN,
    retry_policy=PATIENCE,
    pool=POOL,
)
def bill(context: dg.AssetExecutionContext, ledger: dg.ResourceParam[Ledger]) -> Iterator[dg.MaterializeResult]:
    with step(ledger, "bill") as planned:
        stored = [raw for month in months_of(context, planned) for raw in ledger.builder.warehouse.bill.ingest(month)]
        refuse_emptied(ledger.builder, planned)
        drop_undelivered(ledger.builder, planned)
    for listed in LISTS:
        yield _delivered(listed.table, [raw for raw in stored if raw.delivery.listed is listed])


def _delivered(table: str, stored: list[RawDelivery]) -> dg.MaterializeResult:
    return dg.MaterializeResult(
        asset_key(table),
        metadata={
            "dagster/row_count": sum(raw.line_count for raw in stored),
            "deliveries": [raw.delivery.delivery_id for raw in stored],
        },
    )


@dg.multi_asset(
    name="tracker",
    specs=[
        dg.AssetSpec(
            asset_key(table),
            description="Training runs as recorded: " + table.removeprefix("tracker_") + "s of all sources.",
            owners=["team:ml-platform"],
            kinds={"json", "polars"},
        )
        for table in RAW_TABLES
    ],
    retry_policy=PATIENCE,
    pool=POOL,
)
def tracker(ledger: dg.ResourceParam[Ledger]) -> Iterator[dg.MaterializeResult]:
    with step(ledger, "training runs"):
        counts = ledger.builder.read_runs()
    for table, count in counts.items():
        yield dg.MaterializeResult(asset_key(table), metadata={"dagster/row_count": count})


@dg.asset(
    key=asset_key(RESERVATIONS),
    retry_policy=PATIENCE,
    pool=POOL,
    kinds={"json", "polars"},
    owners=["team:ml-finops"],
    description="Reserved capacity and its windows, as files or AWS tell it. One row per part of a reservation.",
)
def aws_capacity_reservation(ledger: dg.ResourceParam[Ledger]) -> dg.MaterializeResult:
    with step(ledger, "reservations"):
        count = ledger.builder.read_reservations()
    return dg.MaterializeResult(metadata={"dagster/row_count": count})


@dg.multi_asset(
    name="proof",
    specs=[
        dg.AssetSpec(asset_key(table), description=description, owners=["team:ml-finops"], kinds={"polars"})
        for table, description in zip(
            PROOF_TABLES,
            ("Pre-registrations of comparisons.", "Runs that registrations pair or leave out."),
            strict=True,
        )
    ],
    retry_policy=PATIENCE,
    pool=POOL,
)
def proof(ledger: dg.ResourceParam[Ledger]) -> Iterator[dg.MaterializeResult]:
    with step(ledger, "registrations"):
        counts = ledger.builder.read_registrations()
    for table, count in counts.items():
        yield dg.MaterializeResult(asset_key(table), metadata={"dagster/row_count": count})


@dg.asset(
    key=asset_key(COMMITMENTS),
    retry_policy=PATIENCE,
    pool=POOL,
    kinds={"json", "polars"},
    owners=["team:ml-finops"],
    description="Savings Plans and reservations, as files or AWS tell them beside the bill. One row per commitment.",
)
def aws_commitment(ledger: dg.ResourceParam[Ledger]) -> dg.MaterializeResult:
    with step(ledger, "commitments"):
        count = ledger.builder.read_commitments()
    return dg.MaterializeResult(metadata={"dagster/row_count": count})


RAW_ASSETS = [bill, tracker, aws_capacity_reservation, aws_commitment, proof]
