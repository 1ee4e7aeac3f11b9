-- One row per Bedrock usage type of a delivered bill, with its product and unit: what of which model it bills.
-- partition: billing_period
-- An exact grammar of region, model, component and suffix, with its words in ref_bedrock_word. A component that the
-- list lacks is never taken for one that ends alike: CacheReadInputTokenCount is no InputTokenCount.
with billed as (
    select billing_period, line_item_product_code as service, bedrock_product as product_name,
        coalesce(line_item_usage_type, '') as usage_type, coalesce(bedrock_unit, '') as billed_unit,
        split_part(coalesce(line_item_line_item_description, ''), '|', 3) as description_unit,
        bedrock_meter_id(bedrock_product, line_item_product_code, line_item_usage_type, bedrock_unit,
            line_item_line_item_description) as bedrock_meter_id
    from stg_aws__cur_combination
    where bedrock_product is not null

    union

    select billing_period, coalesce(x_service_code, service_name, ''), coalesce(service_name, ''),
        coalesce(x_usage_type, sku_meter, ''), coalesce(x_pricing_unit, pricing_unit, ''),
        split_part(coalesce(charge_description, ''), '|', 3), focus_bedrock_meter_id(line)
    from aws_focus_line_item as line
    where focus_bedrock_meter_id(line) is not null
),

-- On the Marketplace the product names the model: `USE1-MP:USE1_InputTokenCount-Units`.
spelled as (
    select
        *, usage_type like '%-MP:%' as is_resold,
        case when usage_type like '%-MP:%'
            then regexp_extract(usage_type, '^[A-Z]+[0-9]*-MP:[A-Z]+[0-9]*_(.+)-Units$', 1)
            else regexp_extract(usage_type, '^[A-Z]+[0-9]*-(.+)$', 1) end as meter,
        nullif(replace(product_name, ' (Amazon Bedrock Edition)', ''), '') as product_model
    from billed
),

tail as (
    select component.word || replace(suffix.word, 'none', '') as tail, component.token_kind, suffix.tier, suffix.route,
        suffix.context, component.scheme in ('camel', 'snake') as is_resold
    from ref_bedrock_word as component
    join ref_bedrock_word as suffix on suffix.scheme = component.scheme and suffix.word_kind = 'suffix'
    where component.word_kind = 'component'
),

token as (
    select
        spelled.billing_period, spelled.bedrock_meter_id, tail.token_kind, tail.tier, tail.route, tail.context,
        case when spelled.is_resold then spelled.product_model
            else left(spelled.meter, length(spelled.meter) - length(tail.tail) - 1) end as billed_model,
        row_number() over (partition by spelled.billing_period, spelled.bedrock_meter_id
            order by length(tail.tail) desc) as tail_no
    from spelled
    join tail
        on tail.is_resold = spelled.is_resold
        and case when spelled.is_resold then spelled.meter = tail.tail
            else right(spelled.meter, length(tail.tail) + 1) = '-' || tail.tail end
),

parsed as (
    select billing_period, bedrock_meter_id, token_kind, tier, route, context, billed_model
    from token
    where tail_no = 1 and not regexp_matches(billed_model,
        '(^|-)(input|output|cache|read|write|tokens?|count|mantle|batch|flex|priority|standard|global)(-|$)')

    union all

    select
        spelled.billing_period, spelled.bedrock_meter_id, capacity.token_kind, capacity.tier, null, null,
        coalesce(case when spelled.is_resold then spelled.product_model end,
            nullif(regexp_extract(spelled.meter,
                '^(.+)-(ProvisionedThroughput|reserved|CustomModelUnit|Customization)', 1), ''))
    from spelled
    join ref_bedrock_word as capacity on capacity.word_kind = 'pattern' and regexp_matches(spelled.meter, capacity.word)
),

known as (
    select billing_period, billed_model from parsed where billed_model is not null
    union
    select billing_period, billed_model from (select distinct billing_period from spelled) cross join ref_bedrock_model
),

-- What the grammar does not know is of the model that it begins with: `USE1-NovaLite-web-search-requests`.
unparsed as (
    select
        spelled.billing_period, spelled.bedrock_meter_id,
        max_by(known.billed_model, length(known.billed_model)) as billed_model
    from spelled
    left join parsed using (billing_period, bedrock_meter_id)
    join known
        on known.billing_period = spelled.billing_period
        and left(spelled.meter, length(known.billed_model) + 1) = known.billed_model || '-'
    where parsed.token_kind is null and not spelled.is_resold
    group by spelled.billing_period, spelled.bedrock_meter_id
),

named as (
    select
        spelled.*, coalesce(parsed.token_kind, 'unknown') as token_kind, parsed.tier, parsed.route, parsed.context,
        coalesce(parsed.billed_model, case when spelled.is_resold then spelled.product_model end,
            unparsed.billed_model) as billed_model
    from spelled
    left join parsed using (billing_period, bedrock_meter_id)
    left join unparsed using (billing_period, bedrock_meter_id)
)

select
    named.billing_period, named.bedrock_meter_id, named.service, named.product_name, named.usage_type,
    named.billed_unit, coalesce(model.model, named.billed_model) as model, named.token_kind, kind.billed_by,
    named.tier, named.route, named.context,
    -- NoCommit has no term, and neither has capacity of which the usage type names none.
    case when kind.billed_by = 'capacity'
        then nullif(regexp_extract(named.usage_type, '[0-9]+-?[Mm]onths?', 0), '') end as purchase_term,
    case when kind.billed_by in ('tokens', 'images') then unit.million_tokens_per_unit end as million_tokens_per_unit
from named
join ref_token_kind as kind on kind.token_kind = named.token_kind
left join ref_bedrock_model as model on model.billed_model = named.billed_model
left join ref_bedrock_unit as unit
    on unit.billed_unit = lower(named.billed_unit)
    and (unit.description_unit is null or strpos(lower(named.description_unit), unit.description_unit) > 0)
