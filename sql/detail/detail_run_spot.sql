-- One row per run with hours on Spot and currency: what Spot saved on them, what interruptions took back, and what remained.
with spot as (
    select
        run_id, billing_currency,
        sum(effective_cost_usd) as spot_cost_usd,
        -- Only where AWS gives a public price (facts aws-billing 3.4).
        sum(case when list_cost_usd is not null then effective_cost_usd else 0 end) as priced_cost_usd,
        sum(list_cost_usd) as list_cost_usd
    from fct_ledger_piece
    where piece_kind = 'instance_hour' and market = 'spot' and run_id is not null
    group by run_id, billing_currency
),

interrupted as (
    select run_id, cast(count(*) as bigint) as spot_interruption_count
    from stg_tracker__attempt
    where end_reason like '%spot%'
    group by run_id
),

measured as (
    select
        spot.run_id, spot.billing_currency, run.accelerator_family, run.instance_type, run.team, run.owner,
        spot.spot_cost_usd,
        spot.spot_cost_usd - spot.priced_cost_usd as unpriced_cost_usd,
        spot.list_cost_usd,
        spot.list_cost_usd - spot.priced_cost_usd as spot_savings_usd,
        coalesce(interrupted.spot_interruption_count, 0) as spot_interruption_count,
        -- A run without a Spot interruption lost nothing to one.
        case when interrupted.run_id is null then 0 else run.lost_work_cost_usd + run.replay_cost_usd + run.restart_cost_usd end
            as spot_interruption_cost_usd
    from spot
    join fct_run as run on run.run_id = spot.run_id and run.billing_currency = spot.billing_currency
    left join interrupted on interrupted.run_id = spot.run_id
)

select
    run_id, billing_currency, accelerator_family, instance_type, team, owner, spot_cost_usd, unpriced_cost_usd, list_cost_usd,
    spot_savings_usd, spot_interruption_count, spot_interruption_cost_usd, spot_savings_usd - spot_interruption_cost_usd as net_spot_savings_usd
from measured
