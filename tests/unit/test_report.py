"""The report shows what the marts hold: marts written by hand, every expected figure worked out next to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.report_marts import PUBLISHED, Marts, charge, delivered, example, part, rendered, rendered_anew, run, words

from pipelines.base.errors import EngineError, UsageError
from pipelines.dashboard.reader import Volume
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.revision import code_revision
from pipelines.present.charts import timeline_chart, token_cost_chart, waterfall_chart
from pipelines.present.render import report_page
from pipelines.report.command import report

Render = Callable[..., str]


@pytest.fixture
def render(tmp_path: Path) -> Render:
    return partial(rendered, tmp_path)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of the example."""
    return rendered(tmp_path_factory.mktemp("marts"), example())


def test_a_basis_that_is_not_measurable_changes_no_verdict(render: Render) -> None:
    """Effective and list agree; a side was billed nothing, so billed compares nothing."""
    marts = example()
    nothing = {"saving_ratio": None, "verdict": "not comparable", "candidate_unit_cost_usd": None}
    marts["mart_silicon_comparison"] = [
        row | (nothing if row["cost_basis"] == "billed" else {}) for row in marts["mart_silicon_comparison"]
    ]
    page = words(render(marts))
    assert "Trainium cost 27.7% less; at list price 30.0% less" in page
    assert "changes with the cost basis" not in page


def test_the_basis_of_another_verdict_is_named(render: Render) -> None:
    """All bases agree that Trainium is cheaper; on billed cost alone the interval includes zero."""
    marts = example()
    other = {"billed": {"saving_ratio": Decimal("0.2"), "verdict": "inconclusive"}}
    marts["mart_silicon_comparison"] = [
        row | other.get(row["cost_basis"], {}) for row in marts["mart_silicon_comparison"]
    ]
    page = words(render(marts))
    assert "as billed 20.0% less. On billed cost it is inconclusive." in page
    assert "At list price it is" not in page and "changes with the cost basis" not in page


def test_written_reports_allow_no_script(page: str) -> None:
    """Neither does the page have one, nor would a browser run or fetch what somebody puts into it."""
    (policy,) = re.findall(r'<meta http-equiv="content-security-policy" content="(.*?)"/>', page)
    assert policy.startswith("default-src 'none'; ") and "script" not in policy and "http" not in policy
    assert "<script" not in page and "javascript:" not in page


def test_first_screen_answers_the_three_questions(page: str) -> None:
    page = words(page)
    # Run bucket: 1600 + 560 + 1440 = 3600; list is twice, billed half of it.
    assert "What did training really cost? $3,600 effective cost of 5 runs, June and July 2026" in page
    # gpu-1 + gpu-2 + gpu-3 = 2160; trn-1 + trn-2 = 1440.
    assert "GPU runs cost $2,160, Trainium runs $1,440. The same use is $1,800 as billed and $7,200 at list" in page
    # 212.40 + 131.36 + 300 + 57.50 = 701.26
    assert "A further $701 bought accelerators or commitments" in page
    assert "Indicative: not enough evidence" in page
    assert (
        "Reaching the target cost $719.72 on trn1.32xlarge (2 runs) and $994.99 on p5.48xlarge (3 runs, 1 failed)."
        in page
    )
    assert "Trainium cost 27.7% less; at list price 30.0% less, as billed 5.0% more." in page
    assert "The answer changes with the cost basis." in page
    # 57.50, half up.
    assert "$58 of commitments, $300 of capacity unused" in page
    assert "$58 of Savings Plans and reserved instances and $300 of reserved capacity" in page
    assert "Proven:" not in page


