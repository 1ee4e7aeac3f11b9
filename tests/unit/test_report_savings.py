"""The savings proof on the page and on paper: marts written by hand, every expected figure worked out next to it."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support import report_marts
from support.report_marts import PUBLISHED, WORKLOAD, Marts, part, printed, rendered, words

from pipelines.base.errors import UsageError
from pipelines.present.pdf import pdf_of_page

PAIR = ("workload_id", "baseline_instance_type", "candidate_instance_type", "billing_currency")
JULY = date(2026, 7, 1)
UNKNOWN = dict.fromkeys(f"{kind}_cost_usd" for kind in ("avoided", "avoided_low", "avoided_high", "cash_avoided"))


def saved(**other: Any) -> dict[str, Any]:
    """4 epochs at 270 by the baseline, 180 in fact: 1080 - 720 = 360 avoided, 60 of it still committed."""
    return {
        "workload_id": WORKLOAD,
        "month_date": JULY,
        "billing_currency": "USD",
        "baseline_name": "llama8b",
        "baseline_version": 1,
        "baseline_evidence": "measured",
        "is_headline": True,
        "unit_count": Decimal(4),
        "baseline_unit_cost_usd": Decimal(270),
        "actual_unit_cost_usd": Decimal(180),
        "adjustment_usd": Decimal(0),
        "adjustment_count": 0,
        "avoided_cost_usd": Decimal(360),
        "avoided_low_cost_usd": Decimal(300),
        "avoided_high_cost_usd": Decimal(420),
        "chip_avoided_cost_usd": Decimal(200),
        "rate_avoided_cost_usd": Decimal(150),
        "operations_avoided_cost_usd": Decimal(10),
        "displaced_commitment_cost_usd": Decimal(60),
        "cash_avoided_cost_usd": Decimal(300),
    } | other


def ported(**other: Any) -> dict[str, Any]:
    """A port of 9000 that saves 300 a run, 200 to 450: 30 runs, 20 to 45."""
    return {
        "port_name": "to trn1",
        "workload_id": WORKLOAD,
        "billing_currency": "USD",
        "saving_evidence": "measured",
        "port_cost_usd": Decimal(9000),
        "saving_per_run_usd": Decimal(300),
        "saving_low_per_run_usd": Decimal(200),
        "saving_high_per_run_usd": Decimal(450),
        "break_even_run_count": 30,
        "break_even": "30 runs (20 runs to 45 runs)",
        "payback_date": date(2027, 1, 23),
        "payback_probability_ratio": Decimal("0.85"),
        "npv_usd": Decimal(1234),
        "realized_run_count": 2,
        "planned_saving_usd": Decimal(500),
        "realized_saving_usd": Decimal(640),
        "realized_net_usd": Decimal(-8360),
    } | other


def example() -> Marts:
    marts = report_marts.example()
    marts["mart_silicon_comparison"][1] |= {
        "verdict": "proven",
        "saving_low_ratio": Decimal("0.1"),
        "saving_high_ratio": Decimal("0.4"),
        "accelerator_spend_ratio": Decimal("0.25"),
        "registered_comparison_count": 3,
        "expected_false_count": Decimal("0.15"),
    }
    return marts | {
        "mart_savings_monthly": [saved()],
        "mart_break_even": [ported()],
        "detail_savings_adjustment": [],
        "mart_cost_decomposition": [],
        "detail_comparison_near_miss": [],
        "mart_restatement": [],
        "detail_commitment_summary_monthly": [],
    }


def page_of(folder: Path, marts: Marts) -> str:
    return rendered(folder, marts, PUBLISHED, "savings")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(tmp_path_factory.mktemp("marts"), example())


@pytest.mark.parametrize(
    ("steps", "unit"), [(500.0, "productive instance-hours per step"), (None, "productive instance-hours per unit of")]
)
def test_hours_of_the_chip_are_per_step_where_steps_are_compared(
    tmp_path: Path, steps: float | None, unit: str
) -> None:
    """What convergence divides out is not in the hours; without steps they are those of the whole unit."""
    pair = {name: example()["mart_silicon_comparison"][0][name] for name in PAIR}
    factors = {"silicon_hours": (0.02, 0.04), "convergence": (steps, steps)}
    rows = [
        pair
        | {
            "cost_basis": "effective",
            "factor": name,
            "baseline_factor": gpu,
            "candidate_factor": trainium,
            "cost_part_usd": Decimal(1),
        }
        for name, (gpu, trainium) in factors.items()
    ]
    assert unit in words(page_of(tmp_path, example() | {"mart_cost_decomposition": rows}))


def test_page_one_states_the_verdict_and_the_saving_in_a_sentence(page: str) -> None:
    assert (
        "Trainium is proven cheaper for 1 of 1 comparison (3 registered comparisons at 95% confidence: 0.15 wrong "
        "verdicts expected); llama-3.1-8b on trn1.32xlarge cost 27.7% less than on p5.48xlarge (3 and 2 runs, 1 "
        "and 0 failed, 25.0% of accelerator spend); July 2026 avoided $360 ($300 to $420), in cash $300." in words(page)
    )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        pytest.param({"mart_savings_monthly": []}, "; no saving is claimed for July 2026.", id="no baseline"),
        pytest.param(
            {"mart_savings_monthly": [saved(baseline_evidence="asserted", is_headline=False)]},
            "No workload with a measured baseline is proven cheaper, so no total is claimed for July 2026.",
            id="asserted baseline",
        ),
        # 360 without what the run of the other workload avoided, whose cost the bill does not show, is not the total.
        pytest.param(
            {"mart_savings_monthly": [saved(), saved(workload_id="other", **UNKNOWN)]},
            "; July 2026 avoided n/a",
            id="a workload of unknown cost",
        ),
        pytest.param({"mart_silicon_comparison": []}, "Whether Trainium is cheaper is unknown", id="one-sided"),
        pytest.param(
            {"mart_invoice_reconciliation_monthly": []},
            "The bill of July 2026 has no invoice in this publication: nothing below is tied to a bill.",
            id="no bill",
        ),
        pytest.param(
            {"mart_invoice_reconciliation_monthly": [report_marts.invoice(JULY, "1", "90", "80", "unreconciled")]},
            "differ by $10.00: no saving of July 2026 may be quoted.",
            id="unreconciled",
        ),
    ],
)
def test_what_is_absent_is_stated_on_page_one(tmp_path: Path, changed: Marts, sentence: str) -> None:
    page = page_of(tmp_path, example() | changed)
    assert sentence in words(page[: page.index('<section id="sides">')])


def test_nothing_is_proven_where_nothing_is_compared(tmp_path: Path) -> None:
    """Every one of no comparisons is proven, which proves nothing."""
    negative = part(page_of(tmp_path, example() | {"mart_silicon_comparison": []}), "negative")
    assert "There is no comparison." in negative and "proven" not in negative


def test_a_unit_is_shown_to_its_target_too(page: str) -> None:
    """GPU: 900 + 1100 reached it and 160 failed, 2160 / 2; Trainium (700 + 740) / 2."""
    sides = part(page, "sides")
    assert "p5.48xlarge GPU 3 $2,160 $270.00 $135.00 $0.900 $1,080" in sides
    assert "trn1.32xlarge Trainium 2 $1,440 $180.00 $90.00 $0.600 $720.00" in sides


def test_break_even_is_drawn_and_stated_next_to_what_was_planned(page: str) -> None:
    money = part(page, "money")
    assert "to trn1 llama-3.1-8b; saving measured $9,000 $300.00 30 runs (20 runs to 45 runs) 23 Jan 2027" in money
    assert "Realized and planned since each port began, for the runs made so far" in money
    assert "to trn1 2 $500 $640 −$8,360" in money
    assert 'aria-label="Break-even of to trn1: 30 runs (20 runs to 45 runs)' in page


def test_a_break_even_of_an_indicative_comparison_is_called_so(tmp_path: Path) -> None:
    page = page_of(tmp_path, example() | {"mart_break_even": [ported(saving_evidence="indicative")]})
    money = part(page, "money")
    assert "saving indicative: break-even, payback and NPV are from a comparison that proves nothing" in money
    assert "effective, by a saving that is indicative; the band is" in money


def test_a_port_that_never_pays_is_drawn_all_the_same(tmp_path: Path) -> None:
    never = ported(
        saving_per_run_usd=Decimal(-5),
        saving_low_per_run_usd=None,
        saving_high_per_run_usd=None,
        break_even_run_count=None,
        break_even="never",
        realized_run_count=None,
        realized_net_usd=None,
    )
    assert 'aria-label="Break-even of to trn1: never' in page_of(tmp_path, example() | {"mart_break_even": [never]})


def test_the_headline_is_as_measured_and_adjustments_are_asserted_next_to_it(tmp_path: Path) -> None:
    """360 is 300 measured and 60 by adjustment: 240 to 360 measured, 240 of it in cash."""
    adjusted = saved(adjustment_usd=Decimal(60), adjustment_count=1)
    page = words(page_of(tmp_path, example() | {"mart_savings_monthly": [adjusted]}))
    assert "July 2026 avoided $300 ($240 to $360), in cash $240, without asserted adjustments of $60." in page
    assert "1 asserted adjustment of $60 left out." in page


def test_adjustments_are_logged_with_their_reasons(tmp_path: Path) -> None:
    """What a person wrote is text: in HTML, and in the code and markup of the paper's typesetter."""
    reason = "#panic() <b>bold</b> *twice* $x$"
    row = {
        "month_date": JULY,
        "adjustment_no": 1,
        "baseline_name": "llama8b",
        "billing_currency": "USD",
        "adjustment_usd": Decimal("-10"),
        "adjustment_reason": reason,
        "decided_date": date(2026, 8, 3),
    }
    page = page_of(tmp_path, example() | {"detail_savings_adjustment": [row]})
    assert f"llama8b 3 Aug 2026 {reason} −$10.00" in part(page, "negative")
    assert "<b>" not in page
    assert pdf_of_page(page, None, PUBLISHED)[0].startswith(b"%PDF-")


def test_paper_has_every_section_of_the_page(page: str) -> None:
    heads = re.findall(r"<h2>(.*?)</h2>", page[page.index('<section id="sides">') :])
    assert printed(page, "heading.where(level: 2)")[-len(heads) :] == [words(head) for head in heads]
    assert pdf_of_page(page, None, PUBLISHED) == pdf_of_page(page, None, PUBLISHED)


def test_missing_fonts_are_reported_with_the_fix(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.present.pdf.FONTS", ("No Such Font",))
    with pytest.raises(UsageError, match="set in No Such Font, which this machine lacks; install fonts-dejavu"):
        pdf_of_page(page, None, PUBLISHED)
