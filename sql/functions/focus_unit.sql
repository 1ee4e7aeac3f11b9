-- A unit of the price list as FOCUS writes units; one we have no word for stays as AWS writes it.
-- args: unit
case lower(unit)
    when 'hrs' then 'Hours'
    when 'hours' then 'Hours'
    when 'hour' then 'Hours'
    when 'gb-mo' then 'GB-Months'
    when 'gb-month' then 'GB-Months'
    when 'gb-hours' then 'GB-Hours'
    when 'vcpu-hours' then 'vCPU-Hours'
    when 'quantity' then 'Units'
    when 'unit' then 'Units'
    when 'requests' then 'Requests'
    when 'second' then 'Seconds'
    when 'minute' then 'Minutes'
    else coalesce(unit, 'Units')
end