def test_what_is_not_drawn_and_hours_of_unlisted_types_are_partial(render: Render) -> None:
    """Of the 57.50 + 80 and 0 that no chart has, one more line is of an unknown cost; and a type of its own has no
    count.
    """
    ledger = example()["mart_cost_ledger_daily"]
    july = date(2026, 7, 10)
    unknown = {"effective_cost_usd": None, "is_cost_unknown": True}
    more = [
        charge(july, "shared", "0", "none", **unknown),
        charge(july, "unattributed", "5", "unknown", accelerator_hours=None),
    ]
    shown = part(render(example() | {"mart_cost_ledger_daily": [*ledger, *more]}), "ledger")
    assert "Not drawn: $138 partial unused commitments, shared and other." in shown
    assert "Accelerator-hours are partial : without those of instance types that no list has" in shown
    shown = part(render(example()), "ledger")
    assert "partial" not in shown
    nothing = [row for row in ledger if row["bucket"] not in ("commitment_unused", "shared", "other")]
    shown = part(render(example() | {"mart_cost_ledger_daily": [*nothing, more[0]]}), "ledger")
    assert "Not drawn: an unknown amount unused commitments, shared and other." in shown


def test_unit_costs_are_ratios_of_sums_over_all_billed_runs(page: str) -> None:
    sides = part(page, "sides")
    # GPU: 900 + 1100 + 160 = 2160; / (4 + 4 + 0) epochs = 270, / 16 checkpoints = 135, / 2400 M tokens = 0.9.
    assert "Effective $2,160 $270.00 $135.00 $0.900" in sides
    assert "List $4,320 $540.00 $270.00 $1.80" in sides
    assert "Billed $1,080 $135.00 $67.50 $0.450" in sides
    # Trainium: 1440 / 8 epochs = 180.00, / 16 checkpoints = 90.00, / 2400 = 0.6.
    assert "Effective $1,440 $180.00 $90.00 $0.600" in sides
    assert "3 runs, 2 completed; 8 epochs, 16 checkpoints, 2.4 billion tokens" in sides


def test_comparison_shows_three_bases(page: str) -> None:
    sides = part(page, "sides")
    assert "Effective $994.99 $719.72 27.7% less" in sides
    assert "List $2,000 $1,400 30.0% less" in sides
    assert "Billed $500.00 $525.00 5.0% more" in sides
    assert "Cost to reach the target, cost of all runs ÷ successes, runs up to 28 July 2026" in sides
    assert "Indicative : geometric means side by side; no interval is computed" in sides


def test_ledger_by_bucket_and_month(page: str) -> None:
    ledger = part(page, "ledger")
    # 300 of 1600 + 560 + 1440 + 212.40 + 131.36 + 300 + 57.50 + 80 + 0 = 4381.26 is 6.8 %.
    assert "reserved capacity and Capacity Blocks without instances $300 6.8% $600 $150 8.0" in ledger
    assert "everything else on the bill $0 0.0% n/a $0 8.0" in ledger
    assert "commitments unused in an open month include hours to come" in ledger
    assert "June 2026 $1,600 $0 $212 $0 $0 $0 $80 $0 $1,892" in ledger
    assert "July 2026 $2,000 $0 $0 $131 $300 $58 $0 $0 $2,489" in ledger


def test_without_runs_what_they_used_is_unknown_on_every_basis(render: Render) -> None:
    """No run is recorded, so the zeros in the bucket of runs are not known to be zero; those of capacity are."""
    ledger = example()["mart_cost_ledger_daily"]
    zero = dict.fromkeys(("effective_cost_usd", "list_cost_usd", "billed_cost_usd", "accelerator_hours"), Decimal(0))
    nothing = [row | zero if row["bucket"] in ("run", "capacity_unused") else row for row in ledger]
    shown = part(render(example() | {"mart_run_cost": [], "mart_cost_ledger_daily": nothing}), "ledger")
    assert "a run named only by a tag is provisional n/a n/a n/a n/a n/a" in shown
    assert "reserved capacity and Capacity Blocks without instances $0 0.0% $0 $0 0.0" in shown


