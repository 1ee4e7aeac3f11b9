-- One row per charge of a delivered month, with the columns of FOCUS 1.2 and 1.4 Cost and Usage datasets.
-- partition: billing_period
-- stored: no
-- A line that buys something is two charges: what was paid (Purchase, effective cost 0) and what of it was accrued
-- (Usage, billed cost 0). Sources: docs/focus-export.md. Lines that come as FOCUS are in stg_aws__focus_delivered.
-- What FOCUS has no column for and our marts need is in x_ columns, so that the export reads back to the same figures.
with half as (
    select * from (values (false, 'charged'), (true, 'paid'), (true, 'accrued')) as listed(is_purchase, half)
),

halved as (
    select line.*, half.half, case when half.half = 'accrued' then 'Usage' else focus_category end as category,
        case when half.half = 'accrued' then 0 else billed_cost_usd end as billed_usd,
        case when half.half = 'paid' then 0 when focus_category = 'Credit' then billed_cost_usd
            else effective_cost_usd end as effective_usd,
        case when half.half = 'accrued' then 0 when focus_category <> 'Usage' then billed_cost_usd
            when effective_rule = 'savings_plan' then unblended_cost_usd
            when effective_rule = 'reservation' then coalesce(list_cost_usd, effective_cost_usd)
            else effective_cost_usd
        end as contracted_usd,
        case when half.half = 'accrued' and commitment_id is not null
            then coalesce(unused_commitment_quantity, effective_cost_usd) else usage_quantity end as quantity,
        case when commitment_id is not null
            then case half.half when 'charged' then 'Used' when 'accrued' then 'Unused' end end as commitment_status,
        case commitment_category when 'Spend' then billing_currency when 'Usage' then 'Hours' end as commitment_unit,
        coalesce(invoice_issuer, 'AWS') as issuer, coalesce(publisher_name, invoice_issuer, 'AWS') as publisher
    from stg_aws__focus_line as line
    join half on half.is_purchase = (line.focus_category = 'Purchase')
    -- FOCUS has no row for a plan's negation, for shares of pods, for hours reserved that others count again.
    where case half.half
        -- A fee of nothing that was used whole has no other row.
        when 'paid' then billed_cost_usd <> 0 or effective_rule not in ('savings_plan_unused', 'reservation_unused')
            or (effective_cost_usd = 0 and coalesce(unused_commitment_quantity, 0) = 0)
        when 'accrued' then effective_cost_usd <> 0 or coalesce(unused_commitment_quantity, 0) <> 0
        else billed_cost_usd <> 0 or effective_cost_usd is distinct from 0
            or (line_class not in ('split_child', 'capacity_marker') and effective_rule <> 'zero')
    end
),

listed as (
    select *, category in ('Usage', 'Purchase') as is_priced,
        category = 'Usage' and commitment_status is distinct from 'Unused' as is_consumed,
        case when half = 'charged' and category = 'Usage' and list_cost_usd * contracted_usd >= 0
            then list_cost_usd else contracted_usd end as list_usd
    from halved
),

-- Unit prices are never negative: money back is a negative quantity. A cost of no quantity is the price of one.
priced as (
    select *,
        case when is_priced then cast(case when least(list_usd, contracted_usd) < 0 then -1 else 1 end
            * case when quantity = 0 and (list_usd <> 0 or contracted_usd <> 0) then 1 else abs(quantity) end
            as decimal(20, 10)) end as pricing_quantity,
        case when commitment_status = 'Unused' then commitment_unit else unit end as pricing_unit,
        case when commitment_status = 'Unused' or (half <> 'charged' and commitment_id is not null)
            then commitment_id else resource_id end as focus_resource_id
    from listed
)

