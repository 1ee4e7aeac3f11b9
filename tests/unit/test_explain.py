"""`explain` run, day and invoice: from a figure down to bill lines, each figure derived by hand next to it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import TypeVar

import polars as pl
import pytest
from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.ledgers import EXPLAIN_TABLES, build_warehouse, publish_tables
from support.small_company import AUGUST, JULY, Company
from support.spoiled import run_events

from pipelines.base.errors import CheckError, SourceError, TrainledgerError, UsageError
from pipelines.config.settings import load_settings
from pipelines.engine import Engine
from pipelines.explain.command import app
from pipelines.explain.lines import Explanation, behind
from pipelines.explain.query import Question, for_day, for_invoice, for_run
from pipelines.explain.tables import agreed
from pipelines.explain.terminal import Label, grid, readable
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of

BASES = ("list_cost_usd", "effective_cost_usd", "billed_cost_usd")
Answer = TypeVar("Answer")
TEN = datetime(2026, 7, 3, 10)


@contextmanager
def explanation(config: Path, ask: Callable[[Engine], Question]) -> Iterator[Explanation]:
    """The checked explanation of what `ask` asks."""
    warehouse = Warehouse(load_settings(config))
    published = published_of(warehouse)
    with open_marts(warehouse, published) as marts:
        query = ask(marts)
    with behind(warehouse, published, query) as found:
        found.check()
        yield found


def explained(config: Path, ask: Callable[[Engine], Question], read: Callable[[Explanation], Answer]) -> Answer:
    """What `read` finds in the checked explanation of what `ask` asks."""
    with explanation(config, ask) as found:
        return read(found)


@pytest.fixture(scope="module")
def shared_hour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One p5.48xlarge (8 GPUs), 10:00 to 12:00 on 3 July: the first hour under a Savings Plan at $30 instead of
    $55.04, the second on demand. Runs a and b hold 4 GPUs each in the first hour, b alone 4 in the second. The run
    `paper` has a machine that is not on the bill."""
    root = tmp_path_factory.mktemp("shared")
    covered = instance_hour(
        "2026-07-03T10",
        "i-0a",
        "p5.48xlarge",
        "55.04",
        line_item_line_item_type="SavingsPlanCoveredUsage",
        savings_plan_savings_plan_effective_cost="30.00",
    )
    negation = {
        **covered,
        "line_item_line_item_type": "SavingsPlanNegation",
        "line_item_unblended_cost": "-55.04",
        "line_item_resource_id": "",
        "savings_plan_savings_plan_effective_cost": "",
    }
    lines = [covered, negation, instance_hour("2026-07-03T11", "i-0a", "p5.48xlarge", "55.04")]
    export = write_export(root, {JULY: lines})
    hour = timedelta(hours=1)
    events = [
        {**event, "accelerators_used": 4} if event["event"] == "resource_joined" else event
        for event in one_attempt("a", ["i-0a"], "p5.48xlarge", TEN, hour)
        + one_attempt("b", ["i-0a"], "p5.48xlarge", TEN, 2 * hour)
    ]
    events += one_attempt("paper", ["i-0b"], "p5.48xlarge", TEN, hour)
    config = write_config(root, billing=export, runs=write_events(root / "runs", events))
    publish_tables(config, EXPLAIN_TABLES)
    return config


@pytest.fixture(scope="module")
def run_b(shared_hour: Path) -> Iterator[Explanation]:
    with explanation(shared_hour, lambda marts: for_run(marts, "b")) as found:
        yield found


@pytest.fixture(scope="module")
def invoice(shared_hour: Path) -> Iterator[Explanation]:
    with explanation(shared_hour, lambda marts: for_invoice(marts, "INV-1", JULY, None)) as found:
        yield found


@pytest.fixture(scope="module")
def first_line(shared_hour: Path) -> str:
    """The invoice as the command shows it with one of its lines."""
    return explain(["invoice", "INV-1", "--lines", "1", "--config", str(shared_hour)])