def test_the_bill_of_a_currency_ends_with_its_own_newest_use(render: Render) -> None:
    """Without runs, the bill comes first: in USD up to 28 July 2026, that of a payer in EUR up to the 5th."""
    marts = example() | {"mart_run_cost": []}
    for mart, more in (
        ("mart_cost_ledger_daily", {"billing_currency": "EUR"}),
        ("mart_invoice_reconciliation_monthly", {"currency": "EUR", "newest_usage_at": datetime(2026, 7, 5, 4)}),
    ):
        (july,) = [row for row in marts[mart] if row["billing_month"] == date(2026, 7, 1)][-1:]
        marts[mart] = [*marts[mart], july | more]
    page = words(render(marts))
    assert "July 2026, with use up to 5 July 2026, costs EUR" in page
    assert "July 2026, with use up to 28 July 2026, costs $" in page


def test_the_first_screen_has_the_newest_month_of_each_currency(render: Render) -> None:
    """The bill ends in July in USD, where machines ran all day in June alone, and in June in EUR."""
    june = date(2026, 6, 1)
    marts = example() | {"mart_run_cost": []}
    euros = [
        row | {"billing_currency": "EUR"} for row in marts["mart_cost_ledger_daily"] if row["billing_month"] == june
    ]
    marts["mart_cost_ledger_daily"] += euros
    machine = {"billing_month": june, "full_day_count": 8, "effective_cost_usd": Decimal(192)}
    tagged = {
        "billing_month": june,
        "tag": "team",
        "accelerator_family": "gpu",
        "family_tag_coverage_ratio": Decimal("0.4"),
    }
    marts["detail_accelerator_resource_monthly"] = [
        machine | {"resource_id": f"i-{currency}", "billing_currency": currency} for currency in ("EUR", "USD")
    ]
    marts["detail_tag_coverage_monthly"] = [
        tagged | {"billing_currency": currency, "billing_month": date(2026, month, 1)}
        for currency, month in (("EUR", 6), ("USD", 7))
    ]
    page = words(render(marts))
    assert "7 days or more June 2026; EUR, effective" in page and "i-EUR 8 EUR 192" in page
    assert "No accelerator was billed for 24 hours on 7 days of July 2026 or more." in page and "i-USD" not in page
    assert page.count("GPU team n/a n/a 40.0%") == 2


def test_the_daily_chart_states_what_it_leaves_out(page: str, render: Render) -> None:
    # 57.50 of commitments stands on the day of their fee, which may be of the whole month. With 80 shared and 0 other
    # it is 137.50, 3.1 % of 4381.26; no day is older than 92.
    ledger = page[page.index('id="ledger"') :]
    assert "Not drawn, 3.1% of the effective cost: $138 unused commitments, shared and other." in part(page, "ledger")
    drawn = re.findall(r"<figure>.*?</figure>", ledger, re.DOTALL)[0]
    assert "Capacity unused" in drawn and "Commitment unused" not in drawn
    marts = example()
    # 120 days of 10: 92 are drawn, 28 are not; with 120 shared on the last, 400 of 1,320 is 30.3 %.
    days = [charge(date(2026, 1, 1) + timedelta(n), "run", "10") for n in range(120)]
    marts["mart_cost_ledger_daily"] = [*days, charge(date(2026, 4, 30), "shared", "120", "none")]
    sentence = (
        "Not drawn, 30.3% of the effective cost: $120 unused commitments, shared and other, $280 of earlier days."
    )
    assert sentence in part(render(marts), "ledger")
    # A correction of a day before the first delivered month: with 10 shared, 20 of 50 are not drawn.
    days = [charge(date(2026, 7, day), "run", "10") for day in (1, 2, 3)]
    days.append(charge(date(2026, 6, 1), "run", "10", billing_month=date(2026, 7, 1)))
    marts["mart_cost_ledger_daily"] = [*days, charge(date(2026, 7, 3), "shared", "10", "none")]
    shown = part(render(marts), "ledger")
    assert "1 July 2026 to 3 July 2026" in shown
    assert "Not drawn, 40.0% of the effective cost: $10 unused commitments, shared and other, $10 of earlier" in shown


