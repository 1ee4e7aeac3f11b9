-- One row per payer, currency and commitment that its fees on any bill tell of: its kind, terms and dates, as far as they say.
select
    payer_account_id, billing_currency, commitment_discount_id, commitment_kind,
    max(account_id) as account_id,
    max(payment_option) as payment_option,
    max(purchase_term) as purchase_term,
    max(region_id) as region_id,
    max(instance_family) as instance_family,
    max(started_at) as started_at,
    max(ended_at) as ended_at,
    min(fee_started_at) as first_fee_at,
    max(fee_ended_at) as last_fee_at
from stg_aws__commitment_fee
group by payer_account_id, billing_currency, commitment_discount_id, commitment_kind
