-- One row per bill line of a delivered month, whichever export it came in, with its cost on the three bases.
-- partition: billing_period
-- stored: no
-- What a line of a cost and usage report bills stands with its kind; here is what only the line knows: who used when
-- how much, and what it cost. A line of a FOCUS export is classified in stg_aws__focus_line_item.
with classified as (
    select
        line.*, kind.billing_month, kind.invoice_id, kind.has_net_costs, kind.is_negation_complete,
        kind.is_unused_scaled, kind.is_known_charge_type, kind.effective_rule, kind.list_rule, kind.charge_category,
        kind.usage_kind, kind.line_class, kind.is_shared_usage, kind.instance_type,
        kind.accelerator_family, kind.accelerator_count, kind.region_id, kind.market,
        kind.capacity_reservation_id as line_capacity_reservation_id, kind.commitment_reservation_id,
        kind.commitment_eligibility, kind.charge_kind_id
    from aws_cur_line_item as line
    join stg_aws__cur_line_kind as kind on cur_is_of_kind(line, kind) and not kind.is_known_by_product

    union all

    -- Few kinds need the product's name, and the column that holds it is slow to read: it is read for these kinds only.
    select
        line.*, kind.billing_month, kind.invoice_id, kind.has_net_costs, kind.is_negation_complete,
        kind.is_unused_scaled, kind.is_known_charge_type, kind.effective_rule, kind.list_rule, kind.charge_category,
        kind.usage_kind, kind.line_class, kind.is_shared_usage, kind.instance_type,
        kind.accelerator_family, kind.accelerator_count, kind.region_id, kind.market,
        kind.capacity_reservation_id as line_capacity_reservation_id, kind.commitment_reservation_id,
        kind.commitment_eligibility, kind.charge_kind_id
    from aws_cur_line_item as line
    join stg_aws__cur_line_kind as kind
        on cur_is_of_kind(line, kind) and kind.is_known_by_product
        and kind.bedrock_product is not distinct from
            bedrock_product(line.line_item_product_code, line.bill_billing_entity, line.product_product_name)
        and kind.bedrock_unit is not distinct from bedrock_unit(line.line_item_product_code, line.bill_billing_entity,
            line.product_product_name, line.pricing_unit)
),

amortized as (
    select *, cur_amortized_cost(line, false) as amortized_cost
    from classified as line
),

costed as (
    select
        *, cur_list_cost(list_rule, line_class, market, pricing_currency, line_item_currency_code,
            pricing_public_on_demand_cost) as list_cost,
        cur_effective_cost(effective_rule, has_net_costs, amortized_cost, cur_amortized_cost(line, true))
            as effective_cost,
        cur_billed_cost(is_negation_complete, line_item_line_item_type, line_item_unblended_cost) as billed_cost
    from amortized as line
)

select
    source_name, delivery_id, source_file, source_row, billing_period, billing_month,
    bill_payer_account_id as payer_account_id, line_item_usage_account_id as account_id, invoice_id,
    coalesce(bill_billing_entity, '') as billing_entity, coalesce(bill_invoicing_entity, '') as invoice_issuer,
    line_item_currency_code as billing_currency,
    line_item_line_item_type as charge_type, is_known_charge_type, charge_category, effective_rule, line_class,
    line_item_line_item_description as charge_description,
    line_item_product_code as service, line_item_usage_type as usage_type, region_id,
    -- A HyperPod node is known to its runs by its instance id.
    coalesce(case when usage_kind in ('Cluster', 'ReservedCluster')
        then nullif(regexp_extract(line_item_resource_id, '(i-[0-9a-f]+)$', 1), '') end, line_item_resource_id)
        as resource_id,
    instance_type, accelerator_family, accelerator_count, market,
    coalesce(line_capacity_reservation_id, case when line_class in ('capacity_unused', 'capacity_marker', 'block_fee')
        then capacity_reservation_id(line_item_resource_id) end) as capacity_reservation_id,
    line_item_usage_start_date as usage_started_at, line_item_usage_end_date as usage_ended_at,
    cast(line_item_usage_start_date as date) as usage_date,
    coalesce(line_item_usage_amount, 0) as usage_quantity, line_item_normalized_usage_amount as normalized_units,
    coalesce(savings_plan_savings_plan_a_r_n, commitment_reservation_id) as commitment_discount_id,
    commitment_eligibility,
    coalesce(without_session(line_item_iam_principal), line_item_user_identifier) as iam_principal,
    is_shared_usage, charge_kind_id,
    cast(list_cost as decimal(20, 10)) as list_cost_usd,
    cast(covered_cost_usd(amortized_cost, amortized_cost, effective_rule, line_item_usage_amount) as decimal(20, 10))
        as amortized_cost_usd,
    cast(covered_cost_usd(effective_cost, amortized_cost, effective_rule, line_item_usage_amount) as decimal(20, 10))
        as effective_cost_usd,
    cast(billed_cost as decimal(20, 10)) as billed_cost_usd,
    tag_run_id, tag_owner, tag_team
from costed

union all

select
    source_name, delivery_id, source_file, source_row, billing_period, billing_month,
    payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer, billing_currency,
    charge_type, is_known_charge_type, charge_category, effective_rule, line_class, charge_description,
    service, usage_type, region_id, resource_id, instance_type, accelerator_family, accelerator_count, market,
    capacity_reservation_id, usage_started_at, usage_ended_at, usage_date, usage_quantity, normalized_units,
    commitment_discount_id, commitment_eligibility, null as iam_principal, is_shared_usage,
    focus_charge_kind_id(line) as charge_kind_id, list_cost_usd,
    covered_cost_usd(amortized_cost_usd, amortized_cost_usd, effective_rule, usage_quantity),
    covered_cost_usd(effective_cost_usd, amortized_cost_usd, effective_rule, usage_quantity), billed_cost_usd,
    tag_run_id, tag_owner, tag_team
from stg_aws__focus_line_item as line
