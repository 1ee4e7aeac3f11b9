-- One row per commitment that GPUs use: what a move away from GPUs would leave unused of it until it ends.
select
    payer_account_id, billing_currency, commitment_discount_id as commitment_id, commitment_kind, ended_at, days_to_expiry, basis_day_count,
    committed_to_expiry_usd, unused_to_expiry_usd, stranded_cost_usd, stranded_after_other_usage_usd,
    case when ended_at is null then 'no bill says when it ends' when days_to_expiry = 0 then 'it has ended' end as missing_evidence
from fct_commitment_stranding
