"""One asset per table: each body calls the builder and returns what it came to."""

from collections.abc import Iterator

import dagster as dg

from pipelines.defs.partitions import BILLING_MONTHS
from pipelines.defs.raw_assets import RAW_ASSETS
from pipelines.defs.resources import Ledger
from pipelines.defs.steps import ONE_RUN, POOL, asset_key, months_of, step
from pipelines.models.build import Built, FailedChecks
from pipelines.models.catalog import MADE_UP, Model, load_catalog
from pipelines.models.publish import publish
from pipelines.models.revision import code_revision
from pipelines.models.totals import added
from pipelines.quality.contract import load_contract
from pipelines.quality.validate import CheckResult


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


ASSETS = [*RAW_ASSETS, *map(model_asset, load_catalog().ordered), publication]
