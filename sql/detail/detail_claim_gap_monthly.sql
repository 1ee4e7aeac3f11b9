-- One row per month, resource and run that claims time on it the bill does not have; and per month and resource of billed time no run claims.
select gap.billing_period, gap.gap_kind, gap.resource_id, gap.run_id, gap.instance_type, gap.accelerator_family, gap.billing_currency,
    run.team, run.owner, gap.gap_hours, gap.cost_at_stake_usd
from fct_claim_gap_monthly as gap
left join fct_run as run on run.run_id = gap.run_id
