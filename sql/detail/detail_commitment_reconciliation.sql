-- One row per commitment that the bill or AWS's own answer tells of: what each says, and how they differ.
select
    payer_account_id, billing_currency, commitment_discount_id as commitment_id, commitment_kind, state, bill_per_hour_usd,
    told_per_hour_usd, difference_usd, bill_ended_at, told_ended_at, told_status
from fct_commitment_told
