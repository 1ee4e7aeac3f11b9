"""Terms of contracts in the configuration that hold too little, or contradict themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.base.errors import UsageError
from pipelines.config.settings import load_settings

PERIOD = '[[terms.agreements.periods]]\nfirst_month = "2026-01"\nlast_month = "2026-12"\ncommitment_usd = "1000.00"\n'
AGREEMENT = '[[terms.agreements]]\nname = "edp"\n'
POOL = (
    '[[terms.credits]]\nname = "map"\nmatches = "MAP"\nissued_usd = 500\nissued_on = 2026-01-15\n'
    "expires_on = 2026-12-31\n"
)
MORE = '[[terms.agreements.periods]]\nfirst_month = "2026-12"\nlast_month = "2027-11"\ncommitment_usd = 5\n'
FIRST = "[[terms.agreements]] edp"
RATES = (
    '[[terms.rates]]\ncommitment_kind = "compute_savings_plan"\npurchase_term = "1yr"\n'
    'payment_option = "No Upfront"\npaid_ratio = {"p5.48xlarge" = 0.6}\nsource = "quote"\nas_of = 2026-11-01\n'
)


@pytest.mark.parametrize(
    ("terms", "error"),
    [
        (AGREEMENT, f"{FIRST}: key 'periods': it is missing; add it."),
        (
            AGREEMENT + PERIOD.replace('"1000.00"', '"-5"'),
            "[[terms.agreements.periods]] number 1: key 'commitment_usd': write a number",
        ),
        (
            AGREEMENT + PERIOD.replace('"1000.00"', '"NaN"'),
            f"{FIRST}, [[terms.agreements.periods]] number 1: key 'commitment_usd': write a ",
        ),
        (AGREEMENT + PERIOD.replace("2026-01", "January"), "first_month': write a month such as 2026-07."),
        (
            AGREEMENT + PERIOD.replace("2026-12", "2025-12"),
            "first_month 2026-01 is after last_month 2025-12; swap them.",
        ),
        (AGREEMENT + PERIOD + MORE, "the period from 2026-12 begins before 2026-12 has ended."),
        (
            AGREEMENT + 'shortfall = "forgiven"\n' + PERIOD,
            f"{FIRST}: key 'shortfall': write 'paid', 'carried'",
        ),
        (
            AGREEMENT + 'payer_account_ids = ["12"]\n' + PERIOD,
            "payer_account_ids.0': write an account id of twelve digits.",
        ),
        (AGREEMENT + 'currency = "dollars"\n' + PERIOD, "currency': write a currency as the bill does, such as USD."),
        (
            AGREEMENT + 'eligible_services = ["AmazonEC2"]\nexcluded_services = ["AmazonS3"]\n' + PERIOD,
            "name eligible_services or excluded_services, not both.",
        ),
        (
            AGREEMENT + 'discount = "0.1"\n' + PERIOD,
            f"{FIRST}: unknown key 'discount'; remove it or check its spelling.",
        ),
        (AGREEMENT + PERIOD + AGREEMENT + PERIOD, "[[terms.agreements]] contain edp twice; remove one."),
        (
            RATES + RATES,
            "[[terms.rates]] contain compute_savings_plan, 1yr, No Upfront, p5.48xlarge twice; remove one.",
        ),
        (
            RATES.replace("0.6", "60"),
            "number 1: key 'paid_ratio.p5.48xlarge': write a number less than 1.",
        ),
        (RATES.replace("1yr", "2yr"), "[[terms.rates]] number 1: key 'purchase_term': write '1yr' or '3yr'."),
        (POOL + POOL, "[[terms.credits]] contain map twice; remove one."),
        (POOL.replace("2026-12-31", "2026-01-15"), "expires_on 2026-01-15 is not after issued_on 2026-01-15."),
        (POOL.replace('matches = "MAP"\n', ""), "[[terms.credits]] map: key 'matches': it is missing; add it."),
        (
            POOL.replace("500", '"12.345"'),
            "[[terms.credits]] map: key 'issued_usd': write no more than 2 decimal places.",
        ),
    ],
)
def test_terms_that_are_none(tmp_path: Path, terms: str, error: str) -> None:
    config = tmp_path / "trainledger.toml"
    config.write_text(terms)
    with pytest.raises(UsageError) as refusal:
        load_settings(config)
    message = str(refusal.value)
    assert message.startswith(str(config)) and error in message


def test_a_period_ends_with_its_last_month(tmp_path: Path) -> None:
    config = tmp_path / "trainledger.toml"
    config.write_text(AGREEMENT + PERIOD.replace("2026-12", "2028-02") + POOL)
    terms = load_settings(config).terms
    assert str(terms.agreements[0].periods[0].ended_on) == "2028-02-29"
    assert terms.credits[0].issued_usd == 500
