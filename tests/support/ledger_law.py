"""The ledger law (design 3), checked on a built warehouse and on the bill as a plain reader adds it up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal

import polars as pl

from pipelines.engine import Engine
from pipelines.models.build import Builder
from support.bills import ORDINARY_LINE
from support.focus_exports import ORDINARY_FOCUS_LINE

BASES = ("list_cost_usd", "effective_cost_usd", "billed_cost_usd")
CUR_COLUMNS = ("bill_payer_account_id", "bill_invoice_id", "line_item_currency_code", "line_item_unblended_cost")
FOCUS_COLUMNS = ("BillingAccountId", "InvoiceId", "BillingCurrency", "BilledCost")
# What the law is about.
LAW_TABLES = frozenset({"fct_charge", "fct_ledger"})
LINE = "source_name, source_file, source_row"

# Hours of a Capacity Block without its fee are of unknown cost; what one costs itself is a piece.
KNOWN = "case when market = 'capacity_block' then coalesce(effective_cost_usd, 0) else effective_cost_usd end"

# Every apportioned line with what its pieces come to; a line that is not apportioned has none to compare.
LINES_THAT_DO_NOT_SUM = f"""
with piece as (
    select {LINE}, list_cost_usd, {KNOWN} as effective_cost_usd, billed_cost_usd
    from fct_ledger where piece_kind <> 'whole'
),
shared_out as (
    select {LINE}, line_class, bucket, list_cost_usd, {KNOWN} as effective_cost_usd, billed_cost_usd
    from fct_charge where source_row is not null
),
whole as (
    select {LINE}, {", ".join(f"case when count({base}) = count(*) then sum({base}) end as {base}" for base in BASES)}
    from piece group by {LINE}
)
select line.source_file, line.source_row,
    {", ".join(f"line.{base}, whole.{base} as pieces_{base}" for base in BASES)}
from shared_out as line
left join whole using ({LINE})
where line.line_class <> 'capacity_unused' and (line.bucket is null or whole.source_row is not null)
    and ({" or ".join(f"line.{base} is distinct from whole.{base}" for base in BASES)})
"""


def lines_that_do_not_sum(engine: Engine) -> list[dict[str, object]]:
    """Bill lines whose pieces do not come to the line exactly, on any basis."""
    return engine.query(LINES_THAT_DO_NOT_SUM).to_dicts()


def ledger_totals(engine: Engine) -> dict[tuple[str, ...], Decimal]:
    """Billed cost of the ledger by (payer, billing month as YYYY-MM, invoice, currency)."""
    rows = engine.query(
        "select payer_account_id, strftime(billing_month, '%Y-%m'), invoice_id, billing_currency, sum(billed_cost_usd) "
        "from fct_ledger group by all"
    ).rows()
    return {tuple(key): amount for *key, amount in rows}


def bill_totals(months: Mapping[str, Iterable[Mapping[str, str]]]) -> dict[tuple[str, ...], Decimal]:
    """Billed cost of the lines by (payer, billing month, invoice, currency), added up by nothing but Decimal."""
    totals: dict[tuple[str, ...], Decimal] = defaultdict(Decimal)
    for month, lines in months.items():
        for line in lines:
            is_focus = "BilledCost" in line
            full = {**(ORDINARY_FOCUS_LINE if is_focus else ORDINARY_LINE), **line}
            payer, invoice, currency, cost = FOCUS_COLUMNS if is_focus else CUR_COLUMNS
            totals[full[payer], month, full[invoice], full[currency]] += Decimal(full.get(cost) or 0)
    return dict(totals)


def total_by_basis(builder: Builder, ledger: Engine, months: Iterable[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sums of effective and billed cost by billing month and currency: of the staged bill lines, and of the ledger."""
    sums = "sum(effective_cost_usd), sum(billed_cost_usd)"
    wanted = f"select billing_month, billing_currency, {sums} from {{}} group by 1, 2 order by 1, 2"
    lines = []
    for month in months:
        with builder.open(["stg_aws__line_item"], month) as engine:
            lines.append(engine.query(wanted.format("stg_aws__line_item")))
    return pl.concat(lines), ledger.query(wanted.format("fct_ledger"))
