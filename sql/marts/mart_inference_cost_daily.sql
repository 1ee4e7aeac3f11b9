-- One row per day, payer, account, region, month, currency, model, platform, what is billed, tier, route, instance
-- type and team: what serving cost, idle included, and per million tokens.
with called as (
    select
        account_id, region_id, resource_id, cast(started_at as date) as usage_date, count(caller) > 0 as is_logged,
        sum(request_count) as request_count, sum(input_tokens) as input_tokens,
        sum(cache_read_tokens) as cache_read_tokens, sum(cache_write_tokens) as cache_write_tokens,
        sum(output_tokens) as output_tokens
    from stg_serving__traffic
    where server_id is null and resource_id is not null
    group by account_id, region_id, resource_id, cast(started_at as date)
),

-- The bill counts no tokens of Provisioned Throughput. Its calls are known on days of which all idle time is.
billed as (
    select
        *, token_kind = 'model_unit' and idle_cost_usd is not null as is_called,
        row_number() over (partition by usage_date, account_id, region_id, inference_profile_id
            order by effective_cost_usd desc, bedrock_meter_id, iam_principal, team, payer_account_id, billing_month,
                bucket) as row_of_resource
    from detail_bedrock_usage_daily
    where bucket = 'serving'
),

served as (
    select
        billed.usage_date, payer_account_id, billed.account_id, billed.region_id, billing_month, billing_currency,
        model, 'bedrock' as platform, billed_by, tier, route, cast(null as varchar) as instance_type, team,
        case when is_called then coalesce(called.request_count, 0) end as request_count, called.is_logged,
        case when token_kind = 'input' then million_tokens when billed_by = 'tokens' then 0
            when is_called then millions_of_tokens(coalesce(called.input_tokens, 0)) end as input_millions,
        case when token_kind = 'cache_read' then million_tokens when billed_by = 'tokens' then 0
            when is_called then millions_of_tokens(coalesce(called.cache_read_tokens, 0)) end as cache_read_millions,
        case when token_kind in ('cache_write_5m', 'cache_write_1h') then million_tokens when billed_by = 'tokens' then 0
            when is_called then millions_of_tokens(coalesce(called.cache_write_tokens, 0)) end as cache_write_millions,
        case when token_kind = 'output' then million_tokens when billed_by = 'tokens' then 0
            when is_called then millions_of_tokens(coalesce(called.output_tokens, 0)) end as output_millions,
        idle_cost_usd, list_cost_usd, effective_cost_usd, billed_cost_usd,
        billed_by <> 'tokens' or million_tokens is null or million_tokens <= 0 or effective_cost_usd <> 0 as has_price
    from billed
    left join called on called.account_id = case when billed.is_called and billed.row_of_resource = 1 then billed.account_id end
        and called.region_id = billed.region_id
        and called.usage_date = billed.usage_date
        and called.resource_id = regexp_extract(billed.inference_profile_id, '([^/]+)$', 1)
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
        known_sum(effective_cost_usd) - known_sum(idle_cost_usd) as busy_cost_usd,
        known_sum(list_cost_usd) as list_cost_usd,
        known_sum(effective_cost_usd) as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd, bool_and(has_price) as has_rate,
        case when billed_by = 'tokens' then 'bill' when count(output_millions) < count(*) then 'none'
            when bool_or(is_logged) then 'log' else 'metrics' end as token_evidence,
        'bill' as evidence,
        case
            when known_sum(effective_cost_usd) is null then 'cost: the bill has no cost of some use'
            when billed_by = 'unknown' then 'the usage type is not on our lists'
            when tier = 'reserved' then 'traffic: the bill does not show which tokens used the reserved ones'
            when billed_by = 'capacity' and known_sum(idle_cost_usd) is null
                then 'traffic: without logs or metrics it is unknown how much was idle'
            when billed_by = 'active_capacity' then 'traffic: the bill counts no tokens of imported models'
            when billed_by = 'tokens'
                and known_sum(input_millions + cache_read_millions + cache_write_millions + output_millions) is null
                then 'the unit of some tokens is not on our lists'
            when not bool_and(has_price) then 'price: some tokens are billed at zero, which is unknown, not free'
        end as missing_evidence
    from served
    group by usage_date, payer_account_id, account_id, region_id, billing_month, billing_currency, model, platform,
        billed_by, tier, route, instance_type, team

    union all

    -- Servers of our own: what their machines cost, idle included.
    select
        cast(hour_started_at as date), payer_account_id, account_id, region_id, billing_month, billing_currency, model,
        platform, 'capacity', null, null, instance_type, team, sum(request_count),
        known_input(input_tokens, output_tokens), sum(cache_read_tokens), case when count(output_tokens) > 0 then 0 end,
        sum(output_tokens), known_sum(case when up_seconds = 0 then 0 else capacity_tokens end),
        known_sum(idle_cost_usd), known_sum(busy_cost_usd), known_sum(list_cost_usd), known_sum(effective_cost_usd),
        sum(billed_cost_usd), sum(measured_seconds) >= sum(up_seconds),
        case when count(output_tokens) > 0 then 'metrics' else 'none' end, max(evidence),
        case when known_sum(effective_cost_usd) is null then
            'cost: the bill does not show what a commitment, a Capacity Block or a dedicated host costs for this use'
            when sum(measured_seconds) < sum(up_seconds)
                then 'traffic: the time the servers were up is not all recorded or not all on the bill'
            when count(input_tokens) < count(output_tokens) then 'traffic: the input tokens are not all recorded'
            when count(capacity_tokens) = 0 then 'capacity: no hour is known in which a latency target held' end
    from detail_serving_capacity_hourly where billed_cost_usd is not null
    group by all
)

select
    usage_date, payer_account_id, account_id, region_id, billing_month, billing_currency, model, platform, billed_by,
    tier, route, instance_type, team, request_count, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens,
    capacity_tokens, ratio(case when has_rate then served_tokens(input_tokens, cache_read_tokens, output_tokens) end,
        capacity_tokens) as utilization_ratio,
    idle_cost_usd, busy_cost_usd, list_cost_usd, effective_cost_usd, billed_cost_usd,
    cost_per_million_output_usd(case when has_rate then effective_cost_usd end) as cost_per_million_output_usd,
    cost_per_million_output_usd(case when has_rate then list_cost_usd end) as list_cost_per_million_output_usd,
    cost_per_million_output_usd(case when has_rate and effective_cost_usd is not null then billed_cost_usd end)
        as billed_cost_per_million_output_usd,
    cost_per_million_output_usd(case when has_rate then busy_cost_usd end) as busy_cost_per_million_output_usd,
    cost_per_million_total_usd(case when has_rate then effective_cost_usd end) as cost_per_million_total_usd,
    cost_per_million_total_usd(case when has_rate then list_cost_usd end) as list_cost_per_million_total_usd,
    cost_per_million_total_usd(case when has_rate and effective_cost_usd is not null then billed_cost_usd end)
        as billed_cost_per_million_total_usd,
    cost_per_million_total_usd(case when has_rate then busy_cost_usd end) as busy_cost_per_million_total_usd,
    token_evidence, evidence, missing_evidence
from summed
group by all
