"""The content of the one-page PDF: every figure as text, from the rows of the report's queries."""

from __future__ import annotations

from typing import Any

from pipelines.present import formats
from pipelines.present.buckets import BUCKETS
from pipelines.present.render import Answered, ReportFacts, Row, failed_checks, templates

LOST = ("idle", "unattributed", "capacity_unused", "commitment_unused")
# Rows a table of the page has room for.
_PAIRS, _UNITS, _INVOICES, _WARNINGS = 4, 10, 6, 5
Content = dict[str, Any]


def page_of(name: str, report: Answered, facts: ReportFacts) -> Content:
    """The content of the page as text, in its order."""
    published_at = formats.moment(facts.published_at)
    rows = report.rows
    names: Any = templates(name).get_template("names.j2").module
    months = sorted({row["billing_month"] for row in rows["months"]})
    span = formats.month_span(months or facts.billing_months)
    return {
        "title": report.title,
        "asof": f"{_capital(span)} on the bill. Publication {facts.publication_number}, {published_at}.",
        "stamps": [
            {
                "month": formats.month(row["billing_month"]),
                "status": row["status"],
                "name": names.stamp_names[row["status"]],
            }
            for row in rows["stamps"][-3:]
        ],
        "alarm": _alarm(report, facts),
        "answers": [_cost(rows, span), _silicon(rows, names), _commitments(rows, span)],
        "buckets": [_bucket(row, names) for row in rows["buckets"]],
        **_some("pairs", [_pair(row, rows, names) for row in rows["pairs"]], _PAIRS),
        **_some("units", [_unit(row) for row in rows["units"]], _UNITS),
        "waste": [
            [
                names.cause_names[row["cause"]],
                formats.usd(row["wasted_cost_usd"], row["currency"]),
                _percent(row["share_ratio"]),
            ]
            for row in rows["waste"]
        ],
        **_some("invoices", _invoices(rows["invoices"], names), _INVOICES),
        "checks": _checks(facts),
        "revision": f"Made by revision {facts.code_revision}. n/a is not measurable; zero means zero.",
    }


def _alarm(report: Answered, facts: ReportFacts) -> str:
    failed = failed_checks(facts.checks, "error")
    wrong = [formats.month(row["billing_month"]) for row in report.rows["stamps"] if row["status"] == "unreconciled"]
    sentences = (
        [f"{formats.plural(len(failed), 'check')} of severity error failed: do not rely on this page."]
        if failed
        else []
    )
    sentences += [f"The ledger of {formats.listing(wrong)} does not equal the bill."] if wrong else []
    sentences += [f"This publication has no {formats.listing(report.missing)}."] if report.missing else []
    return " ".join(sentences)


def _cost(rows: dict[str, list[Row]], span: str) -> Content:
    lines = []
    for total in rows["totals"]:
        currency = total["currency"]
        billed, unused = (formats.usd(total[name], currency) for name in ("run_billed_usd", "unused_usd"))
        lines.append(
            f"Billed {billed}, list price {_money(total['run_list_usd'], currency)}. A further {unused} bought "
            "accelerators or commitments that no run is known to have used."
        )
    return {
        "question": "What did training really cost?",
        "answer": " and ".join(formats.usd(total["run_usd"], total["currency"]) for total in rows["totals"])
        or "Not known",
        "basis": f"effective cost of training runs, {span}" if rows["totals"] else "no bill has been delivered yet",
        "lines": lines if rows["workloads"] else [*lines, "No training run is joined to a bill line."],
    }


def _silicon(rows: dict[str, list[Row]], names: Any) -> Content:
    answer = [f"{row['pair_count']} {row['verdict']}" for row in rows["verdicts"]]
    if len(rows["verdicts"]) == 1:
        verdict = rows["verdicts"][0]["verdict"]
        answer = [names.verdict_names.get(verdict, verdict)]
    runs = next(iter(rows["run_totals"]), None)
    none = "No workload has completed runs on both." if runs and runs["run_count"] else "No training run is recorded."
    reasons = [
        f"{row['workload_id'].split(' / ')[0]}: {formats.minus(row['verdict_reason'])}." for row in rows["pairs"][:2]
    ]
    return {
        "question": "Is Trainium or GPU cheaper for us?",
        "answer": ", ".join(answer) or "Not enough evidence",
        "basis": f"{formats.plural(len(rows['pairs']), 'pair')} of completed runs compared, effective basis",
        "lines": reasons or [none],
    }


