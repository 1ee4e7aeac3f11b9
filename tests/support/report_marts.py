"""Marts written by hand, for tests of reports; and what a reader sees of a page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typst
from markupsafe import Markup

from pipelines.base import resources
from pipelines.base.sql import quoted
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.catalog import load_catalog
from pipelines.models.contract import load_contract
from pipelines.present.charts import CHARTS
from pipelines.present.pdf import TEMPLATE, inputs
from pipelines.present.render import report_page
from pipelines.warehouse.publication import Publication

TYPES = {
    "VARCHAR": pl.String,
    "BIGINT": pl.Int64,
    "DOUBLE": pl.Float64,
    "BOOLEAN": pl.Boolean,
    "DATE": pl.Date,
    "TIMESTAMP": pl.Datetime("us"),
}
Marts = dict[str, list[dict[str, Any]]]

WORKLOAD = "llama-3.1-8b / corp-v3 / seq 8192 / batch 256 / any precision / eval_loss <= 2.05"


def delivered(*months: str) -> dict[str, Any]:
    """The inputs of a publication of these months."""
    return {"deliveries": [{"billing_period": month} for month in months]}


PUBLISHED = Publication(
    number=7,
    published_at=datetime(2026, 8, 2, 6, 14, tzinfo=UTC),
    code_revision="0.1.0+ab12cd34",
    inputs=delivered("2026-06", "2026-07"),
    tables={},
    checks=[
        {
            "table": "marts/mart_run_cost",
            "period": None,
            "check": "key_unique",
            "severity": "error",
            "passed": True,
            "unexpected_count": 0,
            "sample": [],
        },
        {
            "table": "staging/stg_aws__line_item",
            "period": "2026-06",
            "check": "unknown_charge_type",
            "severity": "warn",
            "passed": False,
            "unexpected_count": 3,
            "sample": [{"charge_type": "EdpDiscountV2", "line_count": 2}],
        },
        {
            "table": "staging/stg_aws__line_item",
            "period": "2026-07",
            "check": "unknown_charge_type",
            "severity": "warn",
            "passed": False,
            "unexpected_count": 4,
            "sample": [{"charge_type": "EdpDiscountV3", "line_count": 4}],
        },
        {
            "table": "marts/mart_epoch_cost",
            "period": None,
            "check": "effective_cost_usd_not_null",
            "severity": "warn",
            "passed": True,
            "unexpected_count": 0,
            "sample": [],
        },
    ],
)


def run(run_id: str, family: str, instance: str, cost: str, epochs: int = 4, **other: Any) -> dict[str, Any]:
    """A completed run: list twice its effective cost, billed half of it."""
    effective = Decimal(cost)
    row = {
        "run_id": run_id,
        "workload_id": WORKLOAD,
        "billing_currency": "USD",
        "accelerator_family": family,
        "instance_type": instance,
        "resource_count": 1,
        "attempt_count": 1,
        "status": "completed",
        "purpose": "finetune",
        "team": "nlp",
        "owner": "priya",
        "model": "llama-3.1-8b",
        "started_at": datetime(2026, 7, 1, 10),
        "ended_at": datetime(2026, 7, 2, 3),
        "is_end_inferred": False,
        "is_billed": True,
        "accelerator_hours": Decimal(136),
        "epoch_completed_count": epochs,
        "checkpoint_durable_count": 2 * epochs,
        "tokens_seen_count": 3e8 * epochs,
        "list_cost_usd": 2 * effective,
        "effective_cost_usd": effective,
        "billed_cost_usd": effective / 2,
        "estimated_cost_usd": Decimal(0),
        "cost_to_target_usd": effective,
        "list_cost_to_target_usd": 2 * effective,
        "billed_cost_to_target_usd": effective / 2,
        "wasted_cost_usd": Decimal(0),
        "lost_work_cost_usd": Decimal(0),
        "restart_cost_usd": Decimal(0),
        "compile_cost_usd": Decimal(0),
        "failed_run_cost_usd": Decimal(0),
        "replay_cost_usd": Decimal(0),
        "idle_hold_cost_usd": Decimal(0),
    } | other
    for prefix in ("", "list_", "billed_"):
        whole = row["effective_cost_usd" if not prefix else f"{prefix}cost_usd"]
        for unit, count in (
            ("epoch", epochs),
            ("checkpoint", row["checkpoint_durable_count"]),
            ("million_tokens", (row["tokens_seen_count"] or 0) / 1e6),
        ):
            value = None if not count or whole is None else whole / Decimal(count)
            row.setdefault(f"{prefix}cost_per_{unit}_usd", value)
    return row


def compared(basis: str, gpu: str, trainium: str, saving: str, **other: Any) -> dict[str, Any]:
    return {
        "workload_id": WORKLOAD,
        "baseline_instance_type": "p5.48xlarge",
        "candidate_instance_type": "trn1.32xlarge",
        "cost_basis": basis,
        "billing_currency": "USD",
        "baseline_run_count": 2,
        "baseline_failed_run_count": 1,
        "candidate_run_count": 2,
        "candidate_failed_run_count": 0,
        "unit_measure": "cost_to_target",
        "baseline_unit_cost_usd": Decimal(gpu),
        "candidate_unit_cost_usd": Decimal(trainium),
        "saving_ratio": Decimal(saving),
        "verdict": "indicative",
        "verdict_reason": "geometric means side by side; no interval is computed, so nothing is proven",
        "price_date": date(2026, 7, 28),
    } | other


def charge(day: date, bucket: str, cost: str, family: str = "gpu", **other: Any) -> dict[str, Any]:
    effective = Decimal(cost)
    return {
        "usage_date": day,
        "payer_account_id": "111122223333",
        "account_id": "444455556666",
        "bucket": bucket,
        "charge_category": "Usage",
        "service": "AmazonEC2",
        "accelerator_family": family,
        "billing_month": day.replace(day=1),
        "billing_currency": "USD",
        "accelerator_hours": Decimal(8),
        "list_cost_usd": 2 * effective,
        "effective_cost_usd": effective,
        "billed_cost_usd": effective / 2,
    } | other


def unexplained(resource: str, cost: str, **other: Any) -> dict[str, Any]:
    return {
        "usage_date": date(2026, 7, 9),
        "payer_account_id": "111122223333",
        "account_id": "444455556666",
        "billing_currency": "USD",
        "resource_id": resource,
        "instance_type": "p4d.24xlarge",
        "accelerator_family": "gpu",
        "region_id": "us-west-2",
        "missing_evidence": "no run and no tag names this resource",
        "accelerator_hours": Decimal(8),
        "list_cost_usd": Decimal(cost),
        "effective_cost_usd": Decimal(cost),
        "billed_cost_usd": Decimal(cost),
    } | other


def invoice(month: date, invoice_id: str, bill: str, ledger: str, status: str) -> dict[str, Any]:
    return {
        "payer_account_id": "111122223333",
        "billing_month": month,
        "invoice_id": invoice_id,
        "billing_entity": "AWS",
        "invoice_issuer": "Amazon Web Services, Inc.",
        "currency": "USD",
        "line_count": 12345,
        "newest_usage_at": datetime(2026, 7, 28, 23),
        "billed_cost_usd": Decimal(bill),
        "ledger_cost_usd": Decimal(ledger),
        "effective_cost_usd": Decimal(bill),
        "difference_usd": Decimal(bill) - Decimal(ledger),
        "status": status,
    }


def example() -> Marts:
    """Two GPU and two Trainium runs of one workload, a failed one, and a bill that fills every bucket."""
    june, july = date(2026, 6, 10), date(2026, 7, 10)
    return {
        "mart_run_cost": [
            run("gpu-1", "gpu", "p5.48xlarge", "900"),
            run("gpu-2", "gpu", "p5.48xlarge", "1100"),
            run(
                "trn-1",
                "trainium",
                "trn1.32xlarge",
                "700",
                compile_cost_usd=Decimal("35"),
                wasted_cost_usd=Decimal("35"),
            ),
            run("trn-2", "trainium", "trn1.32xlarge", "740"),
            run(
                "gpu-3",
                "gpu",
                "p5.48xlarge",
                "160",
                epochs=0,
                status="failed",
                cost_to_target_usd=None,
                failed_run_cost_usd=Decimal("120"),
                lost_work_cost_usd=Decimal("40"),
                wasted_cost_usd=Decimal("160"),
            ),
            run(
                "silent",
                "gpu",
                "p5.48xlarge",
                "0",
                is_billed=False,
                billing_currency=None,
                effective_cost_usd=None,
                billed_cost_usd=None,
            ),
        ],
        "mart_silicon_comparison": [
            compared("list", "2000", "1400", "0.3"),
            compared("effective", "994.987437", "719.722169", "0.276652"),
            compared("billed", "500", "525", "-0.05"),
        ],
        "mart_cost_ledger_daily": [
            charge(june, "run", "1600"),
            charge(july, "run", "560"),
            charge(july, "run", "1440", "trainium"),
            charge(june, "idle", "212.40"),
            charge(july, "unattributed", "131.36"),
            charge(july, "capacity_unused", "300"),
            charge(july, "commitment_unused", "57.50"),
            charge(june, "shared", "80", "none"),
            charge(june, "other", "0", "none", list_cost_usd=None),
        ],
        "mart_unattributed_cost_daily": [
            unexplained("i-0aa", "60"),
            unexplained("i-0aa", "31.36", usage_date=date(2026, 7, 11)),
            unexplained(
                "i-0bb",
                "40",
                tagged_owner="tomas",
                missing_evidence="no run names this resource: ask the tagged owner",
            ),
        ],
        "mart_invoice_reconciliation_monthly": [
            invoice(date(2026, 6, 1), "1234567", "2190.55", "2190.55", "reconciled"),
            invoice(date(2026, 7, 1), "", "1190.20", "1190.20", "open"),
        ],
    }


def frame(mart: str, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """The rows typed as the mart's contract states."""
    schema = {}
    for column in load_contract(load_catalog()[mart].key).columns:
        sized = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", column.type)
        schema[column.name] = pl.Decimal(int(sized[1]), int(sized[2])) if sized else TYPES[column.type]
    unknown = {name for row in rows for name in row} - set(schema)
    assert not unknown, f"{mart} has no {unknown}"
    exact = [
        {name: round(value, 6) if isinstance(value := row.get(name), Decimal) else value for name in schema}
        for row in rows
    ]
    return pl.DataFrame(exact, schema=schema, orient="row")


