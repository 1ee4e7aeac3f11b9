"""Bugs of others: currencies added as if they were one, and groups below zero that stayed unseen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import sqlglot
import yaml
from polars import col, concat, lit, read_csv, when
from sqlglot import exp
from support.bills import instance_hour, write_config, write_events, write_export
from support.ledgers import LazyBuilder, ask, ask_published, build_warehouse, lazy_warehouse, publish_tables
from support.spoiled import run_events
from support.stories import build_story

from pipelines.base import resources
from pipelines.base.console import Console
from pipelines.models.build import FailedChecks
from pipelines.models.catalog import load_catalog
from pipelines.models.contract import load_contract
from pipelines.models.expressions import expand_calls
from pipelines.models.written import added
from pipelines.present.charts import ledger_chart
from pipelines.present.formats import cents
from pipelines.present.render import SUMS, queries_of, sum_of
from pipelines.report.command import write_report

MONTH = "2026-07"
KRONE = {"line_item_currency_code": "NOK"}
OTHER = {
    "line_item_usage_type": "",
    "line_item_operation": "",
    "line_item_resource_id": "",
    "product_instance_type": "",
}
# A currency of the row; or the row is of one bill line, or of one kind of charge, which has one currency.
# What the report of training cost shows, and the two marts that a test asks.
REPORT = ("detail_billing_month", "detail_run_summary", "detail_unattributed_resource", "detail_workload_cost")
REPORT += ("mart_cost_summary_monthly", "mart_invoice_reconciliation_monthly", "mart_run_cost")
REPORT += ("mart_silicon_comparison", "mart_cost_ledger_daily", "mart_unattributed_cost_daily")
TOTALS = ("stg_aws__invoice_total",)
APART = {"billing_currency", "currency", "unit", "source_row", "charge_kind_id"}


def hour(clock: int, cost: str, **more: str) -> dict[str, str]:
    return instance_hour(f"{MONTH}-01T{clock:02d}", "i-1", "p5.48xlarge", cost, **more)


def plain(kind: str, cost: str, **more: str) -> dict[str, str]:
    return {**hour(0, cost), **OTHER, "line_item_line_item_type": kind, "pricing_public_on_demand_cost": "", **more}


def deliver(root: Path, *lines: dict[str, str]) -> Path:
    """The bill, the run `good` of its first two hours, and a configuration."""
    write_export(root, {MONTH: lines})
    write_events(root / "runs", run_events())
    return write_config(root, billing="export", runs="runs")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> LazyBuilder:
    """Runs of two hours, each on a machine of its own, some of them billed in two currencies.

    `good` and `compiler` are billed 55.04 in dollars and 550.40 in krone, `other`, `loader` and `stored` 110.08
    dollars; `loader` loads what `compiler` compiled, and a volume of 7 krone has the tag of `stored`.
    """
    root = tmp_path_factory.mktemp("mixed")
    bill, events = [], []
    for run_id in ("good", "other", "compiler", "loader", "stored"):
        second = hour(1, "550.40", **KRONE) if run_id in ("good", "compiler") else hour(1, "55.04")
        bill += [line | {"line_item_resource_id": f"i-{run_id}"} for line in (hour(0, "55.04"), second)]
        started, *rest = run_events(run_id)
        more = {"compiler": {"purpose": "compile_only"}, "loader": {"compile_run_id": "compiler"}}.get(run_id, {})
        own = [{**event, "resource": f"i-{run_id}"} if "resource" in event else event for event in rest]
        events += [{**started, **more}, *own]
    volume = {**plain("Usage", "7.00", **KRONE), "line_item_usage_type": "USW2-EBS:VolumeUsage.gp3"}
    volume |= {"line_item_resource_id": "vol-1", "resource_tags": '{"user_run_id": "stored"}'}
    config = deliver(root, *bill, volume)
    write_events(root / "runs", events)
    return lazy_warehouse(config)


def billed_in_two(mixed: LazyBuilder) -> dict[str, str]:
    found = mixed.failing_rows("run_billed_in_two_currencies_has_no_cost")
    return {row["run_id"]: row["billed_amounts"] for row in found}


def test_a_run_billed_in_two_currencies_has_no_cost_and_stops_no_other(mixed: LazyBuilder) -> None:
    """T19. Two hours of `good` are billed 55.04 in dollars and 550.40 in krone: no one number is what it cost.

    Expected: eight accelerators for two hours are 16 accelerator-hours in any currency; `other` costs its two hours.
    """
    sql = "select * from mart_run_cost where run_id in ('good', 'other') order by run_id"
    rows = ask(mixed, sql).rows(named=True)
    assert [(row["run_id"], row["billing_currency"], row["effective_cost_usd"]) for row in rows] == [
        ("good", None, None),
        ("other", "USD", Decimal("110.08")),
    ]
    assert rows[0]["accelerator_hours"] == 16
    assert billed_in_two(mixed)["good"] == "NOK 550.40 and USD 55.04"
    assert {*billed_in_two(mixed)} == {"good", "compiler", "stored"}
    epochs = ask(mixed, "select effective_cost_usd from mart_epoch_cost where run_id = 'good'").rows()
    assert all(cost is None for (cost,) in epochs)
    # One uninterrupted attempt wastes nothing in any currency; without one, a page shows no amount.
    assert rows[0]["wasted_cost_usd"] == 0
    assert cents(rows[0]["wasted_cost_usd"], rows[0]["billing_currency"]) == "n/a"


def test_what_was_compiled_in_two_currencies_is_unknown_to_the_run_that_loads_it(mixed: LazyBuilder) -> None:
    """T19. It compiles for 55.04 dollars and 550.40 krone; `loader` costs 110.08 and its part of that is no zero."""
    (loader,) = ask(mixed, "select * from fct_run_cost where run_id = 'loader'").rows(named=True)
    assert loader["effective_cost_usd"] == Decimal("110.08")
    parts = ("list_compile_part_usd", "effective_compile_part_usd", "billed_compile_part_usd", "compile_shared_usd")
    assert [loader[part] for part in parts] == [None] * 4


def test_a_run_whose_tagged_storage_is_in_another_currency_has_no_cost_either(mixed: LazyBuilder) -> None:
    """T19. Lines that only name the run by a tag meet its instance-hours in the ledger."""
    assert billed_in_two(mixed)["stored"] == "NOK 7.00 and USD 110.08"


Factors = dict[str, list[dict[str, Any]]]
# What the bill has otherwise than the story of one GPU; of its four GPU hours the first two are before noon.
BEFORE_NOON = col("line_item_usage_start_date").str.slice(11, 2) < "12"
BILLED_OTHERWISE = {
    "moved": lit("us-west-2").alias("product_region_code"),
    "split": when(BEFORE_NOON).then(lit("us-west-2")).otherwise("product_region_code").alias("product_region_code"),
    "krone": lit("NOK").alias("line_item_currency_code"),
}


@pytest.fixture(scope="module")
def price_factors(tmp_path_factory: pytest.TempPathFactory) -> Factors:
    """Price of the chip, rate and change of price in each of these stories, whose runs do not record their region and
    which stand side by side, with runs, machines and a model of their own."""
    golden = Path(__file__).parents[1] / "golden" / "what_made_the_gpu_more_expensive"
    root = tmp_path_factory.mktemp("prices")
    story = copytree(golden, root / "story")
    events = (golden / "events.jsonl").read_text().replace(', "region": "us-east-1"', "")
    own = [re.sub(r"(tune-\w+|i-0\w+|llama-8b)", rf"\1-{name}", events) for name in BILLED_OTHERWISE]
    (story / "events.jsonl").write_text("".join(own))
    for bill in golden.glob("bill_*.csv"):
        lines = read_csv(bill, infer_schema=False).with_columns(lit("USD").alias("line_item_currency_code"))
        machine = col("line_item_resource_id")
        each = [lines.with_columns(machine + f"-{name}", column) for name, column in BILLED_OTHERWISE.items()]
        concat(each).write_csv(story / bill.name)
    builder = build_story(story, root, {"mart_cost_decomposition"})
    factors = "factor in ('silicon_price', 'rate', 'price_change') and cost_basis = 'effective'"
    rows = ask(builder, f"select * from mart_cost_decomposition where {factors} order by factor_no").to_dicts()
    return {name: [row for row in rows if f"-{name}" in row["workload_id"]] for name in BILLED_OTHERWISE}


def test_the_list_price_is_the_one_of_the_region_on_the_bill(price_factors: Factors) -> None:
    """In us-west-2 the bill lists 98.32 and 21.50, and the book has no other price until September 2026.

    The story's L is 230.53094: the price has L x ln(98.32 / 21.50) = 216.7008 + 133.7465 = 350.4473, its change
    nothing, and the plan's rate of 0.7 its 82.2246 as before.
    """
    silicon, rate, change = price_factors["moved"]
    assert (silicon["baseline_factor"], silicon["candidate_factor"]) == pytest.approx((98.32, 21.50))
    assert (rate["baseline_factor"], rate["candidate_factor"]) == pytest.approx((1, 0.7))
    parts = [float(row["cost_part_usd"]) for row in (silicon, rate, change)]
    assert parts == pytest.approx([350.4473, 82.2246, 0], abs=0.0003)


def test_hours_in_two_regions_have_no_list_price(price_factors: Factors) -> None:
    """Two of the four GPU hours in us-west-2: no price of one region is the run's, so all of it is in the rate."""
    silicon, rate, change = price_factors["split"]
    assert (silicon["baseline_factor"], silicon["cost_part_usd"], change["cost_part_usd"]) == (None, None, None)
    assert "in their runs' regions" in silicon["missing_evidence"]
    assert (rate["baseline_factor"], rate["candidate_factor"]) == pytest.approx((98.32, 15.05))


