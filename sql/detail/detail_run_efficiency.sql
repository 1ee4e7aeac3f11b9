-- One row per run: how much of its chips' peak it used, in training and of all it paid for, and what an effective exaflop cost.
select
    run.run_id, run.workload_id, run.billing_currency, run.accelerator_family, run.instance_type, run.status, run.team, run.owner,
    efficiency.precision, efficiency.params_active, efficiency.tokens_seen_count, efficiency.flops_per_token,
    efficiency.effective_exaflop_count, efficiency.model_flops_utilization_ratio, efficiency.billed_flops_utilization_ratio,
    efficiency.is_impossible,
    cost_per_effective_exaflop_usd(run.effective_cost_usd) as cost_per_effective_exaflop_usd,
    cost_per_effective_exaflop_usd(run.list_cost_usd) as list_cost_per_effective_exaflop_usd,
    cost_per_effective_exaflop_usd(run.billed_cost_usd) as billed_cost_per_effective_exaflop_usd,
    efficiency.missing_evidence
from fct_run as run
join fct_run_efficiency as efficiency on efficiency.run_id = run.run_id
group by all
