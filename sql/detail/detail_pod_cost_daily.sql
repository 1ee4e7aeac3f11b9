-- One row per day × pod (or task) × machine it ran on: AWS's split of the machine's cost, and the pod's share of the
-- whole machine.
select
    cast(hour_started_at as date) as usage_date,
    payer_account_id, account_id, billing_currency,
    pod_id, cluster_name, namespace_name, resource_id, coalesce(instance_type, 'unknown') as instance_type, accelerator_family,
    max(tag_run_id) as tagged_run_id, max(tag_owner) as tagged_owner, max(tag_team) as tagged_team,
    sum(accelerator_hours) as accelerator_hours,
    known_sum(accelerator_split_cost_usd) as accelerator_split_cost_usd,
    known_sum(vcpu_split_cost_usd) as vcpu_split_cost_usd,
    known_sum(memory_split_cost_usd) as memory_split_cost_usd,
    known_sum(split_unused_cost_usd) as split_unused_cost_usd,
    known_sum(split_effective_cost_usd) as split_effective_cost_usd,
    known_sum(split_list_cost_usd) as split_list_cost_usd,
    max(accelerator_weight_ratio) as accelerator_weight_ratio,
    known_sum(whole_machine_effective_cost_usd) as whole_machine_effective_cost_usd
from stg_aws__pod_hourly
where '' not in (pod_id, resource_id)
group by all