select
    availability_zone as "AvailabilityZone", cast(billed_usd as decimal(20, 10)) as "BilledCost",
    payer_account_id as "BillingAccountId", coalesce(payer_account_name, payer_account_id) as "BillingAccountName",
    'Management Account' as "BillingAccountType", billing_currency as "BillingCurrency",
    cast(billing_month as timestamp) as "BillingPeriodStart",
    cast(billing_month + interval '1' month as timestamp) as "BillingPeriodEnd",
    case when is_priced then capacity_reservation_id end as "CapacityReservationId",
    case when category = 'Usage' and capacity_reservation_id is not null then
        case when capacity_reservation_status = 'Unused' or line_class = 'capacity_unused'
            then 'Unused' else 'Used' end end as "CapacityReservationStatus",
    category as "ChargeCategory", commitment_status as "CommitmentDiscountStatus",
    case when effective_rule = 'refund' and cast(usage_started_at as date) < billing_month then 'Correction' end
        as "ChargeClass",
    coalesce(charge_description, usage_type, charge_type) as "ChargeDescription",
    case when is_consumed and half = 'charged' or commitment_status = 'Unused' then 'Usage-Based'
        when effective_rule in ('savings_plan_unused', 'reservation_unused') or category = 'Tax' then 'Recurring'
        else 'One-Time' end as "ChargeFrequency",
    usage_started_at as "ChargePeriodStart", exclusive_end(usage_ended_at, billing_month) as "ChargePeriodEnd",
    case when commitment_id is not null then commitment_category end as "CommitmentDiscountCategory",
    commitment_id as "CommitmentDiscountId", cast(null as varchar) as "CommitmentDiscountName",
    case when commitment_id is null then null when half = 'accrued' then quantity else commitment_quantity end
        as "CommitmentDiscountQuantity",
    case when commitment_id is null then null when commitment_category = 'Spend' then 'Savings Plan'
        else 'Reserved Instance' end as "CommitmentDiscountType",
    case when commitment_id is not null then commitment_unit end as "CommitmentDiscountUnit",
    cast(null as varchar) as "CommitmentProgramEligibilityDetails", cast(null as varchar) as "InvoiceDetailId",
    case when is_consumed then usage_quantity end as "ConsumedQuantity",
    case when is_consumed then unit end as "ConsumedUnit",
    -- Only what Contract Commitment lists: it has no row for a commitment without a term.
    case when commitment_status = 'Used'
            and commitment_id in (select "ContractCommitmentId" from stg_aws__focus_contract_commitment)
        then focus_contract_applied(commitment_id, commitment_category, commitment_quantity) end as "ContractApplied",
    cast(contracted_usd as decimal(20, 10)) as "ContractedCost",
    focus_unit_price(contracted_usd, pricing_quantity, billed_rate_usd) as "ContractedUnitPrice",
    cast(effective_usd as decimal(20, 10)) as "EffectiveCost", nullif(invoice_id, '') as "InvoiceId",
    issuer as "InvoiceIssuerName", cast(list_usd as decimal(20, 10)) as "ListCost",
    focus_unit_price(list_usd, pricing_quantity, list_rate_usd) as "ListUnitPrice",
    case when not is_priced then null when half = 'paid' then 'Standard'
        when commitment_category is not null then 'Committed' when market = 'spot' then 'Dynamic'
        else 'Standard' end as "PricingCategory",
    billing_currency as "PricingCurrency", cast(effective_usd as decimal(20, 10)) as "PricingCurrencyEffectiveCost",
    focus_unit_price(contracted_usd, pricing_quantity, billed_rate_usd) as "PricingCurrencyContractedUnitPrice",
    focus_unit_price(list_usd, pricing_quantity, list_rate_usd) as "PricingCurrencyListUnitPrice",
    pricing_quantity as "PricingQuantity", case when is_priced then pricing_unit end as "PricingUnit",
    -- Who is paid is who provides: FOCUS lets another's charge be billed at 0 only.
    issuer as "ProviderName", publisher as "PublisherName", publisher as "ServiceProviderName",
    case when is_priced then 'AWS' end as "HostProviderName", nullif(region_id, '') as "RegionId",
    nullif(region_name, '') as "RegionName", focus_resource_id as "ResourceId", cast(null as varchar) as "ResourceName",
    focus_resource_type(focus_resource_id, product_family) as "ResourceType",
    service_category as "ServiceCategory", service_name as "ServiceName", service_subcategory as "ServiceSubcategory",
    case when is_priced then sku_id end as "SkuId", case when is_priced then usage_type end as "SkuMeter",
    case when is_priced then focus_sku_details(instance_type) end as "SkuPriceDetails",
    case when is_priced then sku_price_id end as "SkuPriceId",
    account_id as "SubAccountId", coalesce(account_name, account_id) as "SubAccountName", 'Account' as "SubAccountType",
    tag_json as "Tags", focus_amortized_cost(half, commitment_id, amortized_cost_usd) as "x_AmortizedCost",
    billing_entity as "x_BillingEntity", cast(null as varchar) as "x_Discounts", charge_type as "x_LineItemType",
    -- ListCost may not be null; what AWS states no public price for stays unknown here.
    case when half = 'accrued' then 0 * list_cost_usd else list_cost_usd end as "x_ListCost",
    operation as "x_Operation", billed_unit as "x_PricingUnit",
    service as "x_ProductCode", service_code as "x_ServiceCode", usage_type as "x_UsageType"
from priced
