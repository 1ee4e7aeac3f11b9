-- One row per set of attributes that distinguish charges of a source in a delivered month, whichever export they came in.
-- partition: billing_period, source_name
select distinct
    source_name, charge_kind_id, billing_period, billing_month, bill_payer_account_id as payer_account_id, invoice_id,
    coalesce(bill_billing_entity, '') as billing_entity, coalesce(bill_invoicing_entity, '') as invoice_issuer,
    billing_currency, charge_category, line_item_line_item_type as charge_type, is_known_charge_type,
    effective_rule, coalesce(line_item_product_code, '') as service, region_id, accelerator_family, market, kept_description,
    commitment_eligibility, bedrock_meter_id
from stg_aws__cur_line_kind

union all

select distinct
    source_name, focus_charge_kind_id(line) as charge_kind_id, billing_period, billing_month, payer_account_id, invoice_id,
    billing_entity, invoice_issuer, billing_currency, charge_category, charge_type, is_known_charge_type,
    effective_rule, service, region_id,
    accelerator_family, market, kept_description(effective_rule, charge_description) as kept_description,
    commitment_eligibility, bedrock_meter_id
from stg_aws__focus_line_item as line
