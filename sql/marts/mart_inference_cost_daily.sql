-- One row per day, payer, account, region, month, currency, model, platform, what is billed, tier, route, instance
-- type and team: what serving cost, idle included, and per million tokens.
with served as (
    select
        usage_date, payer_account_id, account_id, region_id, billing_month, billing_currency, model,
        'bedrock' as platform, billed_by, tier, route, cast(null as varchar) as instance_type, team,
        cast(null as bigint) as request_count,
        case when token_kind = 'input' then million_tokens when billed_by = 'tokens' then 0 end as input_millions,
        case when token_kind = 'cache_read' then million_tokens when billed_by = 'tokens' then 0 end
            as cache_read_millions,
        case when token_kind in ('cache_write_5m', 'cache_write_1h') then million_tokens
            when billed_by = 'tokens' then 0 end as cache_write_millions,
        case when token_kind = 'output' then million_tokens when billed_by = 'tokens' then 0 end as output_millions,
        idle_cost_usd, list_cost_usd, effective_cost_usd, billed_cost_usd
    from detail_bedrock_usage_daily
    where bucket = 'serving'
),

summed as (
    select
        usage_date, payer_account_id, account_id, region_id, billing_month, billing_currency, model, platform,
        billed_by, tier, route, instance_type, team,
        known_sum(request_count) as request_count,
        tokens_of_millions(known_sum(input_millions)) as input_tokens,
        tokens_of_millions(known_sum(cache_read_millions)) as cache_read_tokens,
        tokens_of_millions(known_sum(cache_write_millions)) as cache_write_tokens,
        tokens_of_millions(known_sum(output_millions)) as output_tokens,
        cast(null as decimal(38, 10)) as capacity_tokens,
        known_sum(idle_cost_usd) as idle_cost_usd,
        sum(effective_cost_usd) - known_sum(idle_cost_usd) as busy_cost_usd,
        known_sum(list_cost_usd) as list_cost_usd,
        sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd,
        case when billed_by = 'tokens' then 'bill' else 'none' end as token_evidence,
        'bill' as evidence,
        case
            when billed_by = 'unknown' then 'the usage type is not on our lists'
            when billed_by = 'capacity' and known_sum(idle_cost_usd) is null
                then 'traffic: without logs or metrics it is unknown how much was idle'
            when billed_by = 'active_capacity' then 'traffic: the bill counts no tokens of imported models'
            when billed_by = 'tokens'
                and known_sum(input_millions + cache_read_millions + cache_write_millions + output_millions) is null
                then 'the unit of some tokens is not on our lists'
        end as missing_evidence
    from served
    group by usage_date, payer_account_id, account_id, region_id, billing_month, billing_currency, model, platform,
        billed_by, tier, route, instance_type, team

    union all

    -- Servers of our own: what their machines cost, idle included.
    select
        cast(hour_started_at as date), payer_account_id, account_id, region_id, billing_month, billing_currency, model,
        platform, 'capacity', null, null, instance_type, team,
        sum(request_count), sum(input_tokens), sum(cache_read_tokens), case when count(output_tokens) > 0 then 0 end,
        sum(output_tokens), known_sum(case when up_seconds = 0 then 0 else capacity_tokens end),
        sum(idle_cost_usd), sum(busy_cost_usd), known_sum(list_cost_usd), sum(effective_cost_usd), sum(billed_cost_usd),
        case when count(output_tokens) > 0 then 'metrics' else 'none' end, max(evidence),
        case when sum(measured_seconds) < sum(up_seconds)
            then 'traffic: the time the servers were up is not all recorded, so tokens are too few'
            when count(capacity_tokens) = 0 then 'capacity: no hour is known in which a latency target held' end
    from detail_serving_capacity_hourly
    where effective_cost_usd is not null
    group by cast(hour_started_at as date), payer_account_id, account_id, region_id, billing_month, billing_currency,
        model, platform, instance_type, team
)

select
    usage_date, payer_account_id, account_id, region_id, billing_month, billing_currency, model, platform, billed_by,
    tier, route, instance_type, team, request_count, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens,
    capacity_tokens,
    ratio(served_tokens(input_tokens, cache_read_tokens, output_tokens), capacity_tokens) as utilization_ratio,
    idle_cost_usd, busy_cost_usd, list_cost_usd, effective_cost_usd, billed_cost_usd,
    cost_per_million_output_usd(effective_cost_usd) as cost_per_million_output_usd,
    cost_per_million_output_usd(list_cost_usd) as list_cost_per_million_output_usd,
    cost_per_million_output_usd(billed_cost_usd) as billed_cost_per_million_output_usd,
    cost_per_million_output_usd(busy_cost_usd) as busy_cost_per_million_output_usd,
    cost_per_million_total_usd(effective_cost_usd) as cost_per_million_total_usd,
    cost_per_million_total_usd(list_cost_usd) as list_cost_per_million_total_usd,
    cost_per_million_total_usd(billed_cost_usd) as billed_cost_per_million_total_usd,
    cost_per_million_total_usd(busy_cost_usd) as busy_cost_per_million_total_usd,
    token_evidence, evidence, missing_evidence
from summed
group by all
