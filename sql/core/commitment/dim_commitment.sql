-- One row per payer, currency and commitment that its fees on any bill tell of: its kind, terms and dates, as far as they say.
-- What the bill leaves open, AWS's own answer tells where there is one.
with fee as (
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
)

select
    fee.payer_account_id, fee.billing_currency, fee.commitment_discount_id, fee.commitment_kind, fee.account_id,
    coalesce(fee.payment_option, told.payment_option) as payment_option,
    coalesce(fee.purchase_term, told.purchase_term) as purchase_term,
    coalesce(fee.region_id, told.region_id) as region_id,
    coalesce(fee.instance_family, told.instance_family) as instance_family,
    coalesce(fee.started_at, told.started_at) as started_at,
    coalesce(fee.ended_at, told.ended_at) as ended_at,
    fee.first_fee_at, fee.last_fee_at
from fee
left join stg_aws__commitment as told on told.commitment_key = commitment_key(fee.commitment_discount_id)
