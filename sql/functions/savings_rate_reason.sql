-- Why there is no savings rate, or a negative one, in words; null where it saved, or where it cost as much as at list.
-- args: list_cost, usage_cost, unused_cost, is_use_missing, is_gross_unknown, is_use_unpriced
case
    when is_use_missing then 'unknown: the bill does not show what used some fees'
    when is_gross_unknown then 'unknown: the bill shows costs after negotiated discounts alone'
    when usage_cost is null then 'unknown: the bill has no cost of some use'
    when unused_cost is null then 'unknown: the bill has no fee of a commitment that was used'
    when is_use_unpriced then 'unknown: some use under a commitment has no public price'
    when usage_cost + unused_cost <= list_cost then null
    when list_cost = 0 then 'commitments without any use in the scope'
    when usage_cost > list_cost
        then 'usage costs more than its list price: prices fell below the rates that were bought'
    else 'unused commitments cost more than the rates save'
end
