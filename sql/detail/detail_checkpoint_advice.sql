-- One row per run: how far apart its checkpoints were, what that cost, and what the distances advised by the rules would.
select
    advice.run_id, run.workload_id, advice.billing_currency, run.accelerator_family, run.instance_type, run.status, run.team, run.owner,
    advice.save_count, advice.save_seconds, advice.restart_seconds,
    advice.interruption_count, advice.node_hours, advice.interruption_basis, advice.between_interruptions_seconds,
    advice.noticed_ratio, advice.cost_per_second_usd,
    advice.done_interval_seconds, advice.young_interval_seconds, advice.daly_interval_seconds,
    advice.availability_interval_seconds, advice.dollar_interval_seconds,
    advice.done_cost_usd, advice.done_expected_cost_usd, advice.young_expected_cost_usd, advice.daly_expected_cost_usd,
    advice.availability_expected_cost_usd, advice.dollar_expected_cost_usd,
    advice.missing_evidence
from fct_checkpoint_advice as advice
join fct_run as run on run.run_id = advice.run_id