def test_a_run_is_explained_line_by_line(run_b: Explanation) -> None:
    lines = run_b.lines().to_dicts()
    # The larger part first: half of $55.04 on demand, then half of the plan's $30; the plan's hour is billed at 0,
    # for its negation cancels it (design 3.1).
    assert [[line[basis] for basis in BASES] for line in lines] == [
        [Decimal("27.52"), Decimal("27.52"), Decimal("27.52")],
        [Decimal("27.52"), Decimal("15.00"), Decimal("0")],
    ]
    assert [line["line_effective_cost_usd"] for line in lines] == [Decimal("55.04"), Decimal("30.00")]
    # 4 of 8 GPUs for 3600 s are 14400 of 28800 accelerator-seconds.
    assert [line["share_rule"] for line in lines] == [
        "the run used 14400 of 28800 accelerator-seconds",
        "2 runs shared the hour: 14400 of 28800 accelerator-seconds",
    ]
    assert [line["cost_rule_meaning"] for line in lines] == [
        "as billed",
        "the Savings Plan's effective cost, not the on-demand cost the line shows",
    ]
    # Rows of the file as written above, from 0.
    assert [(line["source_file"].rpartition("/")[2], line["source_row"]) for line in lines] == [
        ("export-00001.csv.gz", 2),
        ("export-00001.csv.gz", 0),
    ]
    assert {line["delivery_id"] for line in lines} == {"first"}


def test_what_is_not_shown_is_summed_so_that_every_level_still_adds_up(run_b: Explanation) -> None:
    assert run_b.lines(1)["effective_cost_usd"].sum() == Decimal("27.52")
    assert run_b.rest(1)["effective_cost_usd"] == Decimal("15")


def test_idle_time_of_a_day_is_explained(shared_hour: Path) -> None:
    chosen = {"bucket": "idle", "account_id": "000033334444"}
    lines = explained(shared_hour, lambda marts: for_day(marts, "2026-07-03", chosen), lambda f: f.lines().to_dicts())
    # In the second hour no run held 4 of the 8 GPUs: half of $55.04.
    assert [(line["effective_cost_usd"], line["share_rule"]) for line in lines] == [
        (Decimal("27.52"), "no run used 14400 of 28800 accelerator-seconds")
    ]


def test_an_invoice_is_explained_by_charge_type(invoice: Explanation) -> None:
    # Charge type, lines, billed, ledger, difference: usage and negation of a plan cancel and are billed at 0.
    assert invoice.by_charge_type().rows() == [
        ("SavingsPlanCoveredUsage", 1, Decimal("55.04"), Decimal(0), Decimal("55.04")),
        ("SavingsPlanNegation", 1, Decimal("-55.04"), Decimal(0), Decimal("-55.04")),
        ("Usage", 1, Decimal("55.04"), Decimal("55.04"), Decimal(0)),
    ]


def test_what_cancels_on_an_invoice_is_shown(first_line: str) -> None:
    # Covered use at 55.04 and its negation at -55.04 (the bill above); the hour on demand differs by nothing.
    assert "The differences of SavingsPlanCoveredUsage and SavingsPlanNegation cancel" in first_line
    # No invoice was read: the amounts are the bill's.
    assert "Billed and in the ledger, by charge type" in first_line
    assert "invoiced" not in first_line


def test_lines_and_their_pieces_are_counted_apart_and_sum_at_every_level(
    shared_hour: Path, invoice: Explanation, first_line: str
) -> None:
    """Three lines. The covered hour is a's half and b's, the hour on demand b's half and idle: with the negation 5."""
    total = invoice.total()
    levels = [invoice.level(level) for level in invoice.question.levels]
    summed = [(total["line_count"], sum(level["piece_count"].to_list())) for level in levels]
    assert [(total["line_count"], total["piece_count"]), *summed] == [(3, 5), (3, 5)]
    assert "all 5 pieces of 3 lines " in first_line
    assert "and 4 more pieces " in first_line
    # What run b has of either line is one piece of it, so they are called lines.
    assert "all 2 lines " in explain(["run", "b", "--config", str(shared_hour)])


