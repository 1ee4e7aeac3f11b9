"""The commitment report shows what its marts hold: marts written by hand, each figure worked out next to it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from support.commitment_marts import JULY, advised, by_account, example, held
from support.report_marts import (
    PUBLISHED,
    Marts,
    charge,
    invoice,
    part,
    printed,
    printed_rows,
    rendered,
    rendered_anew,
    words,
)

from pipelines.present.charts import class_of
from pipelines.present.pdf import pdf_of_page


def tagged(run_id: str, began: int, ended: int, **other: object) -> dict[str, object]:
    """A value of the run tag that was in use between these days, counted from July's first as 0."""
    days = {"started_at": timedelta(began), "ended_at": timedelta(ended)}
    times = {name: datetime(2026, 7, 1) + day for name, day in days.items()}
    return {"run_id": run_id, "billing_currency": "USD", "is_probably_run": True, **times, **other}


def page_of(folder: Path, marts: Marts) -> str:
    return rendered(folder, marts, PUBLISHED, "commitments")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(tmp_path_factory.mktemp("marts"), example())


def test_page_one_answers_in_a_sentence(page: str) -> None:
    text = words(page)
    # 22 + 12.50 of 22 + 44 + 21.50 + 12.50; 20 + 10 paid, 14 + 8 of it used.
    assert (
        "Commitments covered 34.5% of the $100 of use they could cover, at list price; of the $30 they cost, $8 went "
        "unused." in text
    )
    assert "payer 111122223333, USD Reconciled" in text
    # GPU 22 of 66, Trainium nothing of 21.50, the rest whole; 43 + 21.50 = 64.50 on demand, half up.
    assert "GPU 33.3%; Trainium 0.0%; Everything else 100.0%. $65 ran on demand" in text
    assert "Should we buy more? Commit nothing" in text


def test_what_no_bill_reports_is_not_called_used_or_unused(tmp_path: Path) -> None:
    """1,500 of fees on a closed month are drawn on by nothing that the bill names."""
    unreported = invoice(JULY, "1", "90", "90", "reconciled") | {"commitment_timing_usd": Decimal(1500)}
    page = page_of(tmp_path, example() | {"mart_invoice_reconciliation_monthly": [unreported]})
    text = words(page)
    assert "at list price; their cost and unused part are unknown, because the bill has $1,500 of commitment" in text
    assert "Is what we bought used? Not reported by AWS" in text
    assert "went unused" not in text
    assert "Unused not reported" in part(page, "families")


def test_bedrock_capacity_is_apart_from_what_the_bill_shows_as_used(tmp_path: Path) -> None:
    """The use of a provisioned model is on no bill: $8 of $30 of the others stays known."""
    capacity = held(
        "arn:aws:bedrock:us-east-1:444455556666:provisioned-model/p1", "bedrock_provisioned", "50", "0",
        used_cost_usd=None, unused_cost_usd=None, utilization_ratio=None, net_savings_usd=None, ended_at=None,
        break_even_utilization_ratio=None, days_to_expiry=None, purchase_term="6Months",
    )  # fmt: skip
    marts = example()
    marts["mart_commitment_utilization_monthly"] = [*marts["mart_commitment_utilization_monthly"], capacity]
    page = page_of(tmp_path, marts)
    assert "of the $30 they cost, $8 went unused." in words(page)
    assert "Not counted: 1 commitment of Bedrock capacity, whose use the bill does not show" in words(page)
    assert "Bedrock Provisioned Throughput p1 account 444455556666, 6Months $50 n/a" in part(page, "commitments")


def test_families_stand_apart_and_together(page: str) -> None:
    text = part(page, "families")
    # 14 of 30 paid is 46.7 %, 8 of 30 is 26.7 %, 22 of 30 is 73.3 %.
    assert "GPU $66 $22 33.3% $43 $14 46.7%" in text
    assert "Trainium $22 $0 0.0% $22 $0 0.0%" in text
    assert "Everything else $13 $13 100.0% $0 $8 26.7%" in text
    assert "Together $100 $35 34.5% $65 $22 73.3%" in text
    assert "Unused $8" in text


def test_what_is_held_saved_stranded_and_where(page: str) -> None:
    assert (
        "Compute Savings Plan plan-1 account 444455556666 $20 $6 70.0% 65.0% $3 1 Feb 2027 184 days after 31 Jul 2026"
        in part(page, "commitments")
    )
    rate = part(page, "rate")
    reason = "unused commitments cost more than the rates save; without $40.80 of use that has no public price"
    assert f"{reason} $100 $8 −$3 −3.0%" in rate
    assert "Savings Plans and reservations $8 Reserved capacity and Capacity Blocks $5" in rate
    places = part(page, "scopes")
    # 22 of 66 + 21.50; the Compute plan alone 22 of 66, with what others cover 22 of 100.
    assert "444455556666, us-west-2 $88 25.1% 33.3% 0.0% $65" in places
    assert "777788889999, us-west-2 $13 100.0% $0" in places
    assert "Compute Savings Plan $22 of $66 33.3% 22.0%" in places
    assert "plan-1 $900 $270 $630 $400 1 Feb 2027" in part(page, "next")


