"""What the ways to serve a model read: its servers' hours, its use of Bedrock and its traffic, summed up."""

QUERIES = {
    # Hours of all servers of a kind at a target; without one, any latency meets it. A cost is unknown where any part of
    # it is, a capacity where theirs differ. A server may have a part of its machine (`has_part`).
    "detail_serving_capacity_hourly": """
        select model, billing_currency, platform, accelerator_family, instance_type, payer_account_id,
            max(region_id) as region_id,
            case when count(distinct precision) = 1 then max(precision) end as precision,
            cast(hour_started_at as date) as usage_date, hour_started_at, ttft_target_seconds, itl_target_seconds,
            coalesce(accelerators_used < machine.accelerator_count, false) as has_part,
            sum(measured_seconds) >= 0.99 * sum(up_seconds) and count(input_tokens) >= count(output_tokens)
                as is_measured,
            sum(input_tokens) as input_tokens, sum(cache_read_tokens) as cache_read_tokens, 0 as cache_write_tokens,
            sum(output_tokens) as output_tokens, sum(up_seconds) as up_seconds,
            case when count(capacity_tokens_per_second) = count(*)
                and min(capacity_tokens_per_second) = max(capacity_tokens_per_second)
                then max(capacity_tokens_per_second) end as capacity_tokens_per_second,
            case when count(list_cost_usd) = count(*) then sum(list_cost_usd) end as list_cost_usd,
            case when count(effective_cost_usd) = count(*) then sum(effective_cost_usd) end as effective_cost_usd
        from detail_serving_capacity_hourly
        left join (
            select server_id, min(accelerators_used) as accelerators_used,
                coalesce(max(ttft_target_seconds), 1e9) as ttft_target_seconds,
                coalesce(max(itl_target_seconds), 1e9) as itl_target_seconds
            from stg_serving__traffic
            group by server_id
        ) as target using (server_id)
        left join (
            select instance_type as machine_type, accelerator_count from ref_instance_type
        ) as machine on machine_type = replace(instance_type, 'ml.', '')
        where billed_cost_usd is not null
        group by all
    """,
    # Batches and flexible requests wait, so no endpoint takes their place. What is not billed by KINDS has no tokens. A
    # price of zero is unknown.
    "detail_bedrock_usage_daily": """
        select model, billing_currency, payer_account_id, region_id, usage_date, tier, usage_type,
            case when token_kind like 'cache_write%' then 'cache_write' else token_kind end as token_kind,
            case when count(million_tokens) = count(*) then sum(million_tokens) end as million_tokens,
            case when count(nullif(list_cost_usd, case when million_tokens > 0 then 0 end)) = count(*)
                then sum(list_cost_usd) end as list_cost_usd,
            case when count(nullif(effective_cost_usd, case when million_tokens > 0 then 0 end)) = count(*)
                then sum(effective_cost_usd) end as effective_cost_usd
        from detail_bedrock_usage_daily
        where bucket = 'serving' and billed_by <> 'capacity' and model is not null
            and coalesce(tier, '') not in ('batch', 'flex')
        group by all
    """,
    # Capacity of Bedrock, with the tokens of its calls where they are known.
    "mart_inference_cost_daily": """
        select model, billing_currency, tier, payer_account_id, region_id, usage_date,
            count(output_tokens) = count(*) as is_measured, sum(input_tokens) as input_tokens,
            sum(cache_read_tokens) as cache_read_tokens, sum(cache_write_tokens) as cache_write_tokens,
            sum(output_tokens) as output_tokens,
            case when count(list_cost_usd) = count(*) then sum(list_cost_usd) end as list_cost_usd,
            case when count(effective_cost_usd) = count(*) then sum(effective_cost_usd) end as effective_cost_usd
        from mart_inference_cost_daily
        where platform = 'bedrock' and billed_by = 'capacity' and model is not null
        group by model, billing_currency, tier, payer_account_id, region_id, usage_date
    """,
    # Calls of billed accounts, for the busiest hour; those of capacity are no tokens on demand.
    "stg_serving__traffic": """
        select traffic.model, capacity.resource_id is not null as is_capacity,
            date_trunc('hour', traffic.started_at) as hour_started_at,
            sum(input_tokens + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) + output_tokens)
                as tokens
        from stg_serving__traffic as traffic
        left join (
            select distinct account_id, region_id, regexp_extract(inference_profile_id, '([^/]+)$', 1) as resource_id
            from detail_bedrock_usage_daily where billed_by in ('capacity', 'active_capacity')
        ) as capacity
            on capacity.account_id = traffic.account_id and capacity.region_id = traffic.region_id
            and capacity.resource_id = traffic.resource_id
        where traffic.server_id is null
            and traffic.account_id in (select account_id from detail_bedrock_usage_daily)
        group by 1, 2, 3
    """,
    # Discounts on lines of their own, of machines of a family or of a whole service, which no cost of serving has. The
    # enterprise discount is the same for all of a service.
    "fct_charge_sum_monthly": """
        with served as (
            select payer_account_id, billing_month, billing_currency, service, 'bedrock' as family
            from detail_bedrock_usage_daily
            union
            select payer_account_id, billing_month, billing_currency, service, accelerator_family
            from fct_charge_sum_monthly
            where charge_category = 'Usage' and accelerator_family <> 'none'
        )
        select billing_currency, billing_month, family, sum(effective_cost_usd) as discount_usd
        from served
        join fct_charge_sum_monthly using (payer_account_id, billing_month, billing_currency, service)
        where charge_category = 'Discount'
            and ((accelerator_family = 'none' and charge_type <> 'EdpDiscount') or accelerator_family = family)
        group by 1, 2, 3
        having sum(effective_cost_usd) <> 0
    """,
    "fct_invoice_monthly": """
        select payer_account_id, billing_currency, billing_month, cast(max(newest_usage_at) as date) as newest_date
        from fct_invoice_monthly
        group by payer_account_id, billing_currency, billing_month
    """,
}