def test_a_list_price_in_dollars_explains_no_difference_in_another_currency(price_factors: Factors) -> None:
    """An hour costs 98.32 krone on one side and 15.05 on the other; what it lists for in krone is not known.

    The story derives L = 230.53094, and 216.7008 + 82.2246 + 133.7465 = 432.6719 is L x ln(98.32 / 15.05).
    """
    silicon, rate, change = price_factors["krone"]
    assert (silicon["cost_part_usd"], change["cost_part_usd"]) == (None, None)
    assert "in this currency" in silicon["missing_evidence"]
    assert (rate["baseline_factor"], rate["candidate_factor"]) == pytest.approx((98.32, 15.05))
    assert float(rate["cost_part_usd"]) == pytest.approx(432.6719, abs=0.0003)


@pytest.mark.parametrize("code", ["usd", "US$", "EURO"])
def test_a_currency_that_is_no_code_is_refused_before_it_becomes_one_of_its_own(tmp_path: Path, code: str) -> None:
    """T19. `usd` next to `USD` would be a second currency; ISO 4217 codes have three capital letters."""
    with pytest.raises(FailedChecks, match=r"currency is no three letter code .*billing currency " + re.escape(code)):
        build_warehouse(deliver(tmp_path, hour(0, "55.04", line_item_currency_code=code)), TOTALS)