def test_a_recommendation_comes_with_its_back_test(tmp_path: Path) -> None:
    offer = advised(
        "compute_savings_plan",
        commitment_per_hour_usd=4.5,
        simulated_savings_usd=1200.0,
        simulated_utilization_ratio=0.97,
        worst_week_savings_usd=-12.0,
        back_test_savings_usd=300.0,
        back_test_regret_usd=25.0,
        advice="commit",
        advice_reason="19 of 20 histories would have paid",
    )
    text = words(page_of(tmp_path, example() | {"mart_commitment_recommendation": [offer]}))
    assert "Should we buy more? $4.50 an hour Compute Savings Plan, 1yr No Upfront, 13 weeks of history" in text
    assert "it would have saved $1,200, used 97.0%" in text
    assert "$4.50 $1,200 97.0% −$12 $300 $25" in text

    # Of two payers the first is named, and that the other has an offer too; the newest use is of either.
    marts = example() | {"mart_commitment_recommendation": [offer, offer | {"payer_account_id": "999911112222"}]}
    (first,) = marts["mart_invoice_reconciliation_monthly"]
    later = {"payer_account_id": "999911112222", "newest_usage_at": datetime(2026, 7, 30, 4)}
    marts["mart_invoice_reconciliation_monthly"] = [first, first | later]
    text = words(page_of(tmp_path, marts))
    assert f"13 weeks of history, payer {offer['payer_account_id']}" in text
    assert "There are offers to commit to for payer 999911112222 too." in text
    assert "newest use billed 30 July 2026" in text


def test_each_offer_that_is_undecided_has_its_own_reason(tmp_path: Path) -> None:
    unrated = {"purchase_term": "", "payment_option": "", "advice": "undecided", "advice_reason": "no rate is known"}
    offers = [advised("compute_savings_plan"), advised("reserved_instance", **unrated)]
    offers.append(advised("ec2_instance_savings_plan", **unrated))
    text = words(page_of(tmp_path, example() | {"mart_commitment_recommendation": offers}))
    nothing = "Compute Savings Plan 1yr No Upfront: what comes now and then is no baseline."
    assert "Should we buy more? Undecided 3 offers examined, up to 13 weeks of history" in text
    assert nothing in text
    assert re.search(r"(Reserved Instance, EC2 Instance Savings Plan|EC2 .* Plan, Reserved Instance): no rate is", text)


def test_the_map_has_a_cell_for_each_hour_with_use(page: str) -> None:
    svg = re.findall(r"<svg .*?</svg>", page, re.DOTALL)[0]
    cells = re.findall(
        r'<path d="[^"]+" (fill="var\(--used\)" opacity="[^"]+"|[^>]*stroke="var\(--unused\)"[^>]*)/>', svg
    )
    # 22 of 66 is a third; nothing at 11:00 is a frame; all of the second day.
    assert cells[:2] == ['fill="var(--used)" opacity="0.4"', 'fill="var(--used)" opacity="1"']
    assert [cell for cell in cells if "fill-opacity" in cell] == cells[2:3]
    assert [class_of(Decimal(ratio)) for ratio in ("0", "0.25", "0.333333", "0.75", "0.99", "0.9995", "1")] == [
        0,
        1,
        2,
        3,
        4,
        5,
        5,
    ]


@pytest.mark.parametrize(
    ("changed", "sentences"),
    [
        pytest.param(
            {
                "mart_commitment_utilization_monthly": [],
                "detail_commitment_family_monthly": [],
                "detail_commitment_use_daily": [by_account("gpu", "44", covered="0", on_demand="43")],
                "mart_commitment_coverage_daily": [],
            },
            ["No commitment is on the bill of July 2026: $44 of use that one could cover", "None bought"],
            id="no commitments",
        ),
        pytest.param(
            {"detail_commitment_use_daily": [], "mart_commitment_coverage_daily": []},
            ["Nothing on the bill of July 2026 could be covered by a commitment, yet $8 of commitments went unused."],
            id="nothing eligible",
        ),
        pytest.param({"mart_run_cost": []}, ["No training run is joined to the bill"], id="no runs"),
        # One in each of two currencies ran in July, another ended before, and prod is no run.
        pytest.param(
            {
                "mart_run_cost": [],
                "detail_provisional_run": [
                    tagged("a", 3, 5),
                    tagged("a", 3, 5, billing_currency="CNY"),
                    tagged("b", 1, 31),
                    tagged("c", -2, -1),
                    tagged("prod", 1, 31, is_probably_run=False),
                ],
            },
            ["No recorded run is joined to the bill; tags name 2 provisional runs: GPU and Trainium are"],
            id="provisional runs",
        ),
        pytest.param(
            {mart: [] for mart in example()},
            [
                "July 2026 is unknown: this publication has no bill of it.",
                "The bill of July 2026 has no invoice in this publication",
            ],
            id="no bill",
        ),
        pytest.param(
            {"mart_invoice_reconciliation_monthly": [invoice(JULY, "1", "90", "80", "unreconciled")]},
            ["The bill of payer 111122223333 and the ledger differ by $10.00: do not rely"],
            id="unreconciled",
        ),
    ],
)
def test_what_is_absent_is_stated_on_page_one(tmp_path: Path, changed: Marts, sentences: list[str]) -> None:
    page = page_of(tmp_path, example() | changed)
    header = words(page[: page.index('<section id="hours">')])
    for sentence in sentences:
        assert sentence in header
    assert pdf_of_page(page, 1, PUBLISHED)[0].startswith(b"%PDF-")


