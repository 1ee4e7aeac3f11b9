-- One row per set of attributes that charges of a delivered FOCUS export are told by.
-- partition: billing_period
-- Numbered below zero: above it are those of a cost and usage report (stg_aws__cur_line_kind).
with line as (
    select distinct
        billing_period, billing_month, payer_account_id, invoice_id, billing_entity, invoice_issuer, billing_currency,
        charge_category, charge_type, is_known_charge_type, effective_rule, service, region_id, accelerator_family, market,
        kept_description(effective_rule, charge_description) as kept_description,
        commitment_eligibility
    from stg_aws__focus_line_item
)

select
    billing_period, billing_month, payer_account_id, invoice_id, billing_entity, invoice_issuer, billing_currency,
    charge_category, charge_type, is_known_charge_type, effective_rule, service, region_id, accelerator_family, market,
    kept_description, commitment_eligibility,
    -row_number() over (order by payer_account_id, billing_month, invoice_id, billing_entity, invoice_issuer, billing_currency,
        charge_category, charge_type, is_known_charge_type, effective_rule, service, region_id, accelerator_family, market,
        kept_description, commitment_eligibility) as charge_kind_no
from line
