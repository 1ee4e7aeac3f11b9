-- One row per split cost allocation row: one resource (accelerator, vCPU or memory) a pod or task held for an hour.
-- partition: billing_period
-- These rows repeat part of the cost of the machine they ran on (facts aws-billing 4.4); no total may add them to it.
with payer as (
    select payer_account_id, billing_month, sum(net_value_count) > 0 as has_net_costs
    from stg_aws__invoice_total
    group by payer_account_id, billing_month
),

line as (
    select
        *,
        cast(coalesce(bill_billing_period_start_date, cast(billing_period || '-01' as timestamp)) as date) as billing_month
    from aws_cur_line_item
    where line_item_operation in ('EKSPod-EC2', 'ECSTask-EC2')
)

select
    line.source_name, line.source_file, line.source_row, line.billing_period, line.billing_month,
    line.bill_payer_account_id as payer_account_id,
    line.line_item_usage_account_id as account_id,
    line.line_item_currency_code as billing_currency,
    line.line_item_resource_id as pod_id,
    case when line.line_item_resource_id like '%:pod/%' then split_part(line.line_item_resource_id, '/', 2) end as cluster_name,
    case when line.line_item_resource_id like '%:pod/%' then split_part(line.line_item_resource_id, '/', 3) end as namespace_name,
    line.split_line_item_parent_resource_id as resource_id,
    line.line_item_usage_start_date as hour_started_at,
    case
        when line.line_item_usage_type like '%Accelerator-Hours' then 'accelerator'
        when line.line_item_usage_type like '%vCPU-Hours' then 'vcpu'
        when line.line_item_usage_type like '%GB-Hours' then 'memory'
        else 'other'
    end as split_kind,
    line.split_line_item_split_usage as split_quantity,
    line.split_line_item_split_usage_ratio as split_ratio,
    cast(net_or_gross(payer.has_net_costs, line.split_line_item_net_split_cost, line.split_line_item_split_cost)
        as decimal(20, 10)) as split_cost_usd,
    cast(net_or_gross(payer.has_net_costs, line.split_line_item_net_unused_cost, line.split_line_item_unused_cost)
        as decimal(20, 10)) as split_unused_cost_usd,
    cast(case when line.pricing_currency <> line.line_item_currency_code then null
        else line.split_line_item_public_on_demand_split_cost + coalesce(line.split_line_item_public_on_demand_unused_cost, 0)
        end as decimal(20, 10)) as split_list_cost_usd,
    line.tag_run_id, line.tag_owner, line.tag_team
from line
left join payer on payer.payer_account_id = line.bill_payer_account_id and payer.billing_month = line.billing_month
