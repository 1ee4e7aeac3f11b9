"""One asset per table, raw ones included: each body calls the builder and returns what it came to."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import dagster as dg

from pipelines.config.settings import Settings
from pipelines.defs.steps import ONE_RUN, PATIENCE, POOL, Ledger, asset_key, months_of, step
from pipelines.explain.names import column_origins
from pipelines.ingest.billing.columns import LISTS
from pipelines.models.build import FailedChecks
from pipelines.models.built import Built
from pipelines.models.catalog import SCHEMAS, SESSION_TABLES, Model, load_catalog
from pipelines.models.checks import Severity
from pipelines.models.contract import OWNER, Contract, contract_paths, load_contract
from pipelines.models.publish import drop_undelivered, publish
from pipelines.models.records import RECORDS
from pipelines.models.refresh import read_bill
from pipelines.models.revision import code_revision
from pipelines.models.warnings import failed_checks, sentence
from pipelines.models.written import added
from pipelines.query.marts import MARTS
from pipelines.warehouse.lock import TABLES
from pipelines.warehouse.part import month_of

PUBLICATION = dg.AssetKey("publication")

Owners = Mapping[str, str]
"""The team or mail address that stands for an owner named by contracts; one that is missing is a team itself."""

# AWS delivers a bill at least daily: a day and a half without a publication is news, three days are a failure.
FRESH = dg.FreshnessPolicy.time_window(fail_window=timedelta(days=3), warn_window=timedelta(hours=36))
_SUBJECTS = {name: subject for subject, marts in MARTS.items() for name in marts}

# What Dagster calls the checks of each severity.
CHECKS: dict[str, Severity] = {"contract": "error", "contract_warnings": "warn"}


def model_asset(model: Model, months: dg.PartitionsDefinition, owners: Owners) -> dg.AssetsDefinition:
    """The asset of one model, with its expectations as checks: `error` ones block what is downstream."""
    contract = load_contract(model.key)
    # The folder of a table, or the list of marts, may have a subject.
    subject = _SUBJECTS.get(model.name) or contract_paths()[model.key].parent.name

    @dg.asset(
        key=asset_key(model.name),
        deps=[asset_key(name) for name in model.inputs if name not in SESSION_TABLES],
        description=contract.description,
        owners=[owner_of(contract.owner, owners)],
        group_name=model.layer if subject == model.layer else f"{model.layer}_{subject}",
        metadata={"dagster/column_schema": column_schema(contract), "dagster/column_lineage": column_lineage(model)},
        kinds={"sql" if model.kind == "sql" else "csv" if model.kind == "reference" else "polars", "deltalake"},
        partitions_def=None if model.grain == "whole" else months,
        backfill_policy=None if model.grain == "whole" else ONE_RUN,
        check_specs=list(check_specs(model, contract)),
        code_version=contract.digest,
        freshness_policy=FRESH if model.layer in SCHEMAS else None,
        pool=POOL if model.grain == "whole" else None,
    )
    def table(context: dg.AssetExecutionContext, ledger: dg.ResourceParam[Ledger]):
        yield from materialize(context, ledger, model)

    return table


def owner_of(name: str, owners: Owners) -> str:
    """An owner as Dagster writes it: a mail address, else a team."""
    owner = owners.get(name, name)
    return owner if "@" in owner else f"team:{owner}"


def column_schema(contract: Contract) -> dg.TableSchema:
    """The columns of a contract: type, meaning with the unit, and whether they make the key."""
    return dg.TableSchema(
        [
            dg.TableColumn(
                column.name,
                column.type,
                column.meaning + (f" Unit: {column.unit}." if column.unit else ""),
                dg.TableColumnConstraints(nullable=column.name not in contract.key),
            )
            for column in contract.columns
        ],
        dg.TableConstraints([f"key: {', '.join(contract.key)}"] if contract.key else []),
    )


def column_lineage(model: Model) -> dg.TableColumnLineage:
    """For each column that a table takes over from another one: that table."""
    return dg.TableColumnLineage(
        {
            column: [dg.TableColumnDep(asset_key(home), column)]
            for column, home in column_origins(model).items()
            if home in model.inputs and home not in SESSION_TABLES
        }
    )


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
    parts = [TABLES] if model.grain == "whole" else context.partition_keys
    with step(ledger, *parts) as planned:
        try:
            months = [] if model.grain == "whole" else months_of(context, planned)
            for made in ledger.builder.build_months(model.name, months):
                built.append(made)
        except FailedChecks as failed:
            yield from check_results(model, [*built, failed.built])
            raise
    yield from check_results(model, built)
    yield dg.MaterializeResult(metadata=built_metadata(built))


def check_results(model: Model, built: Sequence[Built]) -> Iterator[dg.AssetCheckResult]:
    """One result per severity over all checks and the months built; its description states what to do."""
    for name, severity in CHECKS.items():
        results = [(made, check) for made in built for check in made.checks if check.severity == severity]
        failed = [(made, check) for made, check in results if not check.passed]
        listed = [{"table": made.table, "period": made.period, **check.__dict__} for made, check in failed]
        if results:
            yield dg.AssetCheckResult(
                asset_key=asset_key(model.name),
                check_name=name,
                passed=not failed,
                severity=dg.AssetCheckSeverity.ERROR if severity == "error" else dg.AssetCheckSeverity.WARN,
                description="\n".join(map(sentence, failed_checks(listed, severity))) or None,
                metadata={
                    "check_count": len(results),
                    "failed_check_count": len(failed),
                    "failed_checks": dg.MetadataValue.json(
                        [
                            {
                                "check": check.check,
                                "title": check.title,
                                "month": made.period and month_of(made.period),
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


def built_metadata(built: Sequence[Built]) -> dict[str, dg.MetadataValue | int]:
    """Rows and totals over the months built, and how many of them were up to date."""
    money = added(made.totals for made in built)
    sums_of = {
        name: ", ".join(f"{sums[unit]:,.2f} {unit}" for unit in sorted(sums)) for name, sums in money.items() if sums
    }
    return {
        "dagster/row_count": sum(made.row_count for made in built),
        "unchanged": sum(made.was_current for made in built),
        **{name: dg.MetadataValue.text(text) for name, text in sums_of.items()},
    }


def publication_asset(owners: Owners) -> dg.AssetsDefinition:
    """The publication, which rests on every public table."""

    @dg.asset(
        key=PUBLICATION,
        deps=[asset_key(model.name) for model in load_catalog().public],
        description="The one record that makes every mart of a build visible together.",
        owners=[owner_of(OWNER, owners)],
        group_name="publication",
        kinds={"deltalake", "duckdb"},
        code_version=code_revision(),
        freshness_policy=FRESH,
        pool=POOL,
    )
    def publication(ledger: dg.ResourceParam[Ledger]) -> dg.MaterializeResult:
        with step(ledger) as planned:
            published = publish(ledger.builder, planned)
        return dg.MaterializeResult(metadata={"publication": published.number})

    return publication


def bill_asset(months: dg.PartitionsDefinition, owners: Owners) -> dg.AssetsDefinition:
    """The delivered bill: one step for the lines of every kind of export."""

    @dg.multi_asset(
        name="bill",
        specs=[
            dg.AssetSpec(
                asset_key(listed.table),
                description=f"Lines of each {listed.export} as delivered, one billing month at a time.",
                owners=[owner_of(OWNER, owners)],
                group_name="raw",
                kinds={"s3", "parquet"},
            )
            for listed in LISTS
        ],
        partitions_def=months,
        backfill_policy=ONE_RUN,
        retry_policy=PATIENCE,
    )
    def bill(context: dg.AssetExecutionContext, ledger: dg.ResourceParam[Ledger]) -> Iterator[dg.MaterializeResult]:
        with step(ledger, *context.partition_keys) as planned:
            stored = read_bill(ledger.builder, planned, months_of(context, planned))
            drop_undelivered(ledger.builder, planned)
        for listed in LISTS:
            of_list = [raw for raw in stored if raw.delivery.listed is listed]
            yield dg.MaterializeResult(
                asset_key(listed.table),
                metadata={
                    "dagster/row_count": sum(raw.line_count for raw in of_list),
                    "deliveries": [raw.delivery.delivery_id for raw in of_list],
                },
            )

    return bill


def records_asset(what: str, owners: Owners) -> dg.AssetsDefinition:
    """The tables that one step of RECORDS brings up to date together and whole."""
    records = RECORDS[what]
    owner = owner_of(records.owner, owners)
    # Registrations are TOML.
    kinds = {"polars"} if what == "registrations" else {"json", "polars"}

    @dg.multi_asset(
        name=what.replace(" ", "_"),
        specs=[
            dg.AssetSpec(asset_key(table), description=about, owners=[owner], group_name="raw", kinds=kinds)
            for table, about in records.about.items()
        ],
        retry_policy=PATIENCE,
        pool=POOL,
    )
    def brought(ledger: dg.ResourceParam[Ledger]) -> Iterator[dg.MaterializeResult]:
        with step(ledger, TABLES):
            counts = records(ledger.builder.warehouse)
        for table in records.tables:
            yield dg.MaterializeResult(asset_key(table), metadata={"dagster/row_count": counts[table]})

    return brought


def assets(settings: Settings | None, months: dg.PartitionsDefinition) -> list[dg.AssetsDefinition]:
    """Every asset, with the months of the bill and the owners of the configuration, where there is one."""
    owners: Owners = {**settings.owners} if settings else {}
    made = [model_asset(model, months, owners) for model in load_catalog().ordered]
    records = [records_asset(what, owners) for what in RECORDS]
    return [bill_asset(months, owners), *records, *made, publication_asset(owners)]
