"""What sources deliver, as assets: the bill, the runs, and what is told beside them."""

from collections.abc import Callable, Collection, Iterator, Mapping

import dagster as dg

from pipelines.defs.partitions import BILLING_MONTHS
from pipelines.defs.resources import Ledger
from pipelines.defs.steps import BILL, ONE_RUN, PATIENCE, POOL, asset_key, months_of, step
from pipelines.models.build import Builder
from pipelines.models.catalog import COMMITMENTS, PROOF_TABLES, RAW_TABLES, RESERVATIONS
from pipelines.models.conflicts import refuse_conflicts
from pipelines.models.emptied import refuse_emptied
from pipelines.models.publish import drop_undelivered
from pipelines.sources.cur_columns import LISTS
from pipelines.sources.cur_delivery import RawDelivery


@dg.multi_asset(
    name=BILL,
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
    with step(ledger, BILL) as planned:
        stored = [raw for month in months_of(context, planned) for raw in ledger.builder.warehouse.bill.ingest(month)]
        refuse_conflicts(ledger.builder, planned)
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


def told_beside(
    what: str,
    tables: Mapping[str, str],
    read: Callable[[Builder], Mapping[str, int]],
    owner: str = "team:ml-finops",
    kinds: Collection[str] = ("json", "polars"),
) -> dg.AssetsDefinition:
    """Tables, each with its description, that `read` brings up to date together and whole; it gives their rows."""

    @dg.multi_asset(
        name=what.replace(" ", "_"),
        specs=[
            dg.AssetSpec(asset_key(table), description=description, owners=[owner], kinds=set(kinds))
            for table, description in tables.items()
        ],
        retry_policy=PATIENCE,
        pool=POOL,
    )
    def brought(ledger: dg.ResourceParam[Ledger]) -> Iterator[dg.MaterializeResult]:
        with step(ledger, what):
            counts = read(ledger.builder)
        for table in tables:
            yield dg.MaterializeResult(asset_key(table), metadata={"dagster/row_count": counts[table]})

    return brought


_RUNS = {table: f"Training runs as recorded: {table.removeprefix('tracker_')}s of all sources." for table in RAW_TABLES}
_HELD = "Reserved capacity and its windows, as files or AWS tell it. One row per part of a reservation."
_BOUGHT = "Savings Plans and reservations, as files or AWS tell them beside the bill. One row per commitment."
_REGISTERED = ("Pre-registrations of comparisons.", "Runs that registrations pair or leave out.")

RAW_ASSETS = [
    bill,
    told_beside("training runs", _RUNS, Builder.read_runs, owner="team:ml-platform"),
    told_beside("reservations", {RESERVATIONS: _HELD}, lambda builder: {RESERVATIONS: builder.read_reservations()}),
    told_beside("commitments", {COMMITMENTS: _BOUGHT}, lambda builder: {COMMITMENTS: builder.read_commitments()}),
    told_beside(
        "registrations",
        dict(zip(PROOF_TABLES, _REGISTERED, strict=True)),
        Builder.read_registrations,
        kinds=("polars",),
    ),
]
