-- One row per fee or refund line of a Capacity Block or training plan, with its block.
-- A line without a block id: a fee belongs to the only block of the type that its account reserved; a refund to the only block of the type
-- that the account bought, else to the only one it bought at that price.
with line as (
    select *, block_instance_type(instance_type) as used_instance_type,
        'line ' || source_file || ' ' || cast(source_row as varchar) as line_id,
        -- Our FOCUS export has what a fee costs on another line than what was paid.
        greatest(abs(billed_cost_usd), abs(effective_cost_usd)) as price_usd,
        count(nullif(billed_cost_usd, 0)) over (partition by account_id, instance_type, charge_category)
            as same_type_count
    from fct_charge
    where line_class = 'block_fee'
),

reserved as (
    select account_id, instance_type, max(reservation_id) as block_id
    from stg_aws__capacity_reservation
    where reservation_kind <> 'odcr'
    group by account_id, instance_type
    having count(distinct reservation_id) = 1
),

bought as (
    select line.*, coalesce(line.capacity_reservation_id, reserved.block_id, line.line_id) as block_id
    from line
    left join reserved
        on reserved.account_id = line.account_id
        and reserved.instance_type
            = case when line.same_type_count = 1 then line.used_instance_type end
    where line.charge_category <> 'Refund'
),

of_type as (
    select account_id, instance_type, max(block_id) as block_id
    from bought
    group by account_id, instance_type
    having count(distinct block_id) = 1
),

of_price as (
    select account_id, instance_type, price_usd, max(block_id) as block_id
    from bought
    group by account_id, instance_type, price_usd
    having count(distinct block_id) = 1
),

refunded as (
    select line.*, coalesce(line.capacity_reservation_id, of_type.block_id, of_price.block_id, line.line_id) as block_id
    from line
    left join of_type on of_type.account_id = line.account_id and of_type.instance_type = line.instance_type
    left join of_price
        on of_price.account_id = line.account_id and of_price.instance_type = line.instance_type
        and of_price.price_usd = line.price_usd
    where line.charge_category = 'Refund'
),

fee as (
    select * from bought
    union all
    select * from refunded
)

select
    source_name, source_file, source_row, billing_period, billing_month, payer_account_id, account_id, invoice_id, billing_entity, invoice_issuer,
    billing_currency, charge_category, service, region_id, instance_type, used_instance_type, accelerator_family, block_id,
    usage_started_at, list_cost_usd, effective_cost_usd, billed_cost_usd
from fee