def _commitments(rows: dict[str, list[Row]], span: str) -> Content:
    held = [(row, row["currency"]) for row in rows["totals"] if row["held_unused_usd"]]
    unused = " and ".join(formats.usd(row["held_unused_usd"], currency) for row, currency in held)
    return {
        "question": "Are our commitments covering it?",
        "answer": f"{unused} unused" if held else _nothing_unused(rows),
        "basis": f"effective cost, {span}",
        "lines": [
            f"{formats.usd(row['commitment_unused_usd'], currency)} of Savings Plans and reserved instances, "
            f"{formats.usd(row['capacity_unused_usd'], currency)} of reserved capacity were not used."
            for row, currency in held
        ],
    }


def _nothing_unused(rows: dict[str, list[Row]]) -> str:
    if not rows["totals"]:
        return "Not known"
    return "Not reported by AWS" if rows["fees_missing"] else "No unused commitment found"


def _bucket(row: Row, names: Any) -> Content:
    currency = row["currency"]
    return {
        "name": names.bucket_names.get(row["bucket"], row["bucket"]),
        "meaning": BUCKETS.get(row["bucket"], ""),
        "is_lost": row["bucket"] in LOST,
        "bar": float(row["bar_ratio"] or 0),
        "cells": [
            formats.usd(row["effective_cost_usd"], currency),
            _percent(row["share_ratio"]),
            _money(row["list_cost_usd"], currency),
            formats.usd(row["billed_cost_usd"], currency),
            formats.hours(row["accelerator_hours"]),
        ],
    }


def _pair(row: Row, rows: dict[str, list[Row]], names: Any) -> list[str]:
    models = {workload["workload_id"]: workload["model"] for workload in rows["workloads"]}
    ratio, currency = row["saving_ratio"], row["currency"]
    gap = (
        "n/a"
        if ratio is None
        else "the same"
        if ratio == 0
        else _percent(abs(ratio)) + (" less" if ratio > 0 else " more")
    )
    units = [
        f"{_unit_money(row[f'{side}_unit_cost_usd'], currency)}, {row[f'{side}_instance_type']}, "
        f"{formats.plural(row[f'{side}_run_count'], 'run')}"
        for side in ("gpu", "trainium")
    ]
    name = _short(models.get(row["workload_id"]) or row["workload_id"])
    return [f"{name}, {names.measure_names.get(row['unit_measure'], '')}", *units, gap, row["verdict"]]


def _unit(row: Row) -> list[str]:
    costs = [row[f"cost_per_{unit}_usd"] for unit in ("epoch", "checkpoint", "million_tokens")]
    return [
        f"{_short(row['model'] or row['workload_id'])}, {row['instance_type']}",
        formats.whole(row["run_count"]),
        formats.usd(row["effective_cost_usd"], row["currency"]),
        *(_unit_money(cost, row["currency"]) for cost in costs),
    ]


def _invoices(rows: list[Row], names: Any) -> list[list[str]]:
    """Each invoice, the newest first, with its payer where there are several."""
    several = len({row["payer_account_id"] for row in rows}) > 1
    lines = []
    for row in reversed(rows):
        payer = f", payer {row['payer_account_id']}" if several else ""
        bill = f"{formats.month(row['billing_month'])}, {row['invoice_id'] or 'not yet issued'}{payer}"
        amounts = (row["billed_cost_usd"], row["ledger_cost_usd"], row["difference_usd"])
        stamp = names.stamp_names.get(row["status"], row["status"])
        lines.append([bill, *(formats.cents(amount, row["currency"]) for amount in amounts), stamp])
    return lines


def _checks(facts: ReportFacts) -> list[str]:
    guards = sum(check["severity"] == "error" and check["passed"] for check in facts.checks)
    warnings = failed_checks(facts.checks, "warn")
    lines = [f"{row['title']} ({row['table']}, {formats.plural(row['unexpected_count'], 'row')})" for row in warnings]
    more = [f"and {formats.plural(len(lines) - _WARNINGS, 'more warning')}"] if len(lines) > _WARNINGS else []
    return [f"{formats.plural(guards, 'check')} of severity error passed.", *lines[:_WARNINGS], *more]


def _some(name: str, rows: list, room: int) -> Content:
    """The first rows of a table, and how many it leaves to the HTML page."""
    return {name: rows[:room], f"{name}_more": max(0, len(rows) - room)}


def _money(value: Any, currency: str) -> str:
    return "n/a" if value is None else formats.usd(value, currency)


def _unit_money(value: Any, currency: str) -> str:
    return "n/a" if value is None else formats.unit_usd(value, currency)


def _percent(ratio: Any) -> str:
    return "n/a" if ratio is None else formats.percent(ratio)


def _short(name: str) -> str:
    # A word longer than its column would run into the next one.
    return name if len(name) <= 36 else f"{name[:35]}…"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