def test_a_publication_without_the_marts_states_it(tmp_path: Path) -> None:
    text = words(page_of(tmp_path, {}))
    assert "This publication has no detail_billing_month, detail_commitment_reconciliation, " in text


def test_coverage_with_a_line_without_a_public_price_is_unknown(tmp_path: Path) -> None:
    """One of four lines has no list price: neither the whole nor its family has a coverage, and the others do."""
    marts = example()
    marts["detail_commitment_use_daily"][2]["unpriced_line_count"] = 1
    text = words(page_of(tmp_path, marts)).replace("\u00a0", " ")
    assert "What share of use commitments covered is unknown because of 1 bill line without a public price;" in text
    assert "GPU 33.3%; Trainium n/a ; Everything else 100.0%." in text


def test_use_without_a_public_price_is_not_nothing(tmp_path: Path) -> None:
    """A bill in yen names prices in dollars: 43 of use that a commitment could cover have no list price."""
    use = by_account("gpu", "0", covered="0", on_demand="43") | {"unpriced_line_count": 2}
    absent = (
        "mart_commitment_utilization_monthly",
        "detail_commitment_family_monthly",
        "mart_commitment_coverage_daily",
    )
    absent += ("mart_commitment_recommendation", "detail_commitment_use_hourly")
    marts = example() | {"detail_commitment_use_daily": [use]} | {mart: [] for mart in absent}
    text = words(page_of(tmp_path, marts))
    assert "2026: what use one could cover is unknown because of 2 bill lines without a public price." in text
    assert "What ran on demand has no public price on the bill." in text
    assert "No hour of July 2026 had use with a public price that a commitment could cover." in text
    assert "$0 of use" not in text and "GPU n/a $0 n/a $43" in text


def test_another_currency_is_never_added(tmp_path: Path) -> None:
    marts = example()
    marts["detail_commitment_use_daily"].append(
        by_account("gpu", "7", covered="0", on_demand="7", billing_currency="EUR")
    )
    marts["mart_cost_ledger_daily"].append(charge(JULY, "run", "7", billing_currency="EUR"))
    text = words(page_of(tmp_path, marts)).replace("\u00a0", " ")
    assert "Commitments covered 34.5% of the $100" in text
    assert "No commitment is on the bill of July 2026 in EUR: EUR 7 of use" in text


def test_the_page_makes_no_request_and_is_the_same_twice(page: str, tmp_path: Path) -> None:
    assert page == rendered_anew(tmp_path, example(), PUBLISHED, "commitments")
    outside = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert not re.search(r"https?://|@import|<link|<script|\bsrc=|url\((?!#)", outside)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_paper_has_one_sheet_and_every_figure_of_the_page(page: str) -> None:
    def figures(document: str) -> list[str]:
        return sorted(re.findall(r"[−$]?[\d.,]*\d%?", document))

    body = page[page.index("<body>") :]
    paper = [text for kind in ("heading", "par", "list", "table") for text in printed(page, kind)]
    assert figures(" ".join(paper)) == figures(words(body))
    assert len(pdf_of_page(page, 1, PUBLISHED, "png")) == 1
    assert pdf_of_page(page, 1, PUBLISHED) == pdf_of_page(page, 1, PUBLISHED)


def test_a_hostile_name_is_text_on_the_page_and_on_paper(tmp_path: Path) -> None:
    """HTML, a formula, and typst's markup and code: paper that ran it would not be laid out."""
    name = "<script>alert(1)</script>=1+1 #panic() $x$ *b* _u_ \v\f"
    marts = example()
    marts["mart_commitment_utilization_monthly"][0]["commitment_id"] = name
    page = page_of(tmp_path, marts)
    assert "<script" not in page
    (shown,) = [row[0] for row in printed_rows(page) if "panic" in row[0]]
    # What follows the last slash is the name of a commitment.
    assert "script>=1+1 #panic() $x$ *b* _u_" in shown
    assert pdf_of_page(page, 1, PUBLISHED)[0].startswith(b"%PDF-")
