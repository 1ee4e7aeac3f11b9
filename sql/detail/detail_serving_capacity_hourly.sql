-- One row per server, hour, payer, account, region, month and currency: traffic, whether it met its target, and cost.
-- Traffic is in one row of an hour, its machine's, and not measured where the bill lacks over a minute of it. What is
-- from before a start or after a stop has no cost, so it counts in no hour that has one.
with stretch as (
    select *, concat_ws('|', model, precision, engine, team, max_tokens_per_second, accelerators_used,
            ttft_target_seconds, itl_target_seconds) as kind
    from stg_serving__traffic
    where server_id is not null
    qualify resource_id is not null
        or max(resource_id) over (partition by server_id, date_trunc('hour', started_at)) is null
),

hourly as (
    select
        server_id, cast(date_trunc('hour', started_at) as timestamp) as hour_started_at, 1 as row_no,
        sum(unix_ms(ended_at) - unix_ms(started_at)) as up_ms, sum(request_count) as request_count,
        sum(case when output_tokens is not null then unix_ms(ended_at) - unix_ms(started_at) else 0 end) as measured_ms,
        sum(error_count) as error_count, known_input(input_tokens, output_tokens) as input_tokens,
        case when count(output_tokens) = count(*)
            then served_tokens(sum(input_tokens), sum(cache_read_tokens), sum(output_tokens)) end as served_tokens,
        sum(cache_read_tokens) as cache_read_tokens, sum(output_tokens) as output_tokens,
        avg(running_count) as running_count, avg(waiting_count) as waiting_count,
        max(ttft_p90_seconds) as ttft_p90_seconds, max(itl_p90_seconds) as itl_p90_seconds
    from stretch
    group by server_id, date_trunc('hour', started_at)
),

-- What a server serves from each change on; an hour with two models is the later's.
changed as (select *, lag(kind) over (partition by server_id order by started_at) as earlier from stretch),

server as (
    select server_id, model, precision, engine, team, max_tokens_per_second, accelerators_used, ttft_target_seconds,
        itl_target_seconds,
        case when earlier is not null then date_trunc('hour', started_at) else timestamp '1970-01-01' end as from_at,
        coalesce(
            lead(date_trunc('hour', started_at)) over (partition by server_id order by started_at),
            timestamp '9999-01-01'
        ) as until_at
    from changed
    where earlier is distinct from kind
),

machine as (
    select resource_id, hour_started_at, sum(billed_ms) as billed_ms
    from fct_resource_hourly
    group by resource_id, hour_started_at
),

held as (
    select server_id, resource_id, hour_started_at, sum(ended_ms - started_ms) as held_ms
    from fct_resource_share_hourly
    where server_id is not null
    group by server_id, resource_id, hour_started_at
),

billed as (
    select server_id, hour_started_at, greatest(min(billed_ms), sum(least(held_ms, billed_ms))) as billed_ms
    from machine
    join held using (resource_id, hour_started_at)
    group by server_id, hour_started_at
),

judged as (
    select
        measured.*, server.model, server.precision, server.engine, server.team, server.max_tokens_per_second,
        accelerators_used, ttft_target_seconds, itl_target_seconds, coalesce(up_ms, 0) / 1000 as up_seconds,
        case when up_ms > billed.billed_ms + 60000 then 0 else coalesce(measured_ms, 0) / 1000 end as measured_seconds,
        ratio(served_tokens, up_ms / 1000) as tokens_per_second,
        meets_target(ttft_p90_seconds, server.ttft_target_seconds, itl_p90_seconds, server.itl_target_seconds)
            as meets_target
    from (
        select * from fct_server_cost_hourly
        full join hourly using (server_id, hour_started_at, row_no)
    ) as measured
    join server on server.server_id = measured.server_id
        and measured.hour_started_at >= server.from_at and measured.hour_started_at < server.until_at
    left join billed on billed.server_id = measured.server_id and billed.hour_started_at = measured.hour_started_at
),

-- Servers of one kind have one capacity at one target.
capacity as (
    select *, greatest(max(max_tokens_per_second) over alike,
            max(case when meets_target then tokens_per_second end) over alike) as capacity_tokens_per_second
    from judged
    window alike as (partition by model, precision, engine, instance_type, accelerators_used, ttft_target_seconds,
        itl_target_seconds)
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
