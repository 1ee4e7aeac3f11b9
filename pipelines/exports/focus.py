"""Writes published billing months as datasets of FOCUS 1.2 or 1.4, each as Parquet and as csv."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipelines.base.console import Console
from pipelines.base.dates import month_spans
from pipelines.base.errors import UsageError
from pipelines.base.paths import below
from pipelines.config.settings import Settings
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.build import Builder
from pipelines.models.contract import Column, load_contract
from pipelines.models.warehouse import Warehouse, published_of
from pipelines.present.csv_text import FORMULA
from pipelines.warehouse.storage import fresh_file

# What cost and usage reports become, and what came as FOCUS.
CHARGES = ("stg_aws__focus_charge", "stg_aws__focus_delivered")
# Columns of Cost and Usage that a version has not.
VERSIONS = {
    "1.2": {
        "CommitmentProgramEligibilityDetails", "ContractApplied", "HostProviderName", "InvoiceDetailId",
        "ServiceProviderName",
    },
    "1.4": {"ProviderName", "PublisherName"},
}  # fmt: skip
NAME = "cost_and_usage"
# The other datasets of 1.4, by the model that has their columns.
OTHERS = {
    "contract_commitment": "stg_aws__focus_contract_commitment",
    "invoice_detail": "stg_aws__focus_invoice_detail",
}
# Older publications have none.
MONTHS = "detail_billing_month"
# As AWS writes FOCUS: numbers are doubles, times instants; key-value columns are JSON text, as validators read.
_IN_PARQUET = {"DECIMAL": 'cast("{}" as double)', "TIMESTAMP": "timezone('UTC', \"{}\")"}
# Amounts with all their places, times with their zone, exponents as FOCUS writes them. What spreadsheets run of a text,
# they run of a csv; the Parquet file has it as it was.
_IN_CSV = {
    "TIMESTAMP": "strftime(\"{}\", '%Y-%m-%dT%H:%M:%SZ')",
    "DOUBLE": 'upper(cast("{}" as varchar))',
    "VARCHAR": f"regexp_replace(\"{{}}\", '{FORMULA}', '''\\0')",
}
# A month is closed once each charge of its issuer is on an invoice.
_BILLING_PERIOD = """
    select "BillingPeriodStart" as "BillingPeriodCreated", max("BillingPeriodEnd") as "BillingPeriodEnd",
        least(max("ChargePeriodEnd"), max("BillingPeriodEnd")) as "BillingPeriodLastUpdated", "BillingPeriodStart",
        case when count("InvoiceId") < count(*) then 'Open' else 'Closed' end as "BillingPeriodStatus",
        "InvoiceIssuerName"
    from charge
    group by "BillingPeriodStart", "InvoiceIssuerName"
    order by "BillingPeriodStart", "InvoiceIssuerName"