def test_the_rule_of_every_charge_type_is_explained_also_of_lines_that_are_not_shown(first_line: str) -> None:
    rules = first_line[first_line.index("How each charge type") : first_line.index("Buckets\n")]
    assert [rule.strip().partition(":")[0] for rule in rules.splitlines()[1:] if rule.startswith("  ")] == [
        "SavingsPlanCoveredUsage",
        "SavingsPlanNegation",
        "Usage",
    ]
    buckets = first_line[first_line.index("Buckets\n") : first_line.index("Files (rows count")].splitlines()
    # a and b run, half an hour is idle; what a negation takes away belongs to nothing else.
    assert [line.strip().partition(":")[0] for line in buckets[1:] if line] == ["run", "idle", "other"]


def test_a_figure_that_its_lines_do_not_come_to_is_an_error_with_both_amounts(run_b: Explanation) -> None:
    rows = run_b.question.rows.with_columns(pl.col("effective_cost_usd") + Decimal("0.0000000001"))
    wrong = replace(run_b, question=replace(run_b.question, rows=rows))
    with pytest.raises(CheckError, match=r"is 42\.5200000001, its bill lines sum to 42\.5200000000"):
        wrong.check()


def plan_fee(hour: str, plan: str, whole: str, used: str) -> dict[str, str]:
    """An hour's fee of a Savings Plan and what of it was used."""
    return instance_hour(hour, "", "p5.48xlarge", whole) | {
        "line_item_line_item_type": "SavingsPlanRecurringFee",
        "line_item_usage_type": "ComputeSP:3yrNoUpfront",
        "line_item_operation": "",
        "product_instance_type": "",
        "pricing_public_on_demand_cost": "",
        "line_item_product_code": "ComputeSavingsPlans",
        "savings_plan_savings_plan_a_r_n": f"arn:aws:savingsplans::000011112222:savingsplan/{plan}",
        "savings_plan_total_commitment_to_date": whole,
        "savings_plan_used_commitment": used,
        "savings_plan_recurring_commitment_for_billing_period": whole,
    }


