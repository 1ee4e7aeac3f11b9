"""What sources deliver, as assets: the bill, the runs, and the records of the other sources."""

from collections.abc import Collection, Iterator, Mapping

import dagster as dg

from pipelines.defs.partitions import BILLING_MONTHS
from pipelines.defs.resources import Ledger
from pipelines.defs.steps import ONE_RUN, PATIENCE, POOL, asset_key, months_of, step
from pipelines.ingest.billing.columns import LISTS
from pipelines.ingest.billing.delivery import RawDelivery
from pipelines.models.catalog import COMMITMENTS, PROOF_TABLES, RAW_TABLES, RESERVATIONS
from pipelines.models.records import RECORDS
from pipelines.models.refresh import read_bill


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
    with step(ledger) as planned:
        stored = read_bill(ledger.builder, planned, months_of(context, planned))
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


def records_asset(
    what: str,
    tables: Mapping[str, str],
    owner: str = "team:ml-finops",
    kinds: Collection[str] = ("json", "polars"),
) -> dg.AssetsDefinition:
    """Tables, each with its description, that one step of RECORDS brings up to date together and whole."""

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
        with step(ledger):
            counts = RECORDS[what](ledger.builder.warehouse)
        for table in tables:
            yield dg.MaterializeResult(asset_key(table), metadata={"dagster/row_count": counts[table]})

    return brought


_RUNS = {table: f"Training runs as recorded: {table.removeprefix('tracker_')}s of all sources." for table in RAW_TABLES}
_HELD = "Reserved capacity and its windows, from files or from AWS. One row per part of a reservation."
_BOUGHT = "Savings Plans and reservations, from files or from AWS. One row per commitment."
_REGISTERED = ("Pre-registrations of comparisons.", "Runs that registrations pair or leave out.")

RAW_ASSETS = [
    bill,
    records_asset("training runs", _RUNS, owner="team:ml-platform"),
    records_asset("reservations", {RESERVATIONS: _HELD}),
    records_asset("commitments", {COMMITMENTS: _BOUGHT}),
    records_asset("registrations", dict(zip(PROOF_TABLES, _REGISTERED, strict=True)), kinds=("polars",)),
]
