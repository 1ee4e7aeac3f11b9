-- One row per run with hours on Spot and currency: what Spot saved on them, what interruptions took back, and what remained.
select
    run_id, billing_currency, accelerator_family, instance_type, team, owner, spot_cost_usd, unpriced_cost_usd, list_cost_usd,
    spot_savings_usd, spot_interruption_count, spot_interruption_cost_usd, spot_savings_usd - spot_interruption_cost_usd as net_spot_savings_usd
from fct_run_spot
