-- One row per saved checkpoint and currency whose bucket is on the bill: what keeping it cost, to the last month delivered.
-- It stays `shared` in the ledger: this is the part of the bucket's bill that these bytes explain, never more than all of it.
with open_month as (
    select billing_month, unix_ms(max(usage_until_at)) as billed_until_ms
    from stg_aws__invoice_total
    group by billing_month having max(case when invoice_id = '' and charged_line_count > 0 then 1 else 0 end) = 1
),

storage as (
    select billing_month, storage_bucket_id, billing_currency,
        unix_ms(cast(billing_month as timestamp)) as month_started_ms,
        unix_ms(cast(billing_month + interval 1 month as timestamp)) as month_ended_ms,
        sum(stored_gib_months) as stored_gib_months, known_sum(effective_cost_usd) as effective_cost_usd
    from fct_charge_sum_monthly
    where storage_bucket_id is not null
    group by billing_month, storage_bucket_id, billing_currency
),

saved as (
    select run_id, checkpoint_id, unix_ms(durable_at) as durable_ms, bytes,
        regexp_extract(uri, '^s3://([^/]+)', 1) as storage_bucket_id
    from stg_tracker__checkpoint
    where bytes is not null and uri like 's3://%'
),

-- Deletions are not recorded, so each counts to the end of the month, or of what an open month bills so far.
held as (
    select
        saved.run_id, saved.checkpoint_id, storage.billing_currency, storage.billing_month, storage.storage_bucket_id,
        storage.effective_cost_usd, storage.stored_gib_months,
        cast(saved.bytes as double) / 1073741824
            * (storage.billed_until_ms - greatest(saved.durable_ms, storage.month_started_ms))
            / (storage.month_ended_ms - storage.month_started_ms) as held_gib_months
    from saved
    join (
        select storage.*, least(month_ended_ms, coalesce(billed_until_ms, month_ended_ms)) as billed_until_ms
        from storage left join open_month using (billing_month)
    ) as storage on storage.storage_bucket_id = saved.storage_bucket_id
    where saved.durable_ms < storage.billed_until_ms
),

weighed as (
    select
        *,
        -- More bytes held than the bucket was billed for: some were deleted, and all share what was billed.
        greatest(cast(stored_gib_months as double),
            sum(held_gib_months) over (partition by storage_bucket_id, billing_month, billing_currency)) as whole_gib_months
    from held
)

select
    run_id, checkpoint_id, billing_currency,
    known_sum(usd_per(cast(effective_cost_usd as double) * held_gib_months, whole_gib_months)) as retention_cost_usd
from weighed
group by run_id, checkpoint_id, billing_currency