def test_a_waterfall_shows_what_each_factor_saves_as_its_table_does() -> None:
    """100 on GPU and 70 on Trainium: the chip saves 40, the rate costs 10 more."""
    pair = {"currency": "USD", "baseline_instance_type": "p5", "baseline_unit_cost_usd": Decimal(100)}
    pair |= {"candidate_instance_type": "trn1", "candidate_unit_cost_usd": Decimal(70)}
    parts = [{"factor": name, "cost_part_usd": Decimal(usd)} for name, usd in (("chip", 40), ("rate", -10))]
    drawn = waterfall_chart(pair, parts, {}, "USD", "a label")
    assert re.findall(r">(\u2212?\$[\d.]+)</text>", drawn)[-4:] == ["$100.00", "$40.00", "\u2212$10.00", "$70.00"]


def test_the_legend_calls_a_platform_by_its_name() -> None:
    rows = [
        {"model": "haiku", "instance_type": None, "platform": "bedrock", "usage_date": date(2026, 7, day)}
        | {"cost_per_million_total_usd": Decimal(day)}
        for day in (1, 2)
    ]
    drawn = token_cost_chart(rows, {"bedrock": "Amazon Bedrock"}, "USD", "a label")
    assert "haiku, Amazon Bedrock" in drawn and "haiku, bedrock" not in drawn


def test_a_model_served_on_one_day_is_drawn_at_any_cost() -> None:
    """A line of one day has no length; as 0 a cost would have no place on a logarithmic axis."""
    day = {"model": "haiku", "platform": "bedrock", "instance_type": None, "usage_date": date(2026, 7, 1)}
    row = {**day, "cost_per_million_total_usd": Decimal("0.0000004")}
    drawn = token_cost_chart([row], {}, "USD", "a label")
    assert "mark-symbol role-mark" in drawn and "$0.0000004" in drawn


def test_a_timeline_draws_what_a_pixel_holds_once() -> None:
    """3,000 attempts of a minute on 920 pixels: as many marks would be 10 MB, and their labels one on another."""
    starts = [datetime(2026, 7, 1) + timedelta(minutes=number) for number in range(3000)]
    stretches = [
        {"phase": "train", "attempt_no": number, "waste_cause": "none"}
        | {"started_at": at, "ended_at": at + timedelta(seconds=50)}
        for number, at in enumerate(starts, 1)
    ]
    drawn = timeline_chart(stretches, [{"durable_at": at} for at in starts], {"train": "Training"}, "a label")
    assert len(drawn) < 1_000_000
    # Seventy pixels for each on the wide drawing, and on the narrow one.
    assert 2 < drawn.count(">attempt ") <= 920 // 70 + 190 // 70 + 2


def test_title_counts_the_months_whose_money_is_shown(render: Render) -> None:
    """Delivered as July and August; every line of both is of July's bill."""
    published = replace(PUBLISHED, inputs=delivered("2026-07", "2026-08"))
    marts = example() | {"mart_cost_ledger_daily": [charge(date(2026, 7, 10), "run", "5")]}
    page = render(marts, published)
    assert "<title>What training really cost: July 2026</title>" in page
    assert "July 2026 on the bill. Publication 7" in words(page)
    assert "Billing months July 2026; delivered as July and August 2026" in words(page)


def test_a_basis_of_its_own_verdict_has_the_width_of_the_table_for_its_reason(render: Render) -> None:
    marts = example()
    marts["mart_silicon_comparison"][0] |= {
        "unit_measure": "none",
        "saving_ratio": None,
        "verdict": "not comparable",
        "verdict_reason": "no list price",
    }
    page = render(marts)
    assert '<th scope="row">List</th>' in page
    sentence = "List: not comparable : no list price."
    assert sentence in part(page, "sides")


