-- One row per month, resource and run that claims time on it the bill does not have; and per month and resource of billed time no run claims.
-- Accelerator-hours; machine-hours where there is no accelerator.
-- The month is that of the time: the bill of a later month may have it, or no bill yet.
with unclaimed as (
    select
        usage_month, 'billed_not_claimed' as gap_kind, resource_id, 'no run' as run_id, max(instance_type) as instance_type,
        max(accelerator_family) as accelerator_family, billing_currency,
        cast(sum(accelerator_hours) as double) as gap_hours, known_sum(effective_cost_usd) as cost_at_stake_usd
    from (select month_of(usage_date) as usage_month, * from fct_ledger)
    where piece_kind in ('instance_hour', 'block_hour')
        and (bucket in ('idle', 'unattributed') or evidence = 'tag_only') and accelerator_family <> 'none'
    group by usage_month, resource_id, billing_currency
)

select gap.billing_period, gap.gap_kind, gap.resource_id, gap.run_id, gap.instance_type, gap.accelerator_family, gap.billing_currency,
    run.team, run.owner, gap.gap_hours, gap.cost_at_stake_usd,
    count(*) over kind as kind_gap_count, sum(cast(gap.gap_hours as decimal(38, 10))) over kind as kind_gap_hours,
    sum(gap.cost_at_stake_usd) over kind as kind_cost_at_stake_usd
from (
    select billing_period, 'claimed_not_billed' as gap_kind, resource_id, run_id, instance_type, accelerator_family, billing_currency,
        gap_hours, cost_at_stake_usd
    from fct_unbilled_claim_monthly

    union all

    select * from unclaimed
) as gap
left join dim_run as run on run.run_id = gap.run_id
window kind as (partition by gap.billing_period, gap.gap_kind, gap.billing_currency)
