-- One row per server, hour, payer, account, region, month and currency: traffic, whether it met its target, and cost.
-- Traffic is in one row of an hour, its machine's, and not measured where the bill lacks over a minute of it. What is from before a start
-- or after a stop has no cost, so it counts in no hour that has one. Idle of a machine that nothing held is shared by what held it that
-- month, by accelerator-seconds; the part of runs is no server's.
with stretch as (
    select *, concat_ws('|', model, precision, engine, team, max_tokens_per_second) as kind
    from stg_serving__traffic where server_id is not null
    qualify resource_id is not null or max(resource_id) over (partition by server_id, date_trunc('hour', started_at)) is null
),

hourly as (
    select server_id, cast(date_trunc('hour', started_at) as timestamp) as hour_started_at, 1 as row_no,
        sum(unix_ms(ended_at) - unix_ms(started_at)) as up_ms, sum(request_count) as request_count,
        sum(case when output_tokens is not null then unix_ms(ended_at) - unix_ms(started_at) else 0 end) as measured_ms,
        sum(error_count) as error_count, case when count(input_tokens) >= count(output_tokens) then sum(input_tokens) end as input_tokens,
        case when count(output_tokens) = count(*)
            then served_tokens(sum(input_tokens), sum(cache_read_tokens), sum(output_tokens)) end as served_tokens,
        sum(cache_read_tokens) as cache_read_tokens, sum(output_tokens) as output_tokens, avg(running_count) as running_count, avg(waiting_count) as waiting_count,
        max(ttft_p90_seconds) as ttft_p90_seconds, max(itl_p90_seconds) as itl_p90_seconds
    from stretch group by server_id, date_trunc('hour', started_at)
),

-- What a server serves from each change on; an hour with two models is the later's.
changed as (select *, lag(kind) over (partition by server_id order by started_at) as earlier from stretch),

server as (
    select server_id, model, precision, engine, team, max_tokens_per_second, ttft_target_seconds, itl_target_seconds,
        case when earlier is not null then date_trunc('hour', started_at) else timestamp '1970-01-01' end as from_at,
        coalesce(lead(date_trunc('hour', started_at)) over (partition by server_id order by started_at), timestamp '9999-01-01') as until_at
    from changed where earlier is distinct from kind
),

-- All runs of a machine are one.
part as (
    select resource_id, server_id, date_trunc('month', hour_started_at) as month_at, sum(upper_units - lower_units) as units,
        sum(sum(upper_units - lower_units)) over (partition by resource_id, date_trunc('month', hour_started_at)
            order by server_id is null, server_id rows between unbounded preceding and current row) as upper_units,
        sum(sum(upper_units - lower_units)) over (partition by resource_id, date_trunc('month', hour_started_at)) as whole_units
    from fct_resource_share_hourly where run_id is not null or server_id is not null
    group by resource_id, date_trunc('month', hour_started_at), server_id
),

spent as (
    select
        server_id, cast(date_trunc('hour', coalesce(hour_started_at, cast(usage_date as timestamp))) as timestamp) as hour_started_at,
        resource_id, bucket, billing_currency, billing_month, payer_account_id, account_id, region_id, max(instance_type) as instance_type,
        max(nullif(accelerator_family, 'none')) as accelerator_family, max(evidence) as evidence, count(*) > count(list_cost_usd) as is_unpriced,
        sum(case when piece_kind in ('instance_hour', 'block_hour')
            then case when market = 'capacity_block' and unsure_id is not null then 0 else abs(effective_cost_usd) end end) as certain_usd,
        sum(list_cost_usd) as list_cost_usd, known_sum(effective_cost_usd) as effective_cost_usd, sum(billed_cost_usd) as billed_cost_usd
    from fct_ledger
    left join (select distinct resource_id as unsure_id from fct_capacity_block_piece where is_window_unknown) as block on unsure_id = resource_id
    where server_id is not null or (bucket = 'idle' and resource_id in (select resource_id from part where server_id is not null))
    group by all
),