def test_a_basis_adds_only_the_reasons_that_the_verdict_does_not_have(render: Render) -> None:
    marts = example()
    for row in marts["mart_silicon_comparison"]:
        other = {"verdict": "not comparable", "verdict_reason": "two runs a side; a run cost nothing"}
        row |= (
            other if row["cost_basis"] == "billed" else {"verdict": "indicative", "verdict_reason": "two runs a side"}
        )
    sides = part(render(marts), "sides")
    assert "Indicative : two runs a side." in sides
    assert "Billed: not comparable" in sides and ": a run cost nothing." in sides
    assert sides.count("two runs a side") == sides.count("Indicative :")


def test_fees_that_a_closed_bill_does_not_place_stand_next_to_its_reconciliation(page: str, render: Render) -> None:
    assert "too low" not in page
    marts = example()
    closed, opened = marts["mart_invoice_reconciliation_monthly"]
    # An open month has fees for time to come as a matter of course.
    closed["commitment_timing_usd"], opened["commitment_timing_usd"] = Decimal("250.5"), Decimal(9)
    tie = part(render(marts), "reconciliation")
    assert "June 2026, payer 111122223333: effective cost may be too low by up to $250.50." in tie
    assert tie.count("too low") == 1


def test_runs_waste_unattributed_and_reconciliation(page: str) -> None:
    runs = part(page, "runs")
    assert runs.index("gpu-2") < runs.index("gpu-1") < runs.index("trn-2") < runs.index("trn-1") < runs.index("gpu-3")
    assert "$1,100 $2,200 $550 $275.00 $137.50 $0" in runs
    assert "1 run has no bill line and so no cost." in runs
    waste = part(page, "waste")
    # 35 + 160 = 195 of 3600 is 5.4 %.
    assert "$195, or 5.4% of what runs cost" in waste
    for cause in ("Failed runs", "Lost work", "Compiling"):
        assert cause in waste
    unattributed = part(page, "unattributed")
    assert "no run and no tag names this resource 1 16.0 $91" in unattributed
    assert "owner tomas" in unattributed
    assert "no run names this resource: ask the tagged owner" in unattributed
    tie = part(page, "reconciliation")
    assert "June 2026 1234567 payer 111122223333 12,345 $2,190.55 $2,190.55 $0.00 Reconciled" in tie
    assert "July 2026 not yet issued payer 111122223333 12,345 $1,190.20 $1,190.20 $0.00 Open" in tie


def test_warnings_are_listed_with_counts_and_rows(page: str) -> None:
    text = part(page, "warnings")
    assert "All 1 check of severity error passed. 1 other check raised a warning" in text
    # 3 in June and 4 in July.
    assert "Unknown charge type stg_aws__line_item, June and July 2026: 7 rows" in text
    assert "First rows " in text
    assert "EdpDiscountV2 2" in text
    assert "EdpDiscountV3 4" in text


def test_an_unusual_unit_cost_of_less_than_a_cent_has_its_digits(tmp_path: Path) -> None:
    costs = {
        "observed_cost_usd": Decimal("0.0084"),
        "expected_cost_usd": Decimal("0.0028"),
        "excess_cost_usd": Decimal(56),
    }
    about = {"anomaly_kind": "run", "subject": "r", "observed_date": date(2026, 7, 3), "billing_currency": "USD"}
    row = {**about, **costs, "anomaly_measure": "per million tokens", "anomaly_reason": "why"}
    page = rendered(tmp_path, {**example(), "detail_cost_anomaly": [row]}, PUBLISHED, "showback")
    assert "3 Jul 2026 $0.0084 $0.0028 $56.00" in words(page)


def test_page_states_what_it_is_as_of(page: str) -> None:
    page = words(page)
    about = page[page.index("About this page") :]
    assert "Publication 7, 2 August 2026, 06:14 UTC" in about
    assert "Billing months June and July 2026" in about
    assert "Newest charge 28 July 2026" in about
    assert "up to 28 July 2026" in about
    assert "0.1.0+ab12cd34" in about