def test_a_line_without_a_currency_is_refused(tmp_path: Path) -> None:
    """T19. An amount of no currency belongs to no sum."""
    with pytest.raises(FailedChecks, match="billing_currency is never null"):
        build_warehouse(deliver(tmp_path, hour(0, "55.04"), hour(1, "55.04", line_item_currency_code="")), TOTALS)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> LazyBuilder:
    """55.04 USD used and 100.00 NOK of requests."""
    root = tmp_path_factory.mktemp("both")
    return lazy_warehouse(deliver(root, hour(0, "55.04"), plain("Usage", "100.00", **KRONE)))


def test_what_a_build_reports_of_itself_is_by_currency(both: LazyBuilder) -> None:
    """T19. 55.04 USD used and 100.00 NOK of requests: the totals of a step name both and no 155.04."""
    both.bring(["fct_invoice_monthly"])
    made = both.confirm("fct_invoice_monthly", MONTH)
    assert made.totals["billed_cost_usd"] == {"USD": Decimal("55.04"), "NOK": Decimal(100)}
    twice = added([made.totals, made.totals])
    assert twice["billed_cost_usd"] == {"USD": Decimal("110.08"), "NOK": Decimal(200)}


def test_a_month_in_two_currencies_is_reported(both: LazyBuilder) -> None:
    """T19. One payer, one month: kept apart, tied apart, and named in a warning with both amounts."""
    rows = ask(
        both, "select currency, billed_cost_usd, difference_usd from mart_invoice_reconciliation_monthly order by 1"
    ).rows()
    assert rows == [("NOK", Decimal(100), Decimal(0)), ("USD", Decimal("55.04"), Decimal(0))]
    failing = both.failing_rows("month_of_a_payer_in_several_currencies_kept_apart")
    amounts = {row["billing_currency"]: Decimal(row["billed_cost_usd"]) for row in failing}
    assert amounts == {"NOK": Decimal(100), "USD": Decimal("55.04")}


