-- One row per line of a delivered FOCUS export, with the columns of stg_aws__focus_charge.
-- partition: billing_period
-- stored: no
-- Read by the FOCUS export alone. What 1.2 has and 1.0 lacks (facts aws-billing 1.4), or AWS may leave null, is filled
-- as far as the line shows it; the rest stands as delivered.
with line as (
    select
        *,
        coalesce(commitment_discount_category, case when commitment_discount_id is not null
            then case when commitment_discount_type like 'Savings%' then 'Spend' else 'Usage' end end) as commitment,
        coalesce(billing_period_start, cast(billing_period || '-01' as timestamp)) as period_start,
        charge_category in ('Usage', 'Purchase') as is_priced,
        coalesce(invoice_issuer_name, host_provider_name, 'AWS') as issuer,
        coalesce(contracted_cost, effective_cost, 0) as contracted_usd,
        coalesce(pricing_quantity, consumed_quantity) as quantity
    from aws_focus_line_item
)

select
    availability_zone as "AvailabilityZone",
    coalesce(billed_cost, 0) as "BilledCost",
    billing_account_id as "BillingAccountId",
    coalesce(billing_account_name, billing_account_id) as "BillingAccountName",
    coalesce(billing_account_type, 'Management Account') as "BillingAccountType", billing_currency as "BillingCurrency",
    period_start as "BillingPeriodStart", cast(period_start + interval '1' month as timestamp) as "BillingPeriodEnd",
    capacity_reservation_id as "CapacityReservationId", capacity_reservation_status as "CapacityReservationStatus",
    charge_category as "ChargeCategory", charge_class as "ChargeClass",
    coalesce(charge_description, x_usage_type, sku_meter, charge_category) as "ChargeDescription",
    coalesce(charge_frequency, case when charge_category = 'Usage' then 'Usage-Based' else 'One-Time' end)
        as "ChargeFrequency",
    charge_period_start as "ChargePeriodStart", charge_period_end as "ChargePeriodEnd",
    commitment as "CommitmentDiscountCategory",
    commitment_discount_id as "CommitmentDiscountId", commitment_discount_name as "CommitmentDiscountName",
    case when commitment_discount_id is not null and is_priced then coalesce(commitment_discount_quantity, case
        when commitment = 'Usage' then quantity when charge_category = 'Purchase' then billed_cost
        else effective_cost end) end as "CommitmentDiscountQuantity",
    commitment_discount_status as "CommitmentDiscountStatus",
    coalesce(commitment_discount_type,
        case commitment when 'Spend' then 'Savings Plan' when 'Usage' then 'Reserved Instance' end)
        as "CommitmentDiscountType",
    case when commitment_discount_id is not null and is_priced then coalesce(commitment_discount_unit,
        case commitment when 'Spend' then billing_currency else focus_unit(pricing_unit) end) end
            as "CommitmentDiscountUnit",
    commitment_program_eligibility_details as "CommitmentProgramEligibilityDetails",
    consumed_quantity as "ConsumedQuantity",
    case when consumed_quantity is not null then focus_unit(coalesce(consumed_unit, pricing_unit)) end
        as "ConsumedUnit",
    contract_applied as "ContractApplied", contracted_usd as "ContractedCost",
    case when is_priced then focus_unit_price(contracted_usd, quantity, null) end as "ContractedUnitPrice",
    coalesce(effective_cost, 0) as "EffectiveCost",
    invoice_id as "InvoiceId", invoice_detail_id as "InvoiceDetailId", issuer as "InvoiceIssuerName",
    coalesce(list_cost, contracted_usd) as "ListCost",
    case when is_priced then focus_unit_price(coalesce(list_cost, contracted_usd), quantity, null) end
        as "ListUnitPrice",
    pricing_category as "PricingCategory",
    coalesce(pricing_currency, billing_currency) as "PricingCurrency",
    case when is_priced then focus_unit_price(contracted_usd, quantity, null) end
        as "PricingCurrencyContractedUnitPrice",
    coalesce(effective_cost, 0) as "PricingCurrencyEffectiveCost",
    case when is_priced then focus_unit_price(coalesce(list_cost, contracted_usd), quantity, null) end
        as "PricingCurrencyListUnitPrice",
    case when is_priced then quantity end as "PricingQuantity",
    case when is_priced and quantity is not null then focus_unit(pricing_unit) end as "PricingUnit",
    coalesce(host_provider_name, issuer) as "ProviderName",
    coalesce(service_provider_name, issuer) as "PublisherName",
    host_provider_name as "HostProviderName", coalesce(service_provider_name, issuer) as "ServiceProviderName",
    region_id as "RegionId", case when region_id is not null then coalesce(region_name, region_id) end as "RegionName",
    resource_id as "ResourceId", case when resource_id is not null then resource_name end as "ResourceName",
    case when resource_id is not null then coalesce(resource_type, focus_resource_type(resource_id, null)) end
        as "ResourceType",
    coalesce(line.service_category, service.service_category, 'Other') as "ServiceCategory",
    line.service_name as "ServiceName",
    coalesce(line.service_subcategory,
        case when service.service_category = coalesce(line.service_category, service.service_category)
            then service.service_subcategory end,
        'Other (' || coalesce(line.service_category, service.service_category, 'Other') || ')') as "ServiceSubcategory",
    case when is_priced then coalesce(sku_id, sku_price_id, line.service_name) end as "SkuId",
    case when is_priced then coalesce(sku_meter, x_usage_type) end as "SkuMeter",
    case when is_priced then focus_sku_details(sku_instance_type) end as "SkuPriceDetails",
    case when is_priced then coalesce(sku_price_id, sku_id, line.service_name) end as "SkuPriceId",
    sub_account_id as "SubAccountId",
    case when sub_account_id is not null then coalesce(sub_account_name, sub_account_id) end as "SubAccountName",
    case when sub_account_id is not null then coalesce(sub_account_type, 'Account') end as "SubAccountType",
    tag_json as "Tags", x_amortized_cost as "x_AmortizedCost", x_billing_entity as "x_BillingEntity",
    x_discounts as "x_Discounts", x_line_item_type as "x_LineItemType",
    x_list_cost as "x_ListCost", x_operation as "x_Operation", x_pricing_unit as "x_PricingUnit",
    x_product_code as "x_ProductCode", x_service_code as "x_ServiceCode",
    coalesce(x_usage_type, sku_meter) as "x_UsageType"
from line
left join (
    select service_name, max(service_category) as service_category, max(service_subcategory) as service_subcategory
    from ref_service
    group by service_name
) as service on service.service_name = line.service_name