def test_hostile_names_are_text(render: Render) -> None:
    hostile = "<script>alert('x')</script><img src=x onerror=y>"
    marts = example()
    for row in marts["mart_run_cost"]:
        row |= {
            "run_id": f"{hostile}{row['run_id']}",
            "team": hostile,
            "model": hostile,
            "workload_id": hostile,
        }
        if row["accelerator_family"] == "gpu":
            row["instance_type"] = hostile
    for row in marts["mart_silicon_comparison"]:
        row |= {"workload_id": hostile, "baseline_instance_type": hostile}
    for row in marts["mart_unattributed_cost_daily"]:
        row |= {"tagged_owner": hostile, "tagged_run_id": hostile}
    page = render(marts)
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page


def test_page_is_self_contained_deterministic_and_small(page: str, tmp_path: Path) -> None:
    assert page == rendered_anew(tmp_path, example())
    outside = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert not re.search(r"https?://|//\w+\.\w+|@import|<link|<script|\bsrc=|url\((?!#)", outside)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {target for target in re.findall(r'href="#([^"]+)"', page)} <= set(ids)
    assert len(page.encode()) < 2_000_000


@pytest.mark.parametrize(
    ("marts", "sentences"),
    [
        pytest.param({}, ["Not known", "Not enough evidence", "This publication has no ledger"], id="no marts"),
        pytest.param(
            {mart: [] for mart in example()},
            ["Not known", "No training run is recorded", "No bill has been delivered yet"],
            id="empty marts",
        ),
        pytest.param(
            example()
            | {
                "mart_run_cost": [row for row in example()["mart_run_cost"] if row["accelerator_family"] == "gpu"],
                "mart_silicon_comparison": [],
            },
            [
                "No run used Trainium: there is nothing to compare the GPU runs with",
                "Workloads on one accelerator family",
            ],
            id="no Trainium runs",
        ),
        pytest.param(
            example() | {"mart_silicon_comparison": []},
            ["No completed run on both sides, on one kind of instance each"],
            id="nothing compared",
        ),
        pytest.param(
            {mart: rows for mart, rows in example().items() if mart != "mart_silicon_comparison"},
            ["This publication has no comparison", "has no mart_silicon_comparison"],
            id="comparison missing",
        ),
        pytest.param(
            example()
            | {
                "mart_silicon_comparison": [
                    row
                    | {
                        "unit_measure": "none",
                        "baseline_unit_cost_usd": None,
                        "candidate_unit_cost_usd": None,
                        "saving_ratio": None,
                        "verdict": "not comparable",
                        "verdict_reason": "no unit of work is measured",
                    }
                    for row in example()["mart_silicon_comparison"]
                ]
            },
            ["Not comparable", "no unit of work is measured"],
            id="not comparable",
        ),
        pytest.param(
            example() | {"mart_cost_ledger_daily": [charge(date(2026, 7, 10), "run", "5")]},
            ["No unused commitment found", "Either all of it was used, or there is none"],
            id="no commitments",
        ),
        pytest.param(
            example()
            | {
                "mart_cost_ledger_daily": [
                    charge(date(2026, 7, 10), "run", "5"),
                    charge(date(2026, 7, 10), "run", "7", billing_currency="CNY"),
                ],
                # A run has dollars of both, and is counted in neither.
                "mart_run_cost": [
                    run("gpu-1", "gpu", "p5.48xlarge", "5"),
                    run("both", "gpu", "p5.48xlarge", "1") | {"billing_currency": None, "effective_cost_usd": None},
                ],
            },
            ["$5", "CNY 7", "The bills are in CNY and USD", "of 1 run and a part of 1 run billed in two currencies"],
            id="two currencies",
        ),
    ],
)
def test_what_is_absent_is_stated(render: Render, marts: Marts, sentences: list[str]) -> None:
    page = words(render(marts)).replace("\u00a0", " ")
    for sentence in sentences:
        assert sentence in page


