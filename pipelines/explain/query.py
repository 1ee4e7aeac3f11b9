"""The question: rows of a mart, and the condition that selects their rows of the ledger and their bill lines."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import polars as pl

from pipelines.base.dates import date_of, month_date
from pipelines.base.errors import UsageError, shown
from pipelines.engine import Engine
from pipelines.engine.duckdb import quoted
from pipelines.models.written import BASES

LINES, LEDGER = "fct_ledger_line", "fct_ledger"
STAYS = "stg_tracker__resource"
LEDGER_DAY = "mart_cost_ledger_daily"
RECONCILIATION = "mart_invoice_reconciliation_monthly"
RUN_COST = "mart_run_cost"
PROVISIONAL = "detail_provisional_run"
BILLING_MONTH = "detail_billing_month"
COMMITMENTS = "detail_commitment_utilization_daily"
CENT = Decimal("0.01")
# Null as soon as a part is unknown, like the marts.
SUMS = ", ".join(f"case when count({basis}) = count(*) then sum({basis}) end as {basis}" for basis in BASES)
_FILTERS = {
    "payer": "payer_account_id",
    "account": "account_id",
    "bucket": "bucket",
    "category": "charge_category",
    "service": "service",
    "family": "accelerator_family",
    "currency": "billing_currency",
}


@dataclass(frozen=True)
class Level:
    """The lines summed by some of their columns; `ledger` when the daily ledger has these columns too.

    A level without a title repeats the mart: it is checked but not shown.
    """

    title: str
    by: tuple[str, ...]
    ledger: bool = False


@dataclass(frozen=True)
class Question:
    """Rows of a mart to be explained. `condition` holds for the ledger and for its lines alike; `sums` names for
    each summed column of the lines the one of the mart it must come to."""

    title: str
    mart: str
    rows: pl.DataFrame
    shown: tuple[str, ...]
    condition: str
    levels: tuple[Level, ...]
    sums: Mapping[str, str]
    largest: str = "effective_cost_usd"
    # What its effective cost lacks; empty where it is whole.
    note: str = ""
    # What its lines are compared with next to the mart.
    compared: str = "the daily ledger"
    # Of the lines for which the condition holds, only those in this currency.
    currency: str | None = None
    # The condition of the lines, where the ledger's is another.
    line_condition: str = ""
    # Other tables that its conditions and the following SELECTs read.
    reads: tuple[str, ...] = ()
    # What is kept of them next to the lines, by name: SELECTs before the lines are read.
    stored: Mapping[str, str] = field(default_factory=dict)
    # Its views in their order, over what is kept, the ledger's rows as `ledger_row` and the lines as `line`.
    views: Mapping[str, str] = field(default_factory=dict)
    # Each figure of the mart that its drill-downs do not sum to: name, figure, sum.
    apart: tuple[tuple[str, Decimal | None, Decimal | None], ...] = ()
    # A SELECT of what is larger than what it may be a share of: name, share and whole in USD.
    beyond: str = ""


def for_run(engine: Engine, run_id: str, currency: str | None = None) -> Question:
    """The cost of a recorded or provisional run. UsageError, with similar names, for an unknown run."""
    mart, column = RUN_COST, "status"
    rows = engine.query(f"select * from {mart} where run_id = {quoted(run_id)}")
    if rows.is_empty():
        mart, column = PROVISIONAL, "evidence"
        rows = engine.query(f"select * from {mart} where is_probably_run and run_id = {quoted(run_id)}")
    if rows.is_empty():
        reasons = values(engine, PROVISIONAL, "missing_evidence", f"run_id = {quoted(run_id)}")
        if reasons:
            raise UsageError(f"{shown(run_id)} is a value of the run tag, {reasons[0]}; {PROVISIONAL} has its cost.")
        provisional = values(engine, PROVISIONAL, "run_id", "is_probably_run")
        raise unknown("run", run_id, [*values(engine, RUN_COST, "run_id"), *provisional], "the run ids")
    # A recorded run in two currencies has one row, of no currency.
    is_in_several = mart == RUN_COST and rows["is_billed"][0] and rows["billing_currency"][0] is None
    # Its lines bill hours of a Capacity Block at 0, and the fee is on none of them.
    is_unpaid = mart == RUN_COST and rows["is_billed"][0] and not is_in_several and rows["billed_cost_usd"][0] is None
    unknown_basis = ("billed_cost_usd",) if is_unpaid else ()
    note = "The run is billed in several currencies, so its own cost is unknown." if is_in_several else ""
    if is_unpaid:
        note = "The run used a Capacity Block whose fee no delivered bill has, so its own cost is unknown."
    if mart == RUN_COST and (hours := rows["unbilled_hours"][0]):
        usd = rows["unbilled_cost_usd"][0]
        dollars = "" if usd is None else f", about {usd:,.2f} {rows['billing_currency'][0]},"
        lacking = (
            f"The bill lacks {hours:,.1f} accelerator-hours that the run recorded{dollars} so its cost is partial."
        )
        note = f"{note} {lacking}".lstrip()
    if mart == RUN_COST and (usd := rows["estimated_cost_usd"][0]):
        why = "only a tag or a type names its machines, or the window of its Capacity Block is unknown"
        note = f"{note} Of its cost, {usd:,.2f} {rows['billing_currency'][0]} is estimated: {why}.".lstrip()
    # What a run on no line recorded shows where to look.
    is_on_no_line = mart == RUN_COST and not rows["is_billed"][0]
    stay = (
        f"select distinct resource_id, instance_type, joined_at, left_at from {STAYS} where run_id = {quoted(run_id)}"
    )
    if currency:
        rows = rows.filter(pl.col("billing_currency").is_null() | (pl.col("billing_currency") == currency))
    return Question(
        title=f"Run {run_id}",
        mart=mart,
        rows=rows,
        shown=("run_id", column),
        condition=f"bucket = 'run' and run_id = {quoted(run_id)}",
        currency=currency,
        levels=(
            Level("By day, and how the dollars were joined to the run", ("usage_date", "evidence"), ledger=True),
            Level("By resource", ("resource_id", "instance_type")),
        ),
        sums={} if is_in_several else {basis: basis for basis in BASES if basis not in unknown_basis},
        note=note,
        reads=(STAYS,) if is_on_no_line else (),
        stored={STAYS: stay} if is_on_no_line else {},
    )


def for_day(engine: Engine, day: str, filters: Mapping[str, str | None]) -> Question:
    """The ledger of a day (YYYY-MM-DD), of the `filters` values of its columns. UsageError where it has no row."""
    return _ledger_question(engine, "day", day, f"usage_date = date '{date_of(day)}'", "usage_date", filters)


def for_month(engine: Engine, month: str, filters: Mapping[str, str | None]) -> Question:
    """The ledger of a billing month (YYYY-MM), as of a day. UsageError when it has no such row."""
    holds = f"billing_month = date '{month_date(month)}'"
    question = _ledger_question(engine, "month", month, holds, "billing_month", filters)
    by = Level("By bucket", ("bucket",), ledger=True), Level("By day", ("usage_date",), ledger=True)
    return replace(question, levels=(question.levels[0], *by, question.levels[1]))


def _ledger_question(
    engine: Engine, kind: str, when: str, holds: str, column: str, filters: Mapping[str, str | None]
) -> Question:
    filters = {name: value for name, value in filters.items() if value is not None}
    where = [holds]
    for name, value in filters.items():
        known = values(engine, LEDGER_DAY, name, " and ".join(where))
        if not known:
            break
        if value not in known:
            raise unknown(f"{name} {'on' if kind == 'day' else 'in'} {when}", value, known, "known values")
        where.append(f"{name} = {quoted(value)}")
    condition, payer = " and ".join(where), filters.get("payer_account_id")
    key = ("account_id", "bucket", "charge_category", "service", "accelerator_family")
    order = ", ".join(("abs(effective_cost_usd) desc", "payer_account_id", *key, "billing_month", "billing_currency"))
    rows = engine.query(f"select * from {LEDGER_DAY} where {condition} order by {order}, usage_date")
    if rows.is_empty():
        known = [value[: len(when)] for value in values(engine, LEDGER_DAY, column)]
        raise unknown(f"{kind} in the ledger", when, known, f"the {kind}s")
    refuse_to_add(rows["billing_currency"])
    is_left_unused = "commitment_unused" in rows["bucket"].to_list()
    of_payer = f"{holds} and payer_account_id = {quoted(payer)}" if payer else holds
    missing = _missing_fees(engine, of_payer, rows["billing_currency"][0]) if is_left_unused else ""
    return Question(
        note=" ".join(filter(None, (missing, _hours_to_come(engine, rows)))),
        title=" ".join([kind.capitalize(), when, *(f"{name} {value}" for name, value in filters.items())]),
        mart=LEDGER_DAY,
        rows=rows,
        shown=key,
        condition=condition,
        levels=(
            Level("", ("payer_account_id", *key), ledger=True),
            Level("By resource", ("resource_id", "usage_type")),
        ),
        sums={basis: basis for basis in BASES},
        views=_unknown_use(engine, rows),
    )


def _unknown_use(engine: Engine, rows: pl.DataFrame) -> dict[str, str]:
    """Lines and ledger as the mart has them: while the bill does not show what used some fees of a payer's month, what
    a commitment left unused is unknown, not zero. Empty where every use is shown."""
    if "commitment_unused" not in rows["bucket"].to_list():
        return {}
    missing = engine.query(
        f"select billing_month, payer_account_id, currency from {BILLING_MONTH} where unallocated_fee_usd > 0"
    ).rows()
    if not missing:
        return {}
    month = "billing_month, payer_account_id, billing_currency"
    named = ", ".join(f"(date '{first}', {quoted(payer)}, {quoted(currency)})" for first, payer, currency in missing)
    # The mart asks what the lines of a day left unused together.
    known = (
        f"case when bucket <> 'commitment_unused' or ({month}) not in ({named}) "
        f"or sum(effective_cost_usd) over (partition by bucket, {month}, usage_date, account_id, invoice_id, "
        "charge_category, service, region_id, accelerator_family, market, list_cost_usd is null) <> 0 "
        "then effective_cost_usd end as effective_cost_usd"
    )
    kept = {LINES: "line", LEDGER: "ledger_row"}
    return {name: f"select * replace ({known}) from {table}" for name, table in kept.items()}


def _missing_fees(engine: Engine, holds: str, currency: str) -> str:
    """A sentence on commitment fees whose use the bill does not show; empty where there are none."""
    ((amount,),) = engine.query(
        f"select sum(unallocated_fee_usd) from {COMMITMENTS} where {holds} and billing_currency = {quoted(currency)}"
    ).rows()
    if not amount or amount < CENT:
        return ""
    return (
        f"Effective cost is partial: the bill does not show what used {amount:,.2f} {currency} of commitment fees, so "
        "their unused part is unknown, not zero."
    )


def _hours_to_come(engine: Engine, rows: pl.DataFrame) -> str:
    """A sentence on commitments of an open month, whose fees are of the whole month; empty where there are none."""
    unused = rows.filter(pl.col("effective_cost_usd") != 0, bucket="commitment_unused")
    key = ("billing_month", "payer_account_id", "billing_currency")
    months = engine.query(f"select *, currency as billing_currency from {BILLING_MONTH} where status = 'open'")
    if unused.join(months, key, "semi").is_empty():
        return ""
    return "The month is open: what its commitments left unused may include hours to come."


def chosen(**options: str | None) -> dict[str, str | None]:
    """The filters of the ledger, from the options of the command, by the names of its columns."""
    return {column: options.get(option) for option, column in _FILTERS.items()}


def for_invoice(
    engine: Engine, invoice_id: str | None, month: str | None, payer: str | None, currency: str | None = None
) -> Question:
    """An invoice, or every one of a month (YYYY-MM). UsageError where there is none."""
    where = [f"billing_month = date '{month_date(month)}'"] if month else []
    # The same for the ledger.
    ledger_where = list(where)
    for name, value in (("payer_account_id", payer), ("invoice_id", invoice_id), ("currency", currency)):
        if value is not None:
            known = values(engine, RECONCILIATION, name, " and ".join(where) or "true")
            if value not in known:
                raise unknown(name.removesuffix("_id").replace("_", " "), value, known, "known values")
            where.append(f"{name} = {quoted(value)}")
            ledger_where.append(f"{'billing_currency' if name == 'currency' else name} = {quoted(value)}")
    if not where:
        known = [number for number in values(engine, RECONCILIATION, "invoice_id") if number]
        listed = f"the invoices are {_first(known)}" if known else "no invoice of this publication has a number yet"
        raise UsageError(f"Name an invoice, or a month with --month 2026-07; {listed}.")
    condition = " and ".join(where)
    rows = engine.query(f"select * from {RECONCILIATION} where {condition} order by 1, 2, 3, 4")
    if rows.is_empty():
        months = [str(day)[:7] for day in values(engine, RECONCILIATION, "billing_month")]
        raise unknown("billing month", str(month), months, "the months")
    refuse_to_add(rows["currency"])
    months = ", ".join(f"date '{day}'" for day in rows["billing_month"].unique().sort())
    payers = ", ".join(map(quoted, rows["payer_account_id"].unique().sort()))
    holds = f"billing_month in ({months}) and payer_account_id in ({payers})"
    title = "Every invoice" if invoice_id is None else f"Invoice {invoice_id or 'not yet closed'}"
    return Question(
        note=_missing_fees(engine, holds, rows["currency"][0]),
        title=title + (f" of {month}" if month else "") + (f" of payer {payer}" if payer else ""),
        mart=RECONCILIATION,
        rows=rows,
        shown=("invoice_id", "billing_entity", "status"),
        condition=" and ".join(ledger_where),
        levels=(Level("By charge category and service", ("charge_category", "service"), ledger=True),),
        sums={"effective_cost_usd": "effective_cost_usd", "billed_cost_usd": "ledger_cost_usd"},
        largest="billed_cost_usd",
    )


def refuse_to_add(currencies: pl.Series) -> None:
    """UsageError where rows are of several currencies: no sum may mix them."""
    several = currencies.unique().sort().to_list()
    if len(several) > 1:
        raise UsageError(
            f"This is billed in {' and '.join(several)}, never added; choose one with --currency {several[0]}."
        )


def near(word: str, known: Iterable[str]) -> str:
    """The names most similar to a word, as the end of a sentence; empty where none is similar."""
    folded = {name.lower(): name for name in known}
    found = [folded[name] for name in get_close_matches(word.lower(), folded, n=3, cutoff=0.5)]
    if not found:
        return ""
    return f"did you mean {found[0]}?" if len(found) == 1 else f"did you mean one of {', '.join(found)}?"


def unknown(kind: str, word: str, known: list[str], what: str) -> UsageError:
    """The error for a word that is not a known `kind`: similar names, else the first of the known ones (`what`)."""
    hint = near(word, known) or (f"{what} are {_first(known)}." if known else "none is in this publication.")
    return UsageError(f"{shown(word)} is not a known {kind}; {hint}")


def _first(known: list[str]) -> str:
    return ", ".join(sorted(known)[:5]) + (", …" if len(known) > 5 else "")


def values(engine: Engine, table: str, column: str, where: str = "true") -> list[str]:
    """The distinct values of a column as text, in its order."""
    rows: list[tuple[Any, ...]] = engine.query(f"select distinct {column} from {table} where {where} order by 1").rows()
    return [str(value) for (value,) in rows]
