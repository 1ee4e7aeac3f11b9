-- One row per pod (or task), machine and hour: AWS's split of the machine's cost, and the machine's whole cost.
-- partition: billing_period
-- These rows repeat part of the cost of the machine they ran on (facts aws-billing 4.4); no total may add them to it.
-- The lines of a machine are summed before they meet its pods, so nothing fans out. A pod or machine without a name is
-- ''. A cost is null where AWS gives none.
with payer as (
    select payer_account_id, billing_month, sum(net_value_count) > 0 as has_net_costs
    from stg_aws__invoice_total
    group by payer_account_id, billing_month
),

-- One resource (accelerator, vCPU or memory) that a pod held for an hour.
line as (
    select
        line.billing_period,
        billing_month_of(line.bill_billing_period_start_date, line.billing_period) as billing_month,
        line.bill_payer_account_id as payer_account_id, line.line_item_usage_account_id as account_id,
        line.line_item_currency_code as billing_currency, coalesce(line.line_item_resource_id, '') as pod_id,
        coalesce(line.split_line_item_parent_resource_id, '') as resource_id,
        line.line_item_usage_start_date as hour_started_at,
        case
            when line.line_item_usage_type like '%Accelerator-Hours' then 'accelerator'
            when line.line_item_usage_type like '%vCPU-Hours' then 'vcpu'
            when line.line_item_usage_type like '%GB-Hours' then 'memory'
            else 'other'
        end as split_kind,
        line.split_line_item_split_usage as split_quantity, line.split_line_item_split_usage_ratio as split_ratio,
        cast(coalesce(case when payer.has_net_costs then line.split_line_item_net_split_cost end,
            line.split_line_item_split_cost) as decimal(20, 10)) as split_cost_usd,
        cast(coalesce(case when payer.has_net_costs then line.split_line_item_net_unused_cost end,
            line.split_line_item_unused_cost) as decimal(20, 10)) as split_unused_cost_usd,
        cast(case when line.pricing_currency <> line.line_item_currency_code then null
            else line.split_line_item_public_on_demand_split_cost
                + coalesce(line.split_line_item_public_on_demand_unused_cost, 0) end as decimal(20, 10))
                as split_list_cost_usd,
        line.tag_run_id, line.tag_owner, line.tag_team
    from aws_cur_line_item as line
    left join payer
        on payer.payer_account_id = line.bill_payer_account_id
        and payer.billing_month = billing_month_of(line.bill_billing_period_start_date, line.billing_period)
    where line.line_item_operation in ('EKSPod-EC2', 'ECSTask-EC2')
),

pod_hour as (
    select
        billing_period, billing_month, payer_account_id, account_id, billing_currency, pod_id, resource_id,
        hour_started_at,
        case when pod_id like '%:pod/%' then split_part(pod_id, '/', 2) end as cluster_name,
        case when pod_id like '%:pod/%' then split_part(pod_id, '/', 3) end as namespace_name,
        max(tag_run_id) as tag_run_id, max(tag_owner) as tag_owner, max(tag_team) as tag_team,
        sum(case when split_kind = 'accelerator' then split_quantity else 0 end) as accelerator_hours,
        case when count(*) filter (where split_kind = 'accelerator') = 0 then 0
            else max(case when split_kind = 'accelerator' then split_ratio end) end as accelerator_share_ratio,
        known_sum(case when split_kind = 'accelerator' then split_cost_usd else 0 end) as accelerator_split_cost_usd,
        known_sum(case when split_kind = 'vcpu' then split_cost_usd else 0 end) as vcpu_split_cost_usd,
        known_sum(case when split_kind = 'memory' then split_cost_usd else 0 end) as memory_split_cost_usd,
        count(*) filter (where split_kind = 'other') as unknown_kind_line_count,
        known_sum(split_unused_cost_usd) as split_unused_cost_usd,
        known_sum(split_cost_usd + split_unused_cost_usd) as split_effective_cost_usd,
        known_sum(split_list_cost_usd) as split_list_cost_usd
    from line
    group by all
),

machine_hour as (
    select
        line.resource_id, line.usage_started_at as hour_started_at, line.billing_currency,
        max(line.instance_type) as instance_type, max(line.accelerator_family) as accelerator_family,
        max(line.accelerator_count) as accelerator_count,
        known_sum(line.effective_cost_usd) as machine_effective_cost_usd
    from stg_aws__line_item as line
    join (select distinct resource_id from pod_hour) as machine on machine.resource_id = line.resource_id
    where line.line_class = 'instance'
    group by line.resource_id, line.usage_started_at, line.billing_currency
)

select
    pod.billing_period, pod.billing_month, pod.payer_account_id, pod.account_id, pod.billing_currency, pod.pod_id,
    pod.cluster_name, pod.namespace_name, pod.resource_id, pod.hour_started_at,
    machine.instance_type, coalesce(machine.accelerator_family, 'none') as accelerator_family,
    pod.tag_run_id, pod.tag_owner, pod.tag_team, pod.accelerator_hours,
    pod.accelerator_split_cost_usd, pod.vcpu_split_cost_usd, pod.memory_split_cost_usd,
    pod.split_unused_cost_usd, pod.split_effective_cost_usd, pod.split_list_cost_usd, pod.unknown_kind_line_count,
    machine.machine_effective_cost_usd,
    ratio(9 * machine.accelerator_count, case when machine.accelerator_count > 0
        then 9 * machine.accelerator_count + 0.9 * size.vcpu_count + 0.1 * size.memory_gib end)
        as accelerator_weight_ratio,
    -- A chip is bought with its machine: here its accelerators carry the whole of it, as comparisons of silicon do.
    case when machine.accelerator_count > 0
        then apportioned_usd(machine.machine_effective_cost_usd, pod.accelerator_share_ratio, 1)
        else pod.split_effective_cost_usd end as whole_machine_effective_cost_usd
from pod_hour as pod
left join machine_hour as machine
    on machine.resource_id = pod.resource_id and machine.hour_started_at = pod.hour_started_at
    and machine.billing_currency = pod.billing_currency
left join ref_instance_type as size on size.instance_type = machine.instance_type