def test_a_failed_error_check_is_loud(render: Render) -> None:
    failed = {**PUBLISHED.checks[0], "passed": False, "unexpected_count": 2}
    published = replace(PUBLISHED, checks=[failed])
    assert "1 check of severity error failed. Do not rely on this page." in words(render(example(), published))


def test_a_query_that_fails_on_a_present_mart_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "mart_run_cost.parquet"
    pl.DataFrame({"run_id": ["a"]}).write_parquet(file)
    with DuckDBEngine() as engine:
        engine.view("mart_run_cost", [file])
        with pytest.raises(EngineError):
            report_page(engine.query, replace(PUBLISHED, code_revision=code_revision()))
        # Of another revision, reports and pages state what to do.
        newer = "Run `trainledger build` for the newest bill"
        with pytest.raises(UsageError, match=newer):
            report_page(engine.query, PUBLISHED)
        unused: Any = None
        with pytest.raises(UsageError, match=newer):
            Volume(unused, PUBLISHED, engine).page("sides")


@pytest.mark.parametrize("kind", ["training_cost", "serving", "expectations"])
def test_a_month_of_a_report_on_all_months_is_refused(kind: str) -> None:
    """A pack has reports of all kinds, so that its month is one of the others."""
    refusal = f"--month requires .* month .commitments, savings, showback. or --pack; {kind} covers all delivered"
    with pytest.raises(UsageError, match=refusal):
        report(kind=kind, month="2026-07")


def test_long_ledgers_draw_the_last_92_days(render: Render) -> None:
    first = date(2025, 1, 1)
    marts = example()
    marts["mart_cost_ledger_daily"] = [charge(first + timedelta(n), "run", "10") for n in range(500)]
    ledger = part(render(marts), "ledger")
    last = first + timedelta(499)
    assert f"{last - timedelta(91):%-d %B %Y} to {last:%-d %B %Y}" in ledger
    assert "January 2025 $310" in ledger


def test_what_aws_restated_is_shown_on_every_basis(render: Render) -> None:
    """A credit of 200 came late: billed 200 less; effective cost is before credits. Delivery 2 moved nothing."""
    moved = {
        "payer_account_id": "111122223333",
        "billing_month": date(2026, 6, 1),
        "billing_currency": "USD",
        "effective_change_usd": Decimal(0),
        "moved_run_count": 0,
        "moved_day_count": 1,
    }
    rows = [
        {**moved, "delivery_no": 3, "billed_change_usd": Decimal(-200)},
        {**moved, "delivery_no": 2, "billed_change_usd": Decimal(0)},
    ]
    tie = part(render(example() | {"mart_restatement": rows}), "reconciliation")
    assert "AWS restated June 2026 of payer 111122223333 (delivery 3): effective cost as before, billed $200.00" in tie
    assert "billed $200.00 less; no runs and 1 day moved." in tie
    assert "(delivery 2)" not in tie


def test_changes_that_cancel_out_are_shown(render: Render) -> None:
    """$40 moved from run-a, on a day, to run-b, on another: the bill costs what it did, and four figures do not."""
    row = {"payer_account_id": "1", "billing_month": date(2026, 6, 1), "billing_currency": "USD", "delivery_no": 2} | {
        "effective_change_usd": Decimal(0), "billed_change_usd": Decimal(0), "moved_run_count": 2, "moved_day_count": 2,
        "most_moved_run_id": "run-a", "most_moved_run_change_usd": Decimal(-40)}  # fmt: skip
    tie = part(render(example() | {"mart_restatement": [row]}), "reconciliation")
    text = "June 2026 of payer 1 (delivery 2): 2 runs and 2 days moved, net $0, most of all run-a by −$40.00."
    assert text in tie and "AWS restated" not in tie