def money_queries() -> Iterator[tuple[str, str, Path | None]]:
    """Every SELECT of ours by its name: models, the checks of contracts, the report's questions.

    With its path, its calls of metrics and functions are still to be expanded.
    """
    for model in load_catalog().ordered:
        if model.kind == "sql":
            yield model.key, model.text, None
        for check in load_contract(model.key).checks:
            if check.kind == "rows":
                yield f"{model.key}: {check.name}", check.query.format(batch="batch"), None
    for path in sorted(resources.DASHBOARDS.glob("*/report.yml")):
        for name, sql in queries_of(yaml.safe_load(path.read_text(encoding="utf-8"))["queries"]).items():
            yield f"{path.parent.name}: {name}", sql.replace("{month}", "date '2026-07-01'"), path
    for name in SUMS:
        plain = sum_of(name, mart="detail_commitment_use_hourly").replace("{basis}", "effective_")
        yield f"sums: {name}", plain, Path(name)


@pytest.mark.parametrize(("sql", "path"), [pytest.param(sql, path, id=name) for name, sql, path in money_queries()])
def test_no_query_adds_amounts_of_different_currencies(sql: str, path: Path | None) -> None:
    """T19. Each sum of a column of money is grouped, or its window parted, by currency."""
    tree = sqlglot.parse_one(expand_calls(sql, path) if path else sql, read="duckdb")
    mixed = []
    for total in tree.find_all(exp.Sum, exp.Avg):
        if not any(re.search(r"_usd$|_cost$|unblended", column.name) for column in total.find_all(exp.Column)):
            continue
        # `sum(sum(x)) over (...)`: the inner sum is the group's, the outer one the window's.
        above = total.parent
        while isinstance(above, exp.Filter):
            above = above.parent
        if isinstance(above, exp.Window) and above.this.find(exp.Sum) is total:
            parts = [named(window_of(above).args.get("partition_by") or [])]
        else:
            parts = grouped(total.find_ancestor(exp.Select))
        if not all(part & APART for part in parts):
            mixed.append(total.sql())
    assert mixed == []


def window_of(window: exp.Window) -> exp.Window:
    """A window as its query spells it, where it goes by a name."""
    select = window.find_ancestor(exp.Select)
    assert select is not None
    known = {found.name: found for found in select.args.get("windows") or []}
    return known.get(window.alias, window)


def grouped(select: exp.Select | None) -> list[set[str]]:
    """The names a SELECT groups by, one set of them for each of its grouping sets."""
    assert select is not None
    group = select.args.get("group")
    if group is None:
        return [set()]
    if group.args.get("all"):
        return [{item.alias_or_name for item in select.selects}]
    sets = [item for found in group.find_all(exp.GroupingSets) for item in found.expressions]
    if sets:
        return [named([item]) | named(group.expressions) for item in sets]
    places = [item for item in group.expressions if isinstance(item, exp.Literal)]
    return [named(group.expressions) | {select.selects[int(item.name) - 1].alias_or_name for item in places}]


def named(parts: Iterable[exp.Expression]) -> set[str]:
    return {column.name for part in parts for column in part.find_all(exp.Column)}


@pytest.mark.parametrize(
    "model",
    [m for m in load_catalog().ordered if m.kind != "reference"],
    ids=lambda m: m.key,
)
def test_where_there_is_money_its_currency_stands_next_to_it(model) -> None:
    """T19. A reader of any table sees what an amount is in; a kind of charge has one currency."""
    names = {column.name for column in load_contract(model.key).columns}
    money = {name for name in names if name.endswith("_usd")}
    assert not money or names & {"billing_currency", "currency", "charge_kind_id"}


