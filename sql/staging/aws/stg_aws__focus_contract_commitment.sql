-- One row per commitment with a fee in a delivered month, with the columns of a FOCUS 1.4 Contract Commitment dataset.
-- partition: billing_period
-- stored: no
-- Read by the FOCUS export alone. Terms are those of the fees, or else of AWS's own answer ([[commitments]]); without a
-- term there is no row. AWS has no contract, so the commitment stands for it.
with fee as (
    select *,
        row_number() over (partition by billing_period, commitment_discount_id
            order by fee_started_at desc, fee_ended_at desc) as rank_no,
        greatest(unix_ms(fee_ended_at) - unix_ms(fee_started_at), 3600000) as fee_ms,
        sum(commitment_cost_usd) over month as month_cost_usd,
        greatest(max(unix_ms(fee_ended_at)) over month - min(unix_ms(fee_started_at)) over month, 3600000) as month_ms
    from stg_aws__commitment_fee
    where commitment_discount_id <> ''
    window month as (partition by billing_period, billing_currency, commitment_discount_id)
),

termed as (
    select
        fee.billing_period, fee.billing_month, fee.commitment_discount_id, fee.commitment_kind, fee.billing_currency,
        -- FOCUS states a reservation use by use, so that its cost an hour is that of the month.
        coalesce(case when fee.commitment_kind = 'reserved_instance'
            then piece_usd(fee.month_cost_usd, 0, 3600000, fee.month_ms)
            else piece_usd(fee.commitment_cost_usd, 0, 3600000, fee.fee_ms) end, answer.commitment_per_hour_usd)
            as per_hour_usd,
        piece_usd(fee.reserved_units, 0, 3600000, fee.fee_ms) as units_per_hour,
        coalesce(fee.payment_option, answer.payment_option) as payment_option,
        coalesce(fee.region_id, answer.region_id) as region_id,
        coalesce(fee.instance_family, answer.instance_family) as instance_family,
        coalesce(fee.started_at, answer.started_at) as started_at,
        coalesce(fee.ended_at, answer.ended_at) as ended_at
    from fee
    left join stg_aws__commitment as answer on answer.commitment_key = commitment_key(fee.commitment_discount_id)
    where fee.rank_no = 1
),

lasting as (
    -- AWS ends a term at :59:59.
    select *, cast(round((unix_ms(ended_at) - unix_ms(started_at)) / 3600000.0) as bigint) as term_hours
    from termed
    where ended_at > started_at
),

held as (
    select *, commitment_kind = 'reserved_instance' as is_reserved,
        cast(per_hour_usd * term_hours as decimal(20, 10)) as cost_usd
    from lasting
)

select
    billing_currency as "BillingCurrency",
    '{"IsComplexScope": true' || coalesce(', "x_RegionId": "' || region_id || '"', '')
        || coalesce(', "x_InstanceFamily": "' || instance_family || '"', '') || '}'
        as "ContractCommitmentApplicability",
    'Discount' as "ContractCommitmentBenefitCategory",
    case when is_reserved then 'Usage' else 'Spend' end as "ContractCommitmentCategory",
    cost_usd as "ContractCommitmentCost", started_at as "ContractCommitmentCreated",
    commitment_kind as "ContractCommitmentDescription",
    cast(null as decimal(20, 10)) as "ContractCommitmentDiscountPercentage",
    -- A year with a leap day is a year.
    case when term_hours >= 2 * 8760 then '3 Years' else '1 Year' end as "ContractCommitmentDurationType",
    'Hourly' as "ContractCommitmentFulfillmentInterval", commitment_discount_id as "ContractCommitmentId",
    greatest(cast(billing_month as timestamp), started_at) as "ContractCommitmentLastUpdated",
    case when ended_at <= billing_month then 'Expired' else 'Active' end as "ContractCommitmentLifecycleStatus",
    'Continuous' as "ContractCommitmentModel", 'Public' as "ContractCommitmentOfferCategory",
    case when payment_option like 'All%' then 'One-Time' else 'Monthly' end as "ContractCommitmentPaymentInterval",
    -- AWS writes NoUpfront in some places.
    replace(replace(payment_option, ' ', ''), 'Upfront', ' Upfront') as "ContractCommitmentPaymentModel",
    cast(case when payment_option like 'No%' then 0 when payment_option like 'All%' then 1 end as decimal(20, 10))
        as "ContractCommitmentPaymentUpfrontPercentage",
    ended_at as "ContractCommitmentPeriodEnd", started_at as "ContractCommitmentPeriodStart",
    case when is_reserved then cast(units_per_hour * term_hours as decimal(20, 10)) end as "ContractCommitmentQuantity",
    case when is_reserved then 'Reserved Instance' else 'Savings Plan' end as "ContractCommitmentType",
    case when is_reserved then 'Hours' end as "ContractCommitmentUnit", commitment_discount_id as "ContractId",
    ended_at as "ContractPeriodEnd", started_at as "ContractPeriodStart", 'AWS' as "InvoiceIssuerName",
    billing_currency as "PricingCurrency", cost_usd as "PricingCurrencyContractCommitmentCost",
    'AWS' as "ServiceProviderName"
from held
