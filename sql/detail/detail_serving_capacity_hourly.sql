-- One row per server, hour, payer, account, region, month and currency: traffic, whether it met its target, and cost.
with hourly as (
    select
        server_id, cast(date_trunc('hour', started_at) as timestamp) as hour_started_at,
        sum(date_diff('millisecond', started_at, ended_at)) as up_ms,
        sum(case when output_tokens is not null then date_diff('millisecond', started_at, ended_at) else 0 end)
            as measured_ms,
        sum(request_count) as request_count, sum(error_count) as error_count, sum(input_tokens) as input_tokens,
        sum(cache_read_tokens) as cache_read_tokens, sum(output_tokens) as output_tokens,
        avg(running_count) as running_count, avg(waiting_count) as waiting_count,
        max(ttft_p90_seconds) as ttft_p90_seconds, max(itl_p90_seconds) as itl_p90_seconds
    from stg_serving__traffic
    where server_id is not null
    group by server_id, date_trunc('hour', started_at)
),

stretch as (
    select
        server_id, started_at, model, precision, engine, team, max_tokens_per_second, ttft_target_seconds,
        itl_target_seconds, concat_ws('|', model, precision, engine, team, max_tokens_per_second) as kind
    from stg_serving__traffic
    where server_id is not null
),

changed as (
    select *, lag(kind) over (partition by server_id order by started_at) as kind_before
    from stretch
),

-- What a server was, from each change on; an hour with two models is the later's.
server as (
    select
        *, case when kind_before is null then timestamp '1970-01-01' else date_trunc('hour', started_at) end as since_at,
        coalesce(lead(date_trunc('hour', started_at)) over (partition by server_id order by started_at),
            timestamp '9999-01-01') as until_at
    from changed
    where kind_before is distinct from kind
),

measured as (
    select
        coalesce(cost.server_id, hourly.server_id) as server_id,
        coalesce(cost.hour_started_at, hourly.hour_started_at) as hour_started_at,
        cost.billing_currency, cost.billing_month, cost.payer_account_id, cost.account_id, cost.region_id,
        cost.resource_id, cost.instance_type, cost.accelerator_family, cost.evidence, cost.list_cost_usd,
        cost.effective_cost_usd, cost.billed_cost_usd, cost.idle_cost_usd,
        coalesce(hourly.up_ms, 0) / 1000 as up_seconds, coalesce(hourly.measured_ms, 0) / 1000 as measured_seconds,
        hourly.request_count, hourly.error_count, hourly.input_tokens, hourly.cache_read_tokens, hourly.output_tokens,
        served_tokens(hourly.input_tokens, hourly.cache_read_tokens, hourly.output_tokens) as served_tokens,
        ratio(served_tokens(hourly.input_tokens, hourly.cache_read_tokens, hourly.output_tokens), 3600)
            as tokens_per_second, hourly.running_count, hourly.waiting_count,
        hourly.ttft_p90_seconds, hourly.itl_p90_seconds
    from fct_server_cost_hourly as cost
    full join hourly on hourly.server_id = cost.server_id and hourly.hour_started_at = cost.hour_started_at
),

judged as (
    select
        measured.*, server.model, server.precision, server.engine, server.team, server.max_tokens_per_second,
        meets_target(ttft_p90_seconds, server.ttft_target_seconds, itl_p90_seconds, server.itl_target_seconds)
            as meets_target
    from measured
    join server on server.server_id = measured.server_id
        and measured.hour_started_at >= server.since_at and measured.hour_started_at < server.until_at
),

-- Servers of one kind have one capacity.
capacity as (
    select
        *, greatest(max(max_tokens_per_second) over alike, max(case when meets_target then tokens_per_second end)
            over alike) as capacity_tokens_per_second
    from judged
    window alike as (partition by model, precision, engine, instance_type)
)

select
    server_id, hour_started_at, billing_currency, billing_month, payer_account_id, account_id, region_id, model,
    precision, engine, resource_id, serving_platform(instance_type, accelerator_family) as platform, instance_type,
    accelerator_family, team, up_seconds, measured_seconds,
    request_count, error_count, input_tokens, cache_read_tokens, output_tokens, tokens_per_second, running_count,
    waiting_count, ttft_p90_seconds, itl_p90_seconds, meets_target, max_tokens_per_second, capacity_tokens_per_second,
    capacity_tokens_per_second * up_seconds as capacity_tokens,
    ratio(served_tokens, capacity_tokens_per_second * up_seconds) as utilization_ratio, list_cost_usd,
    effective_cost_usd, billed_cost_usd, idle_cost_usd, effective_cost_usd - idle_cost_usd as busy_cost_usd, evidence
from capacity
