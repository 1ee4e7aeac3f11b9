"""One asset per table, raw ones included: each body calls the builder and returns what it came to."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import dagster as dg

from pipelines.defs.steps import BILLING_MONTHS, ONE_RUN, PATIENCE, POOL, Ledger, asset_key, months_of, step
from pipelines.ingest.billing.columns import LISTS
from pipelines.models.build import FailedChecks
from pipelines.models.built import Built
from pipelines.models.catalog import (
    COMMITMENTS,
    PROOF_TABLES,
    RAW_TABLES,
    RESERVATIONS,
    SESSION_TABLES,
    Model,
    load_catalog,
)
from pipelines.models.checks import Severity
from pipelines.models.contract import Contract, load_contract
from pipelines.models.publish import publish
from pipelines.models.records import RECORDS
from pipelines.models.refresh import read_bill
from pipelines.models.revision import code_revision
from pipelines.models.written import added

# What Dagster calls the checks of each severity.
CHECKS: dict[str, Severity] = {"contract": "error", "contract_warnings": "warn"}


def model_asset(model: Model) -> dg.AssetsDefinition:
    """The asset of one model, with its expectations as checks: `error` ones block what is downstream."""
    contract = load_contract(model.key)
    key = asset_key(model.name)

    @dg.asset(
        key=key,
        deps=[asset_key(name) for name in model.inputs if name not in SESSION_TABLES],
        description=contract.description,
        owners=[f"team:{contract.owner}"],
        kinds={
            "sql" if model.kind == "sql" else "csv" if model.kind == "reference" else "polars",
            "deltalake",
        },
        partitions_def=BILLING_MONTHS if model.grain == "month" else None,
        backfill_policy=ONE_RUN if model.grain == "month" else None,
        check_specs=list(check_specs(model, contract)),
        code_version=contract.digest,
        pool=POOL,
    )
    def table(context: dg.AssetExecutionContext, ledger: dg.ResourceParam[Ledger]):
        yield from materialize(context, ledger, model)

    return table


def check_specs(model: Model, contract: Contract) -> Iterator[dg.AssetCheckSpec]:
    """Two checks of a table that is stored: what blocks publishing, and what warns.

    Each stands for all checks of its severity in the contract. An event for every one of them would take longer than
    the build; which of them failed, and for which rows, is in the result.
    """
    for name, severity in CHECKS.items():
        titles = [check.title for check in contract.checks if check.severity == severity]
        if model.stored and titles:
            yield dg.AssetCheckSpec(
                name,
                asset=asset_key(model.name),
                blocking=severity == "error",
                description="\n".join(f"- {title}" for title in titles),
            )


def materialize(
    context: dg.AssetExecutionContext, ledger: Ledger, model: Model
) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
    """Build a table, or each delivered month of it the run asks for, and report its checks."""
    if not model.stored:
        yield dg.MaterializeResult(metadata={"computed": "where it is read"})
        return
    built: list[Built] = []
    with step(ledger) as planned:
        try:
            months = months_of(context, planned) if model.grain == "month" else [None]
            for made in ledger.builder.build_months(model.name, months):
                built.append(made)
        except FailedChecks as failed:
            yield from check_results(model, [*built, failed.built])
            raise
    yield from check_results(model, built)
    yield dg.MaterializeResult(metadata=_metadata(built))


def check_results(model: Model, built: Sequence[Built]) -> Iterator[dg.AssetCheckResult]:
    """One result per severity over all checks and the months built."""
    for name, severity in CHECKS.items():
        results = [(made, check) for made in built for check in made.checks if check.severity == severity]
        failed = [(made, check) for made, check in results if not check.passed]
        if results:
            yield dg.AssetCheckResult(
                asset_key=asset_key(model.name),
                check_name=name,
                passed=not failed,
                severity=dg.AssetCheckSeverity.ERROR if severity == "error" else dg.AssetCheckSeverity.WARN,
                metadata={
                    "check_count": len(results),
                    "failed_check_count": len(failed),
                    "failed_checks": dg.MetadataValue.json(
                        [
                            {
                                "check": check.check,
                                "title": check.title,
                                "month": made.period,
                                "failing_row_count": check.unexpected_count,
                                "failing_rows": check.sample,
                            }
                            for made, check in failed
                        ]
                    ),
                    "figures": dg.MetadataValue.json(
                        {check.check: check.figures for _, check in results if check.figures}
                    ),
                },
            )


def _metadata(built: list[Built]) -> dict[str, dg.MetadataValue | int]:
    money = added(made.totals for made in built)
    sums_of = {
        name: ", ".join(f"{sums[unit]:,.2f} {unit}" for unit in sorted(sums)) for name, sums in money.items() if sums
    }
    return {
        "dagster/row_count": sum(made.row_count for made in built),
        "unchanged": sum(made.was_current for made in built),
        **{name: dg.MetadataValue.text(text) for name, text in sums_of.items()},
    }


@dg.asset(
    key="publication",
    deps=[asset_key(model.name) for model in load_catalog().public],
    description="The one record that makes every mart of a build visible together.",
    owners=["team:ml-finops"],
    kinds={"deltalake", "duckdb"},
    code_version=code_revision(),
    pool=POOL,
)
def publication(ledger: dg.ResourceParam[Ledger]) -> dg.MaterializeResult:
    with step(ledger) as planned:
        published = publish(ledger.builder, planned)
    return dg.MaterializeResult(metadata={"publication": published.number})


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
        of_list = [raw for raw in stored if raw.delivery.listed is listed]
        yield dg.MaterializeResult(
            asset_key(listed.table),
            metadata={
                "dagster/row_count": sum(raw.line_count for raw in of_list),
                "deliveries": [raw.delivery.delivery_id for raw in of_list],
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

ASSETS = [*RAW_ASSETS, *map(model_asset, load_catalog().ordered), publication]
