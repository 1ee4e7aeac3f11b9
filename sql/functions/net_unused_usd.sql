-- Unused Savings Plan commitment after discounts: the gross difference scaled by net over gross (facts 2.3,
-- the scaled form; AWS gives no net "used" column). Without net values it is the gross difference.
-- args: gross_unused, net_fee, gross_fee
-- unit: usd
case
    when net_fee is null or coalesce(gross_fee, 0) = 0 then gross_unused
    else cast(cast(gross_unused as double) * cast(net_fee as double) / cast(gross_fee as double) as decimal(20, 10))
end
