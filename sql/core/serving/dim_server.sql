-- One row per server and change of what it serves: its model and engine from each change on, up to the next.
-- An hour with two models is the later's.
with stretch as (
    select
        server_id, started_at, model, precision, engine, team, max_tokens_per_second, ttft_target_seconds,
        itl_target_seconds, concat_ws('|', model, precision, engine, team, max_tokens_per_second) as kind
    from stg_serving__traffic
    where server_id is not null
),

changed as (
    select *, lag(kind) over (partition by server_id order by started_at) as kind_before
    from stretch
)

select
    server_id, model, precision, engine, team, max_tokens_per_second, ttft_target_seconds, itl_target_seconds,
    case when kind_before is null then timestamp '1970-01-01' else date_trunc('hour', started_at) end as started_at,
    coalesce(lead(date_trunc('hour', started_at)) over (partition by server_id order by started_at),
        timestamp '9999-01-01') as ended_at
from changed
where kind_before is distinct from kind