# Made of the marts of a test as a build makes them, in this order, where the test has what they read.
SUMMED = (
    "detail_billing_month",
    "mart_cost_summary_monthly",
    "detail_workload_cost",
    "detail_run_summary",
    "detail_unattributed_resource",
    "detail_commitment_summary_monthly",
)


# The bytes of each table's file, by the seal of its name and what it was made from.
_held: dict[str, bytes] = {}


def _seal(table: str, made_from: object) -> str:
    return sha256(f"{table} {made_from!r}".encode()).hexdigest()


def _hold(engine: DuckDBEngine, file: Path, seal: str, make: Callable[[Path], object]) -> None:
    """The table that `file` is named after; what was made from the same before is taken over."""
    if seal in _held:
        file.write_bytes(_held[seal])
    else:
        make(file)
        _held[seal] = file.read_bytes()
    engine.keep(file.stem, f"from read_parquet({quoted(file)})")


def open_marts(engine: DuckDBEngine, folder: Path, marts: Marts) -> None:
    """The marts as tables of the engine, by way of files in `folder`; and the tables that sum them."""
    seals = {mart: _seal(mart, rows) for mart, rows in marts.items()}
    for mart, rows in marts.items():
        _hold(engine, folder / f"{mart}.parquet", seals[mart], frame(mart, rows).write_parquet)
    catalog = load_catalog()
    if "mart_run_cost" in marts:
        reached = "case when cost_to_target_usd is not null then 1 end as target_duration_ms"
        engine.view_sql("fct_run", f"select *, cast(null as varchar) as target_metric, {reached} from mart_run_cost")
        # Each run of a test is a job.
        counts = "1 as job_run_count, true as is_last_run, 0 as job_epoch_count, 0 as job_million_token_count"
        engine.view_sql("detail_run_job", f"select run_id, run_id as job_id, {counts} from mart_run_cost")
    if "mart_cost_ledger_daily" in marts:
        absent = ("instance_type", "tag_run_id", "billing_entity", "market")
        absent = ", ".join(f"cast(null as varchar) as {name}" for name in absent)
        # Each family of a test's ledger is the one of its run.
        engine.view_sql("fct_ledger", f"select *, accelerator_family as run_id, {absent} from mart_cost_ledger_daily")
    joined = " union select accelerator_family from mart_cost_ledger_daily"
    joined = joined if marts.get("mart_run_cost") and "mart_cost_ledger_daily" in marts else ""
    named = f"run_id from mart_run_cost{joined}" if "mart_run_cost" in marts else "'' as run_id where false"
    engine.view_sql("dim_run", f"select {named}")
    for listed in ("ref_bucket", "ref_commitment_eligibility"):
        engine.view_sql(listed, f"select * from read_csv('{catalog[listed].path}', all_varchar = true)")
    # No fee of the marts of a test lacks its use.
    unallocated = "fct_unallocated_fee_monthly"
    _hold(engine, folder / f"{unallocated}.parquet", _seal(unallocated, []), frame(unallocated, []).write_parquet)
    of_runs = dict.fromkeys(("fct_run", "dim_run", "detail_run_job"), "mart_run_cost")
    made = of_runs | {"fct_ledger": "mart_cost_ledger_daily"}
    seals |= {name: seals[mart] for name, mart in made.items() if mart in marts}
    seals = {"ref_bucket": "", "ref_commitment_eligibility": "", "dim_run": "", unallocated: "", **seals}
    for model in (catalog[name] for name in SUMMED):
        if seals.keys() >= set(model.inputs):
            seals[model.name] = _seal(model.name, [seals[name] for name in model.inputs])
            columns = load_contract(model.key).columns
            typed = ", ".join(f"cast({column.name} as {column.type}) as {column.name}" for column in columns)
            write = partial(engine.write, f"select {typed} from ({model.text})")
            _hold(engine, folder / f"{model.name}.parquet", seals[model.name], write)


