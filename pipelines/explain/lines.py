"""The bill lines behind mart rows: collected once, summed at every level and compared with the mart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from pipelines.base.errors import CheckError, UsageError
from pipelines.base.paths import below
from pipelines.base.sql import quoted
from pipelines.engine import Engine
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.explain.query import (
    BASES,
    LEDGER,
    LINES,
    RECONCILIATION,
    STAYS,
    SUMS,
    Level,
    Question,
    chosen,
    for_day,
    for_invoice,
    for_month,
    for_run,
    refuse_to_add,
    unknown,
    values,
)
from pipelines.explain.serving import for_model
from pipelines.models.build import Builder
from pipelines.models.revision import code_revision
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.lake import Publication

BILLED = "stg_aws__invoice_total"
# The amounts are those of the bill, whether or not the invoice itself was read.
BY_CHARGE_TYPE = "Billed and in the ledger, by charge type"
_KEY = "source_name, source_file, source_row, hour_no, piece_no"
# A line that is shared or spans hours is split into pieces.
_COUNTS = """
    count(distinct case when source_row is not null then (source_name, delivery_id, source_file, source_row) end)
        as line_count, count(*) as piece_count
"""


def question_of(marts: Engine, kind: str, word: Any, options: Mapping[str, str | None]) -> Question:
    """The question of a command or a page: its kind, the word it is about, and its options; UsageError as it has."""
    month, currency = options.get("month"), options.get("currency")
    if kind == "run":
        return for_run(marts, word, currency)
    if kind == "invoice":
        return for_invoice(marts, word, month, options.get("payer"), currency)
    if kind == "model":
        return for_model(marts, word, month, currency)
    return (for_day if kind == "day" else for_month)(marts, word, chosen(**options))


@contextmanager
def behind(warehouse: Warehouse, publication: Publication, question: Question) -> Iterator[Explanation]:
    """The lines behind a question, from the bill of the publication.

    UsageError when they are in several currencies, or none in that of the question, and where [privacy] has pseudonyms;
    SourceError when a delivery of the publication is no longer stored.
    """
    if warehouse.settings.privacy.pseudonyms:
        raise UsageError(
            "`explain` shows bill lines as delivered, and [privacy] requires pseudonyms; use a configuration without "
            "[privacy]."
        )
    builder = Builder(warehouse.as_published(publication))
    condition, of_lines = question.condition, question.line_condition or question.condition
    with TemporaryDirectory(prefix="trainledger-") as folder, DuckDBEngine() as engine:
        place = Path(folder)
        with builder.open([LEDGER, *question.reads]) as tables:
            if question.currency:
                known = values(tables, LEDGER, "billing_currency", condition)
                if question.currency not in known:
                    raise unknown("currency of these lines", question.currency, known, "the currencies")
                condition = of_lines = f"{condition} and billing_currency = {quoted(question.currency)}"
            of_ledger = f"from {LEDGER} where {condition}"
            placed = tables.query(f"select distinct billing_period, billing_currency {of_ledger}")
            refuse_to_add(placed["billing_currency"])
            months = sorted(set(placed["billing_period"]))
            kept = {"ledger_row": f"select * {of_ledger}", **question.stored}
            for name, select in kept.items():
                tables.write(select, place / f"{name}.parquet")
        deliveries = publication.inputs["deliveries"]
        wanted = {LINES: "line"} | ({BILLED: BILLED} if question.mart == RECONCILIATION else {})
        # Without any line the newest month still provides the columns.
        for month in months or [max(delivery["billing_period"] for delivery in deliveries)]:
            with builder.open([*wanted, *question.reads], month) as tables:
                for name in wanted:
                    select = f"select * from {name} where {of_lines}"
                    tables.write(select, below(place, f"{name}.{month}.parquet"))
        for name in kept:
            engine.view(name, [place / f"{name}.parquet"])
        for name, view in wanted.items():
            engine.view(view, sorted(place.glob(f"{name}.*")))
        for name, select in (question.views or {LINES: "from line", LEDGER: "from ledger_row"}).items():
            engine.view_sql(name, select)
        used = [delivery for delivery in deliveries if delivery["billing_period"] in months]
        yield Explanation(question, publication, used, engine)


@dataclass(frozen=True)
class Explanation:
    """The lines behind a question; `deliveries` are those the lines came in."""

    question: Question
    publication: Publication
    deliveries: list[dict[str, Any]]
    _engine: Engine

    @property
    def currency(self) -> str:
        """The one currency of the lines; USD where there is none."""
        rows = self._engine.query(f"select max(billing_currency) from {LINES}").rows()
        return rows[0][0] or "USD"

    def total(self) -> dict[str, Any]:
        """How many lines and pieces there are, and their sum on each basis; null where a part of it is unknown."""
        return self._engine.query(f"select {_COUNTS}, {SUMS} from {LINES}").row(0, named=True)

    def level(self, level: Level) -> pl.DataFrame:
        """The lines summed by the level's columns, the largest first."""
        by = ", ".join(level.by)
        summed = f"select {by}, {_COUNTS}, {SUMS} from {LINES} group by {by}"
        return self._engine.query(f"select * from ({summed}) as summed order by {self._largest_first(by)}")

    def lines(self, limit: int | None = None) -> pl.DataFrame:
        """The lines, the largest first; all of them or the first `limit`."""
        some = "" if limit is None else f" limit {limit}"
        return self._engine.query(f"select * from {LINES} order by {self._largest_first(_KEY)}{some}")

    def distinct(self, *columns: str) -> list[tuple[str, ...]]:
        by = ", ".join(columns)
        return self._engine.query(f"select distinct {by} from {LINES} order by {by}").rows()

    def stays(self) -> pl.DataFrame:
        """The machines that a run on no line recorded, in order of time; of other questions no row."""
        if STAYS not in self.question.stored:
            return pl.DataFrame()
        return self._engine.query(f"select * from {STAYS} order by joined_at, resource_id")

    def rest(self, limit: int) -> dict[str, Any]:
        """The sums of all lines but the first `limit`."""
        others = f"select * from {LINES} order by {self._largest_first(_KEY)} offset {limit}"
        return self._engine.query(f"select {SUMS} from ({others}) as others").row(0, named=True)

    def by_charge_type(self) -> pl.DataFrame:
        """Of an invoice: billed cost and cost in the ledger, by charge type."""
        return self._engine.query(
            f"""
            with billed as (
                select charge_type, sum(line_count) as line_count, sum(billed_cost_usd) as billed_cost_usd
                from {BILLED} group by charge_type
            ),
            ledger as (select charge_type, sum(billed_cost_usd) as ledger_cost_usd from {LINES} group by charge_type)
            select charge_type, cast(coalesce(line_count, 0) as bigint) as line_count,
                coalesce(billed_cost_usd, 0) as billed_cost_usd, coalesce(ledger_cost_usd, 0) as ledger_cost_usd,
                coalesce(billed_cost_usd, 0) - coalesce(ledger_cost_usd, 0) as difference_usd
            from billed full join ledger using (charge_type)
            order by abs(coalesce(billed_cost_usd, 0)) desc, charge_type
            """
        )

    def check(self) -> None:
        """CheckError, with both amounts, where mart, ledger and lines differ."""
        if difference := self.difference():
            raise CheckError(difference)

    def difference(self) -> str:
        """Where mart, ledger and lines differ, with both amounts and what to do; empty where they agree."""
        wrong = [*self._unlike_mart(), *self._unlike_ledger()]
        if not wrong:
            return ""
        made = self.publication.code_revision
        fix = "run `trainledger check` to find the cause"
        if made != code_revision():
            fix = f"it was made by revision {made} and this is {code_revision()}, so run `trainledger build`"
        more = f" ({len(wrong) - 1} more sums differ)" if len(wrong) > 1 else ""
        return f"Publication {self.publication.number}: {wrong[0]}{more}; {fix}."

    def _unlike_mart(self) -> Iterator[str]:
        mart, total = self.question.rows, self.total()
        for name, figure, parts in self.question.apart:
            yield from _unlike(name, figure, parts, "its server-hours and Bedrock lines sum")
        for name, bears, has in self._engine.query(self.question.beyond).rows() if self.question.beyond else ():
            yield from _unlike(name, bears, has, "all idle time that nothing held comes")
        for basis, column in self.question.sums.items():
            yield from _unlike(f"{self.question.mart}.{column}", known_sum(mart[column]), total[basis])
        if self.question.mart == RECONCILIATION:
            types = self.by_charge_type()
            for column in ("billed_cost_usd", "ledger_cost_usd", "difference_usd"):
                yield from _unlike(f"{self.question.mart}.{column}", known_sum(mart[column]), known_sum(types[column]))

    def _unlike_ledger(self) -> Iterator[str]:
        for level in self.question.levels:
            if level.ledger:
                by = ", ".join(level.by)
                summed = self._engine.query(f"select {by}, {SUMS} from {LEDGER} group by {by}")
                lines = {tuple(row[: len(level.by)]): row[-len(BASES) :] for row in self.level(level).rows()}
                for row in summed.rows():
                    key = tuple(row[: len(level.by)])
                    sums = lines.pop(key, (None,) * len(BASES))
                    for basis, ours, theirs in zip(BASES, row[len(level.by) :], sums, strict=True):
                        yield from _unlike(f"{LEDGER}.{basis} of {', '.join(map(str, key))}", ours, theirs)
                for key in lines:
                    yield f"{LEDGER} has no row of {', '.join(map(str, key))}, which bill lines have"

    def _largest_first(self, then: str) -> str:
        return f"abs({self.question.largest}) desc nulls last, {then}"


