-- What a FOCUS line charges, as a cost and usage report groups it; `listed` is that of the line-item type, where it has
-- one (our own export).
-- args: line, service, listed
case
    -- Tax on support is tax, and a credit on it a credit.
    when service like '%Support%' and is_aws_name(line.service_provider_name)
        and line.charge_class is distinct from 'Correction'
        and coalesce(listed, line.charge_category) in ('Usage', 'Purchase') then 'Support'
    when listed is not null then listed
    when line.charge_category in ('Tax', 'Credit') then line.charge_category
    -- What nothing used of a commitment is part of its fee there, and no usage.
    when line.charge_category = 'Usage' and line.commitment_discount_status = 'Unused'
        and line.charge_class is distinct from 'Correction' then 'Purchase'
    when line.charge_class = 'Correction' and line.billed_cost < 0 then 'Refund'
    when line.charge_class is distinct from 'Correction' and line.charge_category in ('Usage', 'Purchase')
        then line.charge_category
    -- FOCUS's own catch-all: money in either direction, so neither a refund nor usage.
    else 'Adjustment'
end