@contextmanager
def charts_drawn_once() -> Iterator[None]:
    """A chart that an earlier page has is not drawn again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.present.charts.CHECKED", True)
        patch.setattr("pipelines.present.render.CHARTS", {name: _once(draw) for name, draw in CHARTS.items()})
        yield


def rendered(folder: Path, marts: Marts, published: Publication = PUBLISHED, report: str = "training_cost") -> str:
    """The HTML page of a report over these marts."""
    with charts_drawn_once():
        return rendered_anew(folder, marts, published, report)


def rendered_anew(folder: Path, marts: Marts, published: Publication = PUBLISHED, report: str = "training_cost") -> str:
    """The page with every chart drawn for it."""
    with DuckDBEngine(threads=1) as engine:
        open_marts(engine, folder, marts)
        return report_page(engine.query, published, report)


_drawn: dict[str, Markup] = {}


def _once(draw: Callable[..., Markup]) -> Callable[..., Markup]:
    def drawn(*values: Any, **named: Any) -> Markup:
        # A template may pass a generator, which has no text.
        values = tuple(list(value) if isinstance(value, Iterator) else value for value in values)
        key = repr((draw.__name__, values, named))
        if key not in _drawn:
            _drawn[key] = draw(*values, **named)
        return _drawn[key]

    return drawn


def words(page: str) -> str:
    """What a reader sees: no style, no tags, single spaces."""
    page = re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", page, flags=re.DOTALL)
    page = re.sub(r"<[^>]+>", " ", page).replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">")
    return " ".join(page.split())


def part(page: str, section: str) -> str:
    found = re.search(rf'<section id="{section}">.*?</section>', page, flags=re.DOTALL)
    assert found, section
    return words(found[0])


def printed(page: str, kind: str) -> list[str]:
    """The text of each element of this kind (heading, par, list or table) in the PDF of a page."""
    found = typst.query(str(resources.DASHBOARDS / TEMPLATE), kind, sys_inputs=inputs(page, PUBLISHED))
    return [" ".join(_text(element).split()) for element in json.loads(found)]


def printed_rows(page: str) -> list[list[str]]:
    """The rows of all tables in the PDF of a page, without those of their heads."""
    found = typst.query(str(resources.DASHBOARDS / TEMPLATE), "table", sys_inputs=inputs(page, PUBLISHED))
    rows: list[list[str]] = []
    for table in json.loads(found):
        room = 0
        for cell in table["children"][1:]:
            if room == 0:
                rows.append([])
                room = len(table["columns"])
            room -= cell["colspan"]
            rows[-1].append(" ".join(_text(cell).split()))
    return rows


def _text(element: Any) -> str:
    if isinstance(element, list):
        return "".join(map(_text, element))
    if element["func"] in ("text", "space", "linebreak"):
        return element.get("text", " ")
    parts = [_text(element[name]) for name in ("children", "child", "body") if name in element]
    return f"{''.join(parts)}{' ' if element['func'] in ('cell', 'item') else ''}"