"""


def export_focus(settings: Settings, month: str | None, out: Path, console: Console, version: str = "1.2") -> None:
    """Write the published months, or one of them as YYYY-MM, below `out`, and print what they come to."""
    if version not in VERSIONS:
        raise UsageError(f"--version {version} is not supported; choose one of {', '.join(VERSIONS)}.")
    root = out / f"focus-{version}"
    if existing := next((place for place in (root, *root.parents) if place.exists() and not place.is_dir()), None):
        raise UsageError(f"{existing} is a file; choose a folder with --out.")
    # Whatever engine builds the tables: one pass over a month needs no cluster.
    place = settings.warehouse.model_copy(update={"engine": "duckdb"})
    warehouse = Warehouse(settings.model_copy(update={"warehouse": place}))
    published = published_of(warehouse)
    # The lines the publication was made from, also where a newer delivery waits to be built.
    seen = warehouse.as_published(published)
    months = published.billing_months
    if month is not None and month not in months:
        raise UsageError(f"--month {month} is not published; give one of {month_spans(months)}, or none for all.")
    months = months if month is None else [month]
    with console.steps(len(months)) as steps:
        for period in months:
            folder = below(root, f"billing_period={period}", error=UsageError)
            _export_month(seen, period, folder, version, console, is_known=f"detail/{MONTHS}" in published.tables)
            steps.step(f"focus {period}")
    console.say(f"Wrote FOCUS {version} of publication {published.number} to {root}.")


def _export_month(
    warehouse: Warehouse, period: str, folder: Path, version: str, console: Console, is_known: bool
) -> None:
    """Write the datasets of a month; each file appears whole, replacing that of an earlier export."""
    others = OTHERS if version == "1.4" else {}
    names = [*CHARGES, "ref_service", *others.values(), *[MONTHS] * is_known]
    with Builder(warehouse).open(names, period) as engine, _scratch(folder) as scratch:
        assert isinstance(engine, DuckDBEngine)
        charges = load_contract(f"staging/{CHARGES[0]}").columns
        # The bill is read once; all files are made from what it gave.
        engine.write(" union all ".join(f"select {_typed(charges)} from {table}" for table in CHARGES), scratch)
        warehouse.pseudonyms.of_sources().file(scratch)
        engine.view("charge", [scratch])
        kept = [column for column in charges if column.name not in VERSIONS[version]]
        _write(engine, "charge", kept, folder / NAME)
        for name, model in others.items():
            columns = load_contract(f"staging/{model}").columns
            with _scratch(folder, name) as own:
                engine.write(_of_month(model, columns, period), own)
                # The payers that charges add to invoices have their pseudonyms.
                warehouse.pseudonyms.file(own)
                engine.view(name, [own])
                _write(engine, name, columns, folder / name)
        if others:
            engine.view_sql("period", _BILLING_PERIOD)
            _write(engine, "period", _PERIOD_COLUMNS, folder / "billing_period")
        _print_totals(engine, period, console)
        if is_known:
            _print_missing(engine, period, console)


def _of_month(model: str, columns: Sequence[Column], period: str) -> str:
    """The rows of a model in a month; what an invoice does not state, the charges that name it show."""
    if model != OTHERS["invoice_detail"]:
        return f"select {_typed(columns)} from {model}"
    start = f"timestamp '{period}-01'"
    end = f"{start} + interval '1' month"
    ends = dict.fromkeys(("BillingPeriodEnd", "InvoiceDetailCreated", "InvoiceDetailLastUpdated"), end)
    others = {"BillingAccountId": "payer", "BillingPeriodStart": start} | ends
    filled = ", ".join(f'coalesce("{name}", {value}) as "{name}"' for name, value in others.items())
    return f"""
        select {_typed(columns)} from (
            select * replace ({filled})
            from {model}
            left join (select "InvoiceId", min("BillingAccountId") as payer from charge group by 1) as billed
                using ("InvoiceId")
            where "BillingPeriodStart" = {start} or "BillingPeriodStart" is null and payer is not null
        ) order by "InvoiceIssuerName", "InvoiceId", "InvoiceDetailId"
    """


def _write(engine: DuckDBEngine, view: str, columns: Sequence[Column], file: Path) -> None:
    """Write the columns of a view as `file` with the suffixes .parquet and .csv, each whole."""
    for suffix, forms, write in ((".parquet", _IN_PARQUET, engine.write), (".csv", _IN_CSV, engine.write_csv)):
        with fresh_file(file.with_suffix(suffix)) as fresh:
            write(f"select {', '.join(_in_file(column, forms) for column in columns)} from {view}", fresh)


def _print_totals(engine: DuckDBEngine, period: str, console: Console) -> None:
    """The totals of a month by currency, and the services that ref_service.csv lacks, which count as Other.

    FOCUS takes credits off EffectiveCost, our marts do not (docs/focus-export.md), so it is called by its own name.
    """
    sums = 'count(*), sum("BilledCost"), sum("EffectiveCost")'
    rows = engine.query(f'select "BillingCurrency", {sums} from charge group by 1 order by 1').rows()
    for currency, count, billed, effective in rows:
        console.say(
            f"{period}  {count:>12,} charges  "
            f"BilledCost {billed:,.2f} {currency}  EffectiveCost {effective:,.2f} {currency}, credits taken off"
        )
    unlisted = engine.query(
        'select distinct "ServiceName" from charge where "ServiceCategory" = \'Other\' '
        'and "ServiceName" not in (select service_name from ref_service) order by 1'
    ).rows()
    if unlisted:
        names = ", ".join(name for (name,) in unlisted)
        console.note(
            f"Warning: {period}: exported with ServiceCategory Other because the category is unknown: {names}. "
            "Their costs are complete; nothing needs to be done."
        )


def _print_missing(engine: DuckDBEngine, period: str, console: Console) -> None:
    """The commitment fees of the month whose use the bill does not show: no EffectiveCost has them."""
    for currency, missing in engine.query(
        f"select distinct currency, month_unallocated_fee_usd from {MONTHS} "
        f"where month_unallocated_fee_usd > 0 and strftime(billing_month, '%Y-%m') = '{period}' order by 1"
    ).rows():
        console.note(
            f"Warning: {period}: EffectiveCost is partial: {missing:,.2f} {currency} of commitment fees are billed "
            "without the usage they covered."
        )


def _typed(columns: Sequence[Column]) -> str:
    return ", ".join(f'cast("{column.name}" as {column.type}) as "{column.name}"' for column in columns)


def _in_file(column: Column, forms: Mapping[str, str]) -> str:
    """A column as a file has it, by the form of its type."""
    form = forms.get(column.type.partition("(")[0], '"{}"')
    return f'{form.format(column.name)} as "{column.name}"'


@contextmanager
def _scratch(folder: Path, name: str = "exact") -> Iterator[Path]:
    """A file to write to, gone afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    file = below(folder, f".{os.getpid()}.{name}.parquet", error=UsageError)
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


_PERIOD_COLUMNS = [
    Column(f"BillingPeriod{name}", "VARCHAR" if name == "Status" else "TIMESTAMP", None, "")
    for name in ("Created", "End", "LastUpdated", "Start", "Status")
] + [Column("InvoiceIssuerName", "VARCHAR", None, "")]
