"""One asset per table: each body calls the builder and returns what it came to."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from pipelines.defs.partitions import BILLING_MONTHS
from pipelines.defs.resources import Ledger
from pipelines.errors import TrainledgerError, UnreachableError, UsageError
from pipelines.models.build import Built, FailedChecks
from pipelines.models.catalog import (
    COMMITMENTS,
    GIVEN,
    MADE_UP,
    PROOF_TABLES,
    RAW_TABLES,
    RESERVATIONS,
    Model,
    load_catalog,
)
from pipelines.models.emptied import refuse_emptied
from pipelines.models.publish import Plan, code_revision, drop_undelivered, publish
from pipelines.models.totals import added
from pipelines.quality.contract import load_contract
from pipelines.quality.validate import CheckResult
from pipelines.sources.cur_columns import LISTS
from pipelines.sources.cur_delivery import RawDelivery

# A source that does not answer is asked again; bad content fails at once.
PATIENCE = dg.RetryPolicy(max_retries=3, delay=10, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)
ONE_RUN = dg.BackfillPolicy.single_run()
POOL = "warehouse"


@contextmanager
def step(ledger: Ledger, what: str) -> Iterator[Plan]:
    """Tell the ledger that a step is done, or why it failed; a failure says its one sentence, untried again.

    Gives the plan, which the first step looks up before anything is read: what arrives after is for the next run.
    """
    try:
        yield ledger.plan
    except Exception as error:
        ledger.failures[what] = error
        if not isinstance(error, TrainledgerError) or isinstance(error, UnreachableError):
            raise
        raise dg.Failure(str(error), metadata={"exit_code": error.exit_code}, allow_retries=False) from error
    ledger.failures.pop(what, None)
    ledger.notify(what)


def months_of(context: dg.AssetExecutionContext, planned: Plan) -> list[str]:
    """The delivered months among those a run asks for; UsageError when there is none."""
    months = [month for month in context.partition_keys if month in planned.months]
    if not months:
        asked, delivered = ", ".join(context.partition_keys), ", ".join(planned.months) or "none"
        raise UsageError(f"No billing source delivers {asked}; ask for a delivered month ({delivered}).")
    return months


def asset_key(table: str) -> dg.AssetKey:
    """`layer/name` of any table a model reads."""
    return dg.AssetKey(["raw", table] if table in GIVEN else load_catalog()[table].key.split("/"))


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


def model_asset(model: Model) -> dg.AssetsDefinition:
    """The asset of one model, with its expectations as checks: `error` ones block what is downstream."""
    contract = load_contract(model.key)
    key = asset_key(model.name)

    @dg.asset(
        key=key,
        deps=[asset_key(name) for name in model.inputs if name not in MADE_UP],
        description=contract.description,
        owners=[f"team:{contract.owner}"],
        kinds={
            "sql" if model.kind == "sql" else "csv" if model.kind == "reference" else "polars",
            "deltalake",
        },
        partitions_def=BILLING_MONTHS if model.grain == "month" else None,
        backfill_policy=ONE_RUN if model.grain == "month" else None,
        check_specs=[
            dg.AssetCheckSpec(check.name, asset=key, blocking=check.severity == "error", description=check.title)
            for check in contract.checks
            if model.stored
        ],
        code_version=contract.digest,
        pool=POOL,
    )
    def table(context: dg.AssetExecutionContext, ledger: dg.ResourceParam[Ledger]):
        yield from materialise(context, ledger, model)

    return table


def materialise(
    context: dg.AssetExecutionContext, ledger: Ledger, model: Model
) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
    """Build a table, or each delivered month of it the run asks for, and report its checks."""
    if not model.stored:
        yield dg.MaterializeResult(metadata={"computed": "where it is read"})
        return
    built: list[Built] = []
    with step(ledger, model.key) as planned:
        try:
            for period in months_of(context, planned) if model.grain == "month" else [None]:
                built.append(ledger.builder.build(model.name, period))
        except FailedChecks as failed:
            yield from check_results([*built, failed.built])
            raise
    yield from check_results(built)
    yield dg.MaterializeResult(metadata=_metadata(built))


def check_results(built: list[Built]) -> Iterator[dg.AssetCheckResult]:
    """One result per check over the months built: failed when it failed in any of them."""
    names = dict.fromkeys(check.check for made in built for check in made.checks)
    for name in names:
        of_name = [(made, check) for made in built for check in made.checks if check.check == name]
        failed = [(made, check) for made, check in of_name if not check.passed]
        yield dg.AssetCheckResult(
            asset_key=dg.AssetKey(of_name[0][0].table.split("/")),
            check_name=name,
            passed=not failed,
            severity=_severity(of_name[0][1]),
            metadata={
                "failing_row_count": sum(check.unexpected_count for _, check in failed),
                "failing_rows": dg.MetadataValue.json([row for _, check in failed for row in check.sample]),
                "figures": dg.MetadataValue.json([row for _, check in of_name for row in check.figures]),
                "months": ", ".join(made.period for made, _ in failed if made.period),
            },
        )


def _severity(check: CheckResult) -> dg.AssetCheckSeverity:
    return dg.AssetCheckSeverity.ERROR if check.severity == "error" else dg.AssetCheckSeverity.WARN


def _metadata(built: list[Built]) -> dict[str, dg.MetadataValue | int]:
    money = added(made.totals for made in built)
    said = {
        name: ", ".join(f"{sums[unit]:,.2f} {unit}" for unit in sorted(sums)) for name, sums in money.items() if sums
    }
    return {
        "dagster/row_count": sum(made.row_count for made in built),
        "unchanged": sum(made.was_current for made in built),
        **{name: dg.MetadataValue.text(text) for name, text in said.items()},
    }


@dg.asset(
    key="publication",
    deps=[asset_key(model.name) for model in load_catalog().layer("marts")],
    description="The one record that makes every mart of a build visible together.",
    owners=["team:ml-finops"],
    kinds={"deltalake", "duckdb"},
    code_version=code_revision(),
    pool=POOL,
)
def publication(ledger: dg.ResourceParam[Ledger]) -> dg.MaterializeResult:
    with step(ledger, "publication") as planned:
        published = publish(ledger.builder, planned)
    return dg.MaterializeResult(metadata={"publication": published.number})


ASSETS = [
    bill,
    tracker,
    aws_capacity_reservation,
    aws_commitment,
    proof,
    *map(model_asset, load_catalog().ordered),
    publication,
]
