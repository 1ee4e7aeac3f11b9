-- One row per bill line of a delivered month, whichever export it came in, with its cost on the three bases.
-- partition: billing_period
-- stored: no
select
    source_name, delivery_id, source_file, source_row, billing_period, billing_month, payer_account_id,
    account_id, invoice_id, billing_entity, invoice_issuer, billing_currency, charge_type, is_known_charge_type, charge_category,
    effective_rule, line_class, charge_description, service, usage_type, region_id, resource_id, instance_type, accelerator_family,
    accelerator_count, market, capacity_reservation_id, usage_started_at, usage_ended_at, usage_date,
    usage_quantity, normalized_units, commitment_discount_id, commitment_eligibility, million_tokens, is_shared_usage, charge_kind_no,
    list_cost_usd, amortised_cost_usd, effective_cost_usd, billed_cost_usd, tag_run_id, tag_owner, tag_team
from stg_aws__cur_line_item

union all

select
    line.source_name, line.delivery_id, line.source_file, line.source_row, line.billing_period, line.billing_month, line.payer_account_id,
    line.account_id, line.invoice_id, line.billing_entity, line.invoice_issuer, line.billing_currency, line.charge_type,
    line.is_known_charge_type, line.charge_category, line.effective_rule, line.line_class, line.charge_description, line.service,
    line.usage_type, line.region_id, line.resource_id, line.instance_type, line.accelerator_family, line.accelerator_count, line.market,
    line.capacity_reservation_id, line.usage_started_at, line.usage_ended_at, line.usage_date, line.usage_quantity, line.normalized_units,
    line.commitment_discount_id, line.commitment_eligibility, line.million_tokens, line.is_shared_usage, kind.charge_kind_no,
    line.list_cost_usd, line.amortised_cost_usd, line.effective_cost_usd, line.billed_cost_usd, line.tag_run_id, line.tag_owner, line.tag_team
from stg_aws__focus_line_item as line
join stg_aws__focus_charge_kind as kind
    on kind.billing_period = line.billing_period
    and kind.billing_month is not distinct from line.billing_month
    and kind.payer_account_id is not distinct from line.payer_account_id
    and kind.invoice_id is not distinct from line.invoice_id
    and kind.billing_entity is not distinct from line.billing_entity
    and kind.invoice_issuer is not distinct from line.invoice_issuer
    and kind.billing_currency is not distinct from line.billing_currency
    and kind.charge_category is not distinct from line.charge_category
    and kind.charge_type is not distinct from line.charge_type
    and kind.is_known_charge_type is not distinct from line.is_known_charge_type
    and kind.effective_rule is not distinct from line.effective_rule
    and kind.service is not distinct from line.service
    and kind.region_id is not distinct from line.region_id
    and kind.accelerator_family is not distinct from line.accelerator_family
    and kind.market is not distinct from line.market
    and kind.commitment_eligibility is not distinct from line.commitment_eligibility
    and kind.kept_description is not distinct from kept_description(line.effective_rule, line.charge_description)
