-- Why a commitment saved nothing, in words; null where it saved, or where it cost as much as the list price.
-- args: committed, used, covered, covered_list, is_use_missing
case
    when is_use_missing then 'unknown: the bill does not show what used its fee'
    when covered_list >= committed then null
    when committed is null then 'unknown: no fee of it is on the bill'
    when covered_list is null then 'unknown: some of what it covered has no public price'
    when used = 0 then 'nothing used it'
    when covered >= covered_list then 'its rate is no lower than the list price: prices fell after it was bought'
    when covered > 0 then 'it was used less than its break-even utilization'
    else 'the lines it covered have no rate'
end
