-- One row per bill line of a delivered month, whichever export it came in, with its cost on the three bases.
-- partition: billing_period
-- stored: no
select
    source_name, delivery_id, source_file, source_row, billing_period, billing_month, payer_account_id,
    account_id, invoice_id, billing_entity, invoice_issuer, billing_currency, charge_type, is_known_charge_type, charge_category,
    effective_rule, line_class, charge_description, service, usage_type, region_id, resource_id, instance_type, accelerator_family,
    accelerator_count, market, capacity_reservation_id, usage_started_at, usage_ended_at, usage_date,
    usage_quantity, normalized_units, commitment_discount_id, commitment_eligibility, million_tokens, is_shared_usage, list_cost_usd, amortised_cost_usd, effective_cost_usd, billed_cost_usd, tag_run_id, tag_owner, tag_team
from stg_aws__cur_line_item

union all

select
    source_name, delivery_id, source_file, source_row, billing_period, billing_month, payer_account_id,
    account_id, invoice_id, billing_entity, invoice_issuer, billing_currency, charge_type, is_known_charge_type, charge_category,
    effective_rule, line_class, charge_description, service, usage_type, region_id, resource_id, instance_type, accelerator_family,
    accelerator_count, market, capacity_reservation_id, usage_started_at, usage_ended_at, usage_date,
    usage_quantity, normalized_units, commitment_discount_id, commitment_eligibility, million_tokens, is_shared_usage, list_cost_usd, amortised_cost_usd, effective_cost_usd, billed_cost_usd, tag_run_id, tag_owner, tag_team
from stg_aws__focus_line_item
