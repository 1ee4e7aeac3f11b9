-- One row per pod (or task), machine and hour: AWS's split of the machine's cost, and the machine's whole cost.
-- partition: billing_period
-- The lines of a machine are summed before they meet its pods, so nothing fans out.
with pod_hour as (
    select
        billing_period, billing_month, payer_account_id, account_id, billing_currency, pod_id, resource_id, hour_started_at,
        max(cluster_name) as cluster_name, max(namespace_name) as namespace_name,
        max(tag_run_id) as tag_run_id, max(tag_owner) as tag_owner, max(tag_team) as tag_team,
        sum(case when split_kind = 'accelerator' then split_quantity else 0 end) as accelerator_hours,
        max(case when split_kind = 'accelerator' then split_ratio end) as accelerator_share_ratio,
        sum(case when split_kind = 'accelerator' then split_cost_usd else 0 end) as accelerator_split_cost_usd,
        sum(case when split_kind = 'vcpu' then split_cost_usd else 0 end) as vcpu_split_cost_usd,
        sum(case when split_kind = 'memory' then split_cost_usd else 0 end) as memory_split_cost_usd,
        sum(split_unused_cost_usd) as split_unused_cost_usd,
        sum(split_cost_usd + split_unused_cost_usd) as split_effective_cost_usd,
        known_sum(split_list_cost_usd) as split_list_cost_usd
    from stg_aws__pod_line
    where resource_id is not null and pod_id is not null
    group by billing_period, billing_month, payer_account_id, account_id, billing_currency, pod_id, resource_id, hour_started_at
),

machine as (
    select distinct resource_id from stg_aws__pod_line where resource_id is not null
),

machine_hour as (
    select
        line.resource_id, line.usage_started_at as hour_started_at, line.billing_currency,
        max(line.instance_type) as instance_type, max(line.accelerator_family) as accelerator_family,
        max(line.accelerator_count) as accelerator_count,
        sum(line.usage_quantity) as machine_hours,
        sum(line.effective_cost_usd) as machine_effective_cost_usd
    from stg_aws__line_item as line
    join machine on machine.resource_id = line.resource_id
    where line.line_class = 'instance'
    group by line.resource_id, line.usage_started_at, line.billing_currency
)

select
    pod_hour.billing_period, pod_hour.billing_month, pod_hour.payer_account_id, pod_hour.account_id, pod_hour.billing_currency,
    pod_hour.pod_id,
    pod_hour.cluster_name, pod_hour.namespace_name,
    pod_hour.resource_id, pod_hour.hour_started_at,
    machine_hour.instance_type, coalesce(machine_hour.accelerator_family, 'none') as accelerator_family,
    pod_hour.tag_run_id, pod_hour.tag_owner, pod_hour.tag_team,
    pod_hour.accelerator_hours,
    pod_hour.accelerator_split_cost_usd, pod_hour.vcpu_split_cost_usd, pod_hour.memory_split_cost_usd,
    pod_hour.split_unused_cost_usd, pod_hour.split_effective_cost_usd, pod_hour.split_list_cost_usd,
    machine_hour.machine_effective_cost_usd,
    split_unit_usd(machine_hour.machine_effective_cost_usd, machine_hour.machine_hours, machine_hour.accelerator_count,
        size.vcpu_count, size.memory_gib) as split_unit_usd,
    ratio(9 * machine_hour.accelerator_count, case when machine_hour.accelerator_count > 0
        then 9 * machine_hour.accelerator_count + 0.9 * size.vcpu_count + 0.1 * size.memory_gib end) as accelerator_weight_ratio,
    -- A chip is bought with its machine: here its accelerators carry the whole of it, as comparisons of silicon do.
    case when machine_hour.accelerator_count > 0
        then apportioned_usd(machine_hour.machine_effective_cost_usd, coalesce(pod_hour.accelerator_share_ratio, 0), 1)
        else pod_hour.split_effective_cost_usd end as whole_machine_effective_cost_usd
from pod_hour
left join machine_hour
    on machine_hour.resource_id = pod_hour.resource_id and machine_hour.hour_started_at = pod_hour.hour_started_at
    and machine_hour.billing_currency = pod_hour.billing_currency
left join ref_instance_type as size on size.instance_type = machine_hour.instance_type