def test_only_days_that_were_published_are_called_restated(render: Render) -> None:
    """Delivery 2 restated a day, $5 more, and had a new one of $100; deliveries 3, only a new one."""
    of = {"payer_account_id": "1", "billing_month": date(2026, 6, 1), "billing_currency": "USD", "moved_run_count": 1}
    rows = [
        of | {"delivery_no": number, "moved_day_count": days + 1, "restated_day_count": days, "new_day_count": 1}
        | {f"{basis}_change_usd": change + 100 for basis in ("effective", "billed")}
        | {f"restated_{basis}_change_usd": change for basis in ("effective", "billed")}
        for number, days, change in ((2, 1, Decimal(5)), (3, 0, Decimal(0)))
    ]  # fmt: skip
    tie = part(render(example() | {"mart_restatement": rows}), "reconciliation")
    text = "(delivery 2): effective cost $5.00 more, billed $5.00 more; 1 day moved, not counting 1 new day."
    assert text in tie and "(delivery 3)" not in tie
    assert "AWS restated" not in part(render(example() | {"mart_restatement": rows[1:]}), "reconciliation")


def test_a_restated_month_of_unknown_effective_cost_is_marked(render: Render) -> None:
    """Fees whose use the bill does not show: how effective cost moved is unknown, also where billed did not move."""
    moved = {"payer_account_id": "1", "billing_month": date(2026, 6, 1), "billing_currency": "USD"} | {
        "delivery_no": 2, "effective_change_usd": None, "moved_run_count": 0, "moved_day_count": 0}  # fmt: skip
    for billed, text in ((Decimal(7), "billed $7.00 more"), (Decimal(0), "billed as before")):
        tie = part(render(example() | {"mart_restatement": [moved | {"billed_change_usd": billed}]}), "reconciliation")
        assert f"(delivery 2): effective cost unknown, {text};" in tie
    first = moved | {"delivery_no": 1, "billed_change_usd": None}
    assert "AWS restated" not in words(render(example() | {"mart_restatement": [first]}))


def test_unused_commitments_are_not_shown_where_the_bill_lacks_them(render: Render) -> None:
    """Nothing stands as unused, yet 1,500 of fees on a closed month are drawn on by nothing that the bill names."""
    marts = example()
    marts["mart_cost_ledger_daily"] = [
        row for row in marts["mart_cost_ledger_daily"] if row["bucket"] not in ("commitment_unused", "capacity_unused")
    ]
    assert "No unused commitment found" in words(render(marts))
    marts["mart_invoice_reconciliation_monthly"][0]["commitment_timing_usd"] = Decimal(1500)
    page = words(render(marts))
    assert "Not reported by AWS" in page and "No unused commitment found" not in page
    assert "The bill has $1,500 of commitment fees without the usage they covered" in page


def test_one_invoice_of_two_sellers_is_kept_apart(render: Render) -> None:
    marts = example()
    (june, july) = marts["mart_invoice_reconciliation_monthly"]
    sold = {**june, "billing_entity": "AWS Marketplace", "billed_cost_usd": Decimal("80.50")}
    marts["mart_invoice_reconciliation_monthly"] = [june, sold, july]
    tie = part(render(marts), "reconciliation")
    assert "June 2026 1234567 payer 111122223333" in tie
    assert "June 2026 1234567 AWS Marketplace payer 111122223333 12,345 $80.50" in tie


@pytest.mark.parametrize(("name", "option"), [("report.pdf", "--pdf"), ("Evidence.ZIP", "--pack")])
def test_a_page_is_not_written_into_a_pdf_or_a_zip_file(tmp_path: Path, name: str, option: str) -> None:
    with pytest.raises(UsageError, match=f"--out writes an HTML page; use {option} "):
        report(out=tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_rate_paid_means_on_the_page_what_its_contract_states() -> None:
    """Storage and data transfer are no discount and no commitment, yet they are in it."""
    meant = "discounts, commitments and cost other than instance time"
    for file in ("dashboards/names.j2", "expectations/columns/proof.yml"):
        assert meant in (Path(__file__).parents[2] / file).read_text(encoding="utf-8"), file
