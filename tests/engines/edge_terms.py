"""Terms about the made-up month: agreements on every basis, pools with and without a match, rates of a kind of plan."""

from __future__ import annotations

TERMS = """
[[terms.agreements]]
name = "it's one"
credits = "after"
marketplace = true
shortfall = "carried"
excluded_services = ["AmazonS3", "someone's"]
periods = [
    {first_month = "2026-06", last_month = "2026-06", commitment_usd = "1.01"},
    {first_month = "2026-07", last_month = "2027-03", commitment_usd = "12345.67"},
]

[[terms.agreements]]
name = "other"
counts = "effective"
payer_account_ids = ["000011112222", "999999999999"]
eligible_services = ["AmazonEC2"]
periods = [{first_month = "2026-07", last_month = "2026-12", commitment_usd = 3}]

[[terms.credits]]
name = "all of them"
matches = "e"
issued_usd = "0.03"
issued_on = 2026-07-03
expires_on = 2026-07-30

[[terms.credits]]
name = "unused"
matches = "100% of nothing_"
payer_account_ids = ["000011112222"]
issued_usd = "777.77"
issued_on = 2026-06-30

[[terms.rates]]
commitment_kind = "compute_savings_plan"
purchase_term = "3yr"
payment_option = "All Upfront"
paid_ratio = {"p5.48xlarge" = 0.4567891, "trn1.32xlarge" = 0.5}
source = "edge"
as_of = 2026-07-01
"""