def test_a_group_of_less_than_nothing_is_less_than_nothing_in_marts_and_report(tmp_path: Path) -> None:
    """T18. Used 55.04; a correction of -80 on an accelerator without a name; refunded 500, credited 1000."""
    config = deliver(
        tmp_path,
        hour(0, "55.04"),
        {**hour(1, "-80.00"), "line_item_resource_id": "i-2"},
        plain("Refund", "-500.00"),
        plain("Credit", "-1000.00"),
    )
    builder = publish_tables(config, REPORT)
    # Effective is before credits, and a refund counts: facts aws-billing 2.1.
    by_bucket = "select bucket, sum(effective_cost_usd), sum(billed_cost_usd) from mart_cost_ledger_daily group by 1"
    assert {bucket: tuple(sums) for bucket, *sums in ask_published(builder, by_bucket).rows()} == {
        "run": (Decimal("55.04"), Decimal("55.04")),
        "unattributed": (Decimal(-80), Decimal(-80)),
        "other": (Decimal(-500), Decimal(-1500)),
    }
    unexplained = "select resource_id, effective_cost_usd from mart_unattributed_cost_daily"
    assert ask_published(builder, unexplained).rows() == [("i-2", Decimal(-80))]
    invoice = "select billed_cost_usd, ledger_cost_usd from mart_invoice_reconciliation_monthly"
    # 55.04 - 80 - 500 - 1000.
    assert ask_published(builder, invoice).rows() == [(Decimal("-1524.96"),) * 2]

    write_report(builder.warehouse.settings, tmp_path / "report.html", Console())
    page = re.sub(r"<style>.*?</style>|<[^>]+>", " ", (tmp_path / "report.html").read_text(), flags=re.DOTALL)
    page = " ".join(page.split())
    assert "A further −$80 bought accelerators" in page
    assert "everything else on the bill; largest: AmazonEC2 −$500 −$500 n/a" in page and "−$1,500" in page
    assert "i-2 no run and no tag names this resource −$80" in page
    # 55.04 - 80 - 500 = -524.96, of which no share is shown.
    assert "The bill is −$1,525 billed, −$525 effective." in page
    assert "−$1,524.96 −$1,524.96 $0.00" in page


def test_a_bar_of_less_than_nothing_hangs_below_the_line() -> None:
    """T18. 5 on one day, -20 on the next: one bar stands on the line, the other hangs from it, four times as long."""
    days = [
        {"usage_date": date(2026, 7, day), "bucket": "idle", "effective_cost_usd": Decimal(cost)}
        for day, cost in ((1, "5"), (2, "-20"))
    ]
    drawn = str(ledger_chart(days, {"idle": "Idle"}, "USD", "label"))
    (marks, *_) = re.findall(r'<g class="mark-rect[^>]*>(.*?)</g>', drawn)
    stands, hangs = (
        (float(top), float(tall)) for top, tall in re.findall(r'd="M[\d.]+,([\d.]+)h[\d.]+v([\d.]+)', marks)
    )
    line = pytest.approx(stands[0] + stands[1])
    assert hangs[0] == line and hangs[1] == pytest.approx(4 * stands[1])
    assert "−$20" in drawn


def test_a_share_of_less_than_nothing_is_drawn_as_such(tmp_path: Path) -> None:
    """T18. Runs 110.08 and a correction of -10.08: of the 100 in all they are 110.1 % and -10.1 %."""
    correction = {**hour(2, "-10.08"), "line_item_resource_id": "i-2"}
    builder = publish_tables(deliver(tmp_path, hour(0, "55.04"), hour(1, "55.04"), correction), REPORT)
    write_report(builder.warehouse.settings, tmp_path / "report.html", Console())
    page = (tmp_path / "report.html").read_text()
    shares = re.findall(
        r'share">(−?[\d.]+)%<svg class="bar( negative)?"[^>]*viewBox="0 0 ([\d.]+) 4"[^>]*><rect width="([\d.]+)"', page
    )
    # Buckets without any cost are listed too.
    shares = [share for share in shares if share[0] != "0.0"]
    # The longest bar is full; the other is 10.08 / 110.08 of it, about 9.2 %.
    assert [(share, sign) for share, sign, *_ in shares[:2]] == [("110.1", ""), ("−10.1", " negative")]
    filled = [100 * float(width) / float(whole) for *_, whole, width in shares[:2]]
    assert filled == [pytest.approx(100, abs=0.1), pytest.approx(9.2, abs=0.1)]


def test_a_bill_whose_costs_are_all_missing_is_refused(tmp_path: Path) -> None:
    """A column of costs that holds none would make the month free."""
    with pytest.raises(FailedChecks, match="bill of a payer without any cost"):
        lines = ({**hour(clock, "1"), "line_item_unblended_cost": ""} for clock in (0, 1))
        build_warehouse(deliver(tmp_path, *lines), TOTALS)