def _unlike(
    name: str, figure: Decimal | None, lines: Decimal | None, summed: str = "its bill lines sum"
) -> Iterator[str]:
    if figure != lines:
        yield f"{name} is {_exact(figure)}, {summed} to {_exact(lines)}"


def _exact(amount: Decimal | None) -> str:
    return "unknown" if amount is None else f"{amount:f}"


def known_sum(amounts: pl.Series) -> Decimal | None:
    """A sum that is unknown (None) where any part of it is, or where there is none."""
    if amounts.is_empty() or amounts.null_count():
        return None
    return sum(amounts.to_list(), Decimal(0))


def as_json(explanation: Explanation) -> str:
    """Everything, every line, amounts as exact text."""
    question, published = explanation.question, explanation.publication
    shown = [level for level in question.levels if level.title]
    levels = [{"title": level.title, "rows": explanation.level(level).to_dicts()} for level in shown]
    if question.mart == RECONCILIATION:
        types = explanation.by_charge_type().to_dicts()
        levels.insert(0, {"title": BY_CHARGE_TYPE, "rows": types})
    document = {
        "question": question.title,
        "publication": published.number,
        "published_at": published.published_at,
        "deliveries": explanation.deliveries,
        "currency": explanation.currency,
        "mart": question.mart,
        "mart_rows": question.rows.to_dicts(),
        "levels": levels,
        "total": explanation.total(),
        "lines": explanation.lines().to_dicts(),
    }
    return json.dumps(document, default=_plain, indent=1) + "\n"


def _plain(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else format(value, "f")