own as (
    select * from spent where server_id is not null
    union all
    select
        part.server_id, hour_started_at, rest.resource_id, bucket, billing_currency, billing_month, payer_account_id,
        account_id, region_id, instance_type, accelerator_family, evidence, is_unpriced, certain_usd,
        piece_usd(list_cost_usd, part.upper_units - part.units, part.upper_units, part.whole_units),
        piece_usd(effective_cost_usd, part.upper_units - part.units, part.upper_units, part.whole_units),
        piece_usd(billed_cost_usd, part.upper_units - part.units, part.upper_units, part.whole_units)
    from spent as rest
    join part on part.resource_id = rest.resource_id and part.server_id is not null and part.month_at = date_trunc('month', rest.hour_started_at)
    where rest.server_id is null
),

cost as (
    select
        server_id, hour_started_at, billing_currency, billing_month, payer_account_id, account_id, region_id,
        max(resource_id) as resource_id, max(max(instance_type)) over hour as instance_type, max(evidence) as evidence,
        max(max(accelerator_family)) over hour as accelerator_family,
        row_number() over (partition by server_id, hour_started_at order by max(instance_type) is null, billing_month,
            payer_account_id, account_id, region_id, billing_currency) as row_no,
        -- Machines that the bill has for nothing, as on a dedicated host, or in a block of unknown window.
        case when sum(sum(certain_usd)) over hour = 0 then null when not bool_or(is_unpriced) then sum(list_cost_usd) end as list_cost_usd,
        case when sum(sum(certain_usd)) over hour is distinct from 0 then known_sum(effective_cost_usd) end as effective_cost_usd,
        sum(billed_cost_usd) as billed_cost_usd, case when sum(sum(certain_usd)) over hour is distinct from 0
            then known_sum(case when bucket = 'idle' then effective_cost_usd else 0 end) end as idle_cost_usd
    from own
    group by server_id, hour_started_at, billing_currency, billing_month, payer_account_id, account_id, region_id
    window hour as (partition by server_id, hour_started_at)
),

judged as (
    select
        measured.*, server.model, server.precision, server.engine, server.team, server.max_tokens_per_second, coalesce(up_ms, 0) / 1000 as up_seconds,
        case when up_ms > billed.billed_ms + 60000 then 0 else coalesce(measured_ms, 0) / 1000 end as measured_seconds,
        ratio(served_tokens, up_ms / 1000) as tokens_per_second,
        meets_target(ttft_p90_seconds, server.ttft_target_seconds, itl_p90_seconds, server.itl_target_seconds) as meets_target
    from (select * from cost full join hourly using (server_id, hour_started_at, row_no)) as measured
    join server on server.server_id = measured.server_id and measured.hour_started_at >= server.from_at and measured.hour_started_at < server.until_at
    left join (
        select server_id, hour_started_at, greatest(min(billed_ms), sum(least(held_ms, billed_ms))) as billed_ms
        from (select resource_id, hour_started_at, sum(billed_ms) as billed_ms from fct_resource_hourly group by all) as machine
        join (select server_id, resource_id, hour_started_at, sum(ended_ms - started_ms) as held_ms
            from fct_resource_share_hourly where server_id is not null group by all) as held using (resource_id, hour_started_at)
        group by server_id, hour_started_at
    ) as billed on billed.server_id = measured.server_id and billed.hour_started_at = measured.hour_started_at
),

-- Servers of one kind have one capacity.
capacity as (
    select *, greatest(max(max_tokens_per_second) over alike,
            max(case when meets_target then tokens_per_second end) over alike) as capacity_tokens_per_second
    from judged window alike as (partition by model, precision, engine, instance_type)
)

select
    server_id, hour_started_at, billing_currency, billing_month, payer_account_id, account_id, region_id, model,
    precision, engine, resource_id, serving_platform(instance_type, accelerator_family) as platform, instance_type,
    accelerator_family, team, up_seconds, measured_seconds, request_count, error_count, input_tokens, cache_read_tokens,
    output_tokens, tokens_per_second, running_count, waiting_count, ttft_p90_seconds, itl_p90_seconds, meets_target,
    max_tokens_per_second, capacity_tokens_per_second, capacity_tokens_per_second * up_seconds as capacity_tokens,
    ratio(served_tokens, capacity_tokens_per_second * up_seconds) as utilization_ratio, list_cost_usd,
    effective_cost_usd, billed_cost_usd, idle_cost_usd, effective_cost_usd - idle_cost_usd as busy_cost_usd, evidence
from capacity
