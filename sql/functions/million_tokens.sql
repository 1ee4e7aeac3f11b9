-- A Bedrock quantity in millions of tokens; null where the unit counts no tokens, as an hour of throughput does not.
-- args: pricing_unit, quantity, description
-- unit: million tokens
-- Facts aws-billing 4.6: thousands, millions, or Marketplace units whose description has million in its third field.
case
    when lower(pricing_unit) = '1k tokens' then cast(quantity * cast(0.001 as decimal(4, 3)) as decimal(30, 13))
    when lower(pricing_unit) = '1m tokens' then cast(quantity as decimal(30, 13))
    when lower(pricing_unit) = 'units' and split_part(description, '|', 3) like '%Million%'
        then cast(quantity as decimal(30, 13))
end