@pytest.fixture(scope="module")
def undelivered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan's fees of 10 on two days, used in full as they state, and no line of the use: that 0 went unused is not
    known. On the second day another plan left 1 of 3 unused, which is. August, in which it did so too, is open.
    On 10 July an hour of a Capacity Block that the run used and one that nothing used, both at 0, their fee
    undelivered."""
    root = tmp_path_factory.mktemp("undelivered")
    fees = [("07-03", "sp-1", "10", "10"), ("07-04", "sp-1", "10", "10"), ("07-04", "sp-2", "3", "2")]
    july = [plan_fee(f"2026-{day}T10", plan, whole, used) for day, plan, whole, used in fees]
    open_month = [plan_fee("2026-08-03T10", "sp-2", "3", "2") | {"bill_invoice_id": ""}]
    block = {
        "line_item_operation": "RunInstances:CB",
        "capacity_reservation_capacity_reservation_arn": "arn:aws:ec2:us-west-2:1:capacity-reservation/cr-0b",
    }
    july += [
        instance_hour("2026-07-10T10", "i-0a", "p5.48xlarge", "0", **block),
        instance_hour("2026-07-10T11", "cr-0b", "p5.48xlarge", "0", **block)
        | {"line_item_usage_type": "USW2-UnusedBox:p5.48xlarge"},
    ]
    events = one_attempt("a", ["i-0a"], "p5.48xlarge", TEN + timedelta(days=7), timedelta(hours=1))
    bill = write_export(root, {JULY: july, AUGUST: open_month})
    config = write_config(root, billing=bill, runs=write_events(root / "runs", events))
    publish_tables(config, EXPLAIN_TABLES)
    return config


def test_what_a_plan_left_unused_is_unknown_at_every_level_while_its_use_is_not_shown(undelivered: Path) -> None:
    chosen = ["--bucket", "commitment_unused", "--json", "--config", str(undelivered)]
    first, second, month = (
        json.loads(explain([*words, *chosen]))
        for words in (["day", "2026-07-03"], ["day", "2026-07-04"], ["month", JULY])
    )
    costs = [shown["total"]["effective_cost_usd"] for shown in (first, second, month)]
    assert costs == [None, "1.0000000000", None]
    (by_day,) = (level["rows"] for level in month["levels"] if "usage_date" in level["rows"][0])
    assert {row["usage_date"]: row["effective_cost_usd"] for row in by_day} == {
        "2026-07-03": None,
        "2026-07-04": "1.0000000000",
    }
    assert [line["effective_cost_usd"] for line in first["lines"]] == [None]


@pytest.mark.parametrize(("day", "is_open"), [("2026-08-03", True), ("2026-07-04", False)])
def test_unused_commitments_of_an_open_month_may_include_hours_to_come(
    undelivered: Path, day: str, is_open: bool
) -> None:
    assert ("may include hours to come" in explain(["day", day, "--config", str(undelivered)])) is is_open


def test_a_block_without_its_fee_is_unknown_at_every_level(undelivered: Path) -> None:
    run = explain(["run", "a", "--config", str(undelivered)])
    assert "The run used a Capacity Block whose fee no delivered bill has, so its own cost is unknown." in run
    assert re.search(r"a +completed +unknown +unknown +unknown", run)
    assert "Usage: unknown until a delivered bill has the fee that pays for it" in run and "Usage: as billed" not in run
    day = json.loads(explain(["day", "2026-07-10", "--json", "--config", str(undelivered)]))
    assert [line["effective_cost_usd"] for line in day["lines"]] == [None, None]


def test_a_run_without_bill_lines_states_it(shared_hour: Path) -> None:
    assert explained(shared_hour, lambda marts: for_run(marts, "paper"), lambda f: f.total()["line_count"]) == 0
    shown = explain(["run", "paper", "--config", str(shared_hour)])
    assert "No bill lines found." in shown
    # Where to look for them: the machine that it recorded, and when.
    machine = shown.partition("Machines that the run recorded")[2]
    assert re.search(r"i-0b +p5\.48xlarge +2026-07-03 10:00 +2026-07-03 11:00", machine)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda marts: for_run(marts, "bb"), "'bb' is not a known run; did you mean b?"),
        (lambda marts: for_run(marts, "zzzz"), "'zzzz' is not a known run; the run ids are a, b, paper."),
        (
            lambda marts: for_day(marts, "2026-07-04", {}),
            "'2026-07-04' is not a known day in the ledger; did you mean 2026-07-03?",
        ),
        (lambda marts: for_day(marts, "3 July", {}), "'3 July' is not a date; expected YYYY-MM-DD."),
        (
            lambda marts: for_day(marts, "2026-07-03", {"bucket": "idel"}),
            "'idel' is not a known bucket on 2026-07-03; did you mean idle?",
        ),
        (
            lambda marts: for_invoice(marts, "INV-2", None, None),
            "'INV-2' is not a known invoice; did you mean INV-1?",
        ),
        (
            lambda marts: for_invoice(marts, None, "2026-13", None),
            "'2026-13' is not a month; expected YYYY-MM.",
        ),
        (
            lambda marts: for_invoice(marts, None, "2025-07", None),
            "'2025-07' is not a known billing month; did you mean 2026-07?",
        ),
        (
            lambda marts: for_invoice(marts, None, None, None),
            "Name an invoice, or a month with --month 2026-07; the invoices are INV-1",
        ),
    ],
)
def test_what_is_not_there_is_refused_with_the_nearest_names(
    shared_hour: Path, ask: Callable[[Engine], Question], sentence: str
) -> None:
    with pytest.raises(UsageError) as refused:
        explained(shared_hour, ask, lambda found: None)
    assert sentence in str(refused.value)


def test_json_and_csv_hold_every_line_with_every_digit(shared_hour: Path) -> None:
    document = json.loads(explain(["run", "b", "--json", "--config", str(shared_hour)]))
    # 27.52 + 15.00, as text: no binary fraction comes near a figure.
    assert document["mart_rows"][0]["effective_cost_usd"] == "42.5200000000"
    assert sum(Decimal(line["effective_cost_usd"]) for line in document["lines"]) == Decimal("42.52")
    for level in document["levels"]:
        assert sum(Decimal(row["effective_cost_usd"]) for row in level["rows"]) == Decimal("42.52")
    table = pl.read_csv(StringIO(explain(["run", "b", "--csv", "--config", str(shared_hour)])), infer_schema=False)
    assert [Decimal(cost) for cost in table["list_cost_usd"]] == [Decimal("27.52")] * 2


def test_tables_round_to_cents_and_name_the_currency(shared_hour: Path) -> None:
    page = explain(["run", "b", "--lines", "1", "--config", str(shared_hour)])
    assert "effective USD" in page
    assert "and 1 more line " in page
    assert "42.52" in page
    assert "The sums agree to the last digit at every level" in page


@pytest.fixture(scope="module")
def two_currencies(published_story: Callable[[str], Path]) -> Path:
    """The golden story of this name, built; its README derives every figure."""
    return published_story("two_currencies") / "trainledger.toml"


def test_currencies_are_kept_apart_and_never_added(two_currencies: Path) -> None:
    with pytest.raises(UsageError, match=r"billed in NOK and USD, never added; choose one with --currency NOK\."):
        explained(two_currencies, lambda marts: for_day(marts, "2026-07-14", {}), lambda found: None)

    def ledger(currency: str) -> tuple[str, Decimal]:
        return explained(
            two_currencies,
            lambda marts: for_day(marts, "2026-07-14", {"billing_currency": currency}),
            lambda found: (found.currency, found.total()["effective_cost_usd"]),
        )

    assert [ledger("USD"), ledger("NOK")] == [("USD", Decimal("108.04")), ("NOK", Decimal("1476.00"))]
    page = explain(["invoice", "--month", "2026-07", "--currency", "NOK", "--config", str(two_currencies)])
    # Invoices of 1376.00 and, less than nothing, -150.00.
    assert "1,376.00" in page
    assert "−150.00" in page
    assert "billed NOK" in page


def explain(words: list[str]) -> str:
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def total(config: Path, run_id: str) -> Decimal:
    return explained(config, lambda marts: for_run(marts, run_id), lambda found: found.total()["effective_cost_usd"])


@pytest.fixture
def company(built_company: Company, tmp_path: Path) -> Company:
    return built_company.copy(tmp_path, events=True)


@pytest.mark.slow
def test_the_publication_is_explained_though_a_newer_bill_is_delivered(company: Company) -> None:
    company.deliver(AUGUST, "30.00")
    # Published are 4 hours at 21.50, not yet at 30.
    assert total(company.config, "trn-1") == Decimal("86.00")
    build_warehouse(company.config)
    assert total(company.config, "trn-1") == Decimal("120.00")


def test_the_publication_is_explained_though_a_build_failed_after_it(company: Company) -> None:
    company.deliver(AUGUST, "30.00")
    company.overbill()
    with pytest.raises(TrainledgerError):
        build_warehouse(company.config)
    # Tables of the failed build are committed by now; none of them is published.
    assert total(company.config, "trn-1") == Decimal("86.00")


def test_lines_the_raw_store_has_lost_are_fetched_again(company: Company) -> None:
    shutil.rmtree(company.warehouse / "raw")
    assert total(company.config, "trn-1") == Decimal("86.00")


def test_lines_that_were_replaced_and_are_kept_nowhere_are_refused_by_name(company: Company) -> None:
    company.deliver(AUGUST, "30.00")
    shutil.rmtree(company.warehouse / "raw")
    with pytest.raises(SourceError, match=r"delivery 21\.50 \(payer, 2026-08\).*30\.00 has replaced it; .* put its"):
        total(company.config, "trn-1")
    # July was not delivered again.
    assert total(company.config, "gpu-1") == Decimal("110.08")


def test_lines_of_a_source_that_is_configured_no_more_are_refused_by_name(company: Company) -> None:
    shutil.rmtree(company.warehouse / "raw")
    text = company.config.read_text().replace('name = "payer"', 'name = "another"')
    company.config.write_text(text)
    with pytest.raises(SourceError, match=r"no \[\[billing\]\] source is called payer"):
        total(company.config, "trn-1")


def test_a_run_in_two_currencies_is_explained_in_one_of_them(tmp_path: Path) -> None:
    """An hour of 55.04 dollars and one of 550.40 krone: the cost of the run is unknown, its krone are one line."""
    krone = {"line_item_currency_code": "NOK"}
    lines = [instance_hour("2026-07-01T00", "i-1", "p5.48xlarge", "55.04")]
    lines.append(instance_hour("2026-07-01T01", "i-1", "p5.48xlarge", "550.40") | krone)
    write_export(tmp_path, {"2026-07": lines})
    write_events(tmp_path / "runs", run_events())
    config = write_config(tmp_path, billing="export", runs="runs")
    publish_tables(config, EXPLAIN_TABLES)
    with pytest.raises(UsageError, match="billed in NOK and USD, never added; choose one with --currency NOK"):
        explained(config, lambda marts: for_run(marts, "good"), lambda found: None)
    found, sums = explained(
        config, lambda marts: for_run(marts, "good", "NOK"), lambda found: (found.total(), agreed(found))
    )
    assert (found["line_count"], found["effective_cost_usd"]) == (1, Decimal("550.40"))
    # The mart has no cost that they could agree with.
    assert "level: the daily ledger and 1 line (list, effective, billed)" in sums
    with pytest.raises(UsageError, match="'EUR' is not a known currency of these lines; the currencies are NOK, USD"):
        explained(config, lambda marts: for_run(marts, "good", "EUR"), lambda found: None)


def test_names_that_would_be_cut_beyond_recognition_are_below_their_row() -> None:
    head = ("account", "bucket", "category", "service", "family", "effective USD", "billed USD")
    rows = [
        ("333344445555", "capacity_unused", "Usage", "AmazonEC2", "gpu", "1,965.38", "1,895.63"),
        ("012345678901", "commitment_unused", "Purchase", "ComputeSavingsPlans", "", "9.37", "558.00"),
        (Label("total"), "", "", "", "", "1,974.75", "2,453.63"),
    ]
    part = {"head": head, "rows": [{"cells": row, "note": ""} for row in rows], "names": 5}

    shown_head, shown = readable(part, 80)
    assert [row["note"] for row in shown] == ["service AmazonEC2; family gpu", "service ComputeSavingsPlans", ""]
    assert grid(shown_head, [row["cells"] for row in shown], 2, 80) == [
        "account       bucket             category  effective USD  billed USD",
        "333344445555  capacity_unused    Usage          1,965.38    1,895.63",
        "012345678901  commitment_unused  Purchase           9.37      558.00",
        "total                                           1,974.75    2,453.63",
    ]
    assert readable(part, 120) == (head, part["rows"])


def test_a_value_of_the_run_tag_is_named_with_what_it_is(tmp_path: Path) -> None:
    lines = [
        instance_hour(
            "2026-07-03T10", f"i-{run}", "p5.48xlarge", "55.04", resource_tags=json.dumps({"user_run_id": run})
        )
        for run in ("ft-alpha", "prod")
    ]
    config = write_config(tmp_path, billing=write_export(tmp_path, {JULY: lines}))
    publish_tables(config, EXPLAIN_TABLES)
    for run, sentence in {
        "ft-alfa": "'ft-alfa' is not a known run; did you mean ft-alpha?",
        "prod": "'prod' is a value of the run tag, probably not a run: the value names a kind of use; "
        "detail_provisional_run has its cost.",
    }.items():
        with pytest.raises(UsageError, match=re.escape(sentence)), explanation(config, lambda m, r=run: for_run(m, r)):
            pass
