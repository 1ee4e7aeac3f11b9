-- What a FOCUS line bills: instance, capacity_unused, block_fee and so on (ref_usage_kind); other where it is no
-- instance time.
-- args: line, kind_class, is_usage
case
    -- A discount is no fee of a block or a training plan; what is given back of a block may come as a correction.
    when (kind_class = 'block_fee' or (not focus_is_use(line) and (kind_class = 'block_time'
            or coalesce(line.capacity_reservation_id, line.commitment_discount_id) like '%:training-plan/%')))
        and line.charge_category not in ('Tax', 'Credit')
        and (line.charge_category <> 'Adjustment' or coalesce(line.charge_class = 'Correction', false)) then 'block_fee'
    when is_usage and line.capacity_reservation_status = 'Unused' then 'capacity_unused'
    -- Only usage has hours; what a commitment left unused, and what corrects an earlier month, has none.
    -- SageMaker writes the volumes of an instance under the kind of the instance.
    when is_usage and line.commitment_discount_status is distinct from 'Unused'
            and coalesce(line.usage_type, '') not like '%:VolumeUsage%'
        then replace(coalesce(kind_class, 'other'), 'block_time', 'instance')
    else 'other'
end
