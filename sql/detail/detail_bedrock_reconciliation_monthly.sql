-- One row per month, account, region, model and kind of token: tokens on the bill and in the invocation logs.
-- The reason is why they differ. Only months with a log are compared. A model is billed in the region that was called.
-- Calls of Provisioned Throughput and imported models are left out: the bill counts no tokens of them.
with uncounted as (
    select distinct account_id, region_id, regexp_extract(inference_profile_id, '([^/]+)$', 1) as resource_id
    from detail_bedrock_usage_daily
    where billed_by in ('capacity', 'active_capacity') and inference_profile_id is not null
),

logged as (
    select
        cast(date_trunc('month', traffic.started_at) as date) as billing_month, traffic.account_id, traffic.region_id,
        traffic.model, bill.billing_currency, max(traffic.ended_at) as seen_until,
        sum(traffic.input_tokens) as input_tokens, sum(traffic.cache_read_tokens) as cache_read_tokens,
        sum(traffic.cache_write_tokens) as cache_write_tokens, sum(traffic.output_tokens) as output_tokens
    from stg_serving__traffic as traffic
    left join (select account_id, min(billing_currency) as billing_currency from detail_bedrock_usage_daily
            group by account_id) as bill on bill.account_id = traffic.account_id
    left join uncounted on uncounted.account_id = traffic.account_id and uncounted.region_id = traffic.region_id
        and uncounted.resource_id = traffic.resource_id
    where traffic.server_id is null and uncounted.resource_id is null
    group by all
),

token as (
    select
        billing_month, account_id, region_id, model, billing_currency, 'input' as token_kind,
        input_tokens as log_tokens,
        cast(null as decimal(38, 10)) as bill_tokens, cast(null as decimal(38, 10)) as batch_tokens,
        cast(null as decimal(38, 10)) as effective_cost_usd
    from logged

    union all

    select billing_month, account_id, region_id, model, billing_currency, 'cache_read', cache_read_tokens, null, null, null
    from logged

    union all

    select billing_month, account_id, region_id, model, billing_currency, 'cache_write', cache_write_tokens, null, null, null
    from logged

    union all

    select billing_month, account_id, region_id, model, billing_currency, 'output', output_tokens, null, null, null
    from logged

    union all

    select
        billing_month, account_id, region_id, model, billing_currency,
        case when token_kind like 'cache_write%' then 'cache_write' else token_kind end, null, million_tokens * 1000000,
        case when tier = 'batch' then million_tokens * 1000000 end, effective_cost_usd
    from detail_bedrock_usage_daily
    where billed_by = 'tokens' and billing_month in (select billing_month from logged)
),

compared as (
    select
        billing_month, account_id, region_id, model, billing_currency, token_kind, sum(bill_tokens) as bill_tokens,
        sum(log_tokens) as log_tokens,
        coalesce(sum(bill_tokens), 0) - coalesce(sum(log_tokens), 0) as difference_tokens,
        coalesce(sum(batch_tokens), 0) as batch_tokens,
        -- Calls have no cost; tokens on the bill may lack theirs.
        case when count(effective_cost_usd) >= count(bill_tokens) then sum(effective_cost_usd) end as effective_cost_usd
    from token
    group by billing_month, account_id, region_id, model, billing_currency, token_kind
),

billed as (
    select account_id, model, cast(max(usage_date) as timestamp) + interval 1 day as billed_until
    from detail_bedrock_usage_daily
    group by account_id, model
),

place as (
    select billing_month, account_id, region_id, max(seen_until) as seen_until
    from logged
    group by billing_month, account_id, region_id
)

select
    compared.billing_month, compared.account_id, compared.region_id, compared.model,
    compared.billing_currency, compared.token_kind,
    compared.bill_tokens, compared.log_tokens, compared.difference_tokens, compared.effective_cost_usd,
    case
        when abs(difference_tokens) <= 0.01 * coalesce(bill_tokens, 0) then 'agrees'
        when compared.billing_currency is null then 'other account: the bill has no Bedrock of it'
        when compared.billing_month not in (select distinct billing_month from detail_bedrock_usage_daily)
            then 'other month: the bill has no Bedrock in it'
        when difference_tokens < 0 and billed.model is null
            then 'unknown model: the bill does not name it; map its id in `models`'
        when difference_tokens < 0 and bill_tokens is not null and place.seen_until > billed.billed_until
            then 'open month: the log goes on after the bill ends'
        when difference_tokens < 0 and bill_tokens is null and billed.model is not null
            then 'other region or kind: the bill has the model elsewhere'
        when difference_tokens < 0 then 'more in the log than on the bill'
        when place.account_id is null then 'logging off: the account logs nothing in this region'
        when difference_tokens <= batch_tokens then 'batch: batch jobs are not in the log'
        when token_kind in ('cache_read', 'cache_write') and coalesce(log_tokens, 0) = 0
            then 'cache kinds: the log has none'
        when log_tokens is null then 'the log does not have the model; map its profile in `models`'
        else 'more on the bill than in the log'
    end as reason
from compared
left join place on place.billing_month = compared.billing_month and place.account_id = compared.account_id
    and place.region_id = compared.region_id
left join billed on billed.account_id = compared.account_id and billed.model = compared.model
where coalesce(nullif(bill_tokens, 0), log_tokens) <> 0
