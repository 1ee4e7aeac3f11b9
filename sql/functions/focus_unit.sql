-- A unit of the price list in a form that the unit pattern of FOCUS accepts (facts standards-2026 1.8): a unit, a unit
-- for a time such as GB-Months, or a number of units. One without such a form is Units; x_PricingUnit has AWS's own.
-- args: unit
case
    when unit is null then 'Units'
    when lower(unit) in ('hrs', 'hr', 'hour', 'hours') then 'Hours'
    when lower(unit) in ('quantity', 'unit') then 'Units'
    when lower(unit) in ('api calls', 'request') then 'Requests'
    when lower(unit) in ('gigabytes', 'gigabyte') then 'GB'
    when lower(unit) in ('second', 'minute', 'day', 'month', 'year')
        then upper(left(unit, 1)) || lower(substr(unit, 2)) || 's'
    when lower(unit) in ('1k tokens', '1000 tokens') then '1000 Tokens'
    when lower(unit) in ('1m tokens', '1000000 tokens') then '1000000 Tokens'
    when lower(unit) = 'lambda-gb-second' then 'GB-Seconds'
    when regexp_matches(lower(unit), '^[a-z]+-(mo|month|months)$')
        then upper(left(unit, 1)) || substr(split_part(unit, '-', 1), 2) || '-Months'
    when regexp_matches(lower(unit), '^[a-z]+-(hr|hrs|hour|hours)$')
        then upper(left(unit, 1)) || substr(split_part(unit, '-', 1), 2) || '-Hours'
    when regexp_matches(lower(unit), '^[a-z]+-(second|seconds)$')
        then upper(left(unit, 1)) || substr(split_part(unit, '-', 1), 2) || '-Seconds'
    when regexp_matches(unit, '^[A-Za-z]+$') then upper(left(unit, 1)) || substr(unit, 2)
    when regexp_matches(unit, '^[0-9]+ [A-Z][A-Za-z]*$|^[A-Z][A-Za-z]*/([A-Z][a-z]+|[0-9]+ [A-Z][a-z]+)$') then unit
    else 'Units'
end
