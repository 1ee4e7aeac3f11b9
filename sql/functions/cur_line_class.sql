-- What a report line bills: instance, capacity_unused, block_fee and so on (ref_usage_kind); other where it is no
-- instance time.
-- args: line, rule
case
    when line.line_item_operation in ('EKSPod-EC2', 'ECSTask-EC2') then 'split_child'
    -- What a Capacity Block or a training plan costs, and what of it was given back.
    when (rule.effective_rule in ('fee', 'refund')
            or (rule.charge_category = 'Usage' and line.kind_class = 'block_fee'))
        and (line.kind_class in ('block_fee', 'block_time') or (line.line_item_product_code = 'AmazonSageMaker'
            and coalesce(line.reservation_reservation_a_r_n like '%:training-plan/%', line.is_of_training_plan)))
        then 'block_fee'
    -- Only usage has hours: a negation, a tax or a credit may name the same usage type.
    when rule.charge_category is distinct from 'Usage' or rule.effective_rule = 'zero' or line.kind_class = 'block_fee'
        then 'other'
    -- The bill's own label of a reservation's hour counts; Reserved repeats hours that stand on other lines.
    when line.kind_class in ('instance', 'capacity_unused')
        and line.capacity_reservation_capacity_reservation_status is not null
        then case line.capacity_reservation_capacity_reservation_status
            when 'Unused' then 'capacity_unused' when 'Reserved' then 'capacity_marker' else 'instance' end
    when line.kind_class = 'block_time' then 'instance'
    -- SageMaker writes the volumes of an instance under the kind of the instance.
    when line.line_item_usage_type like '%:VolumeUsage%' then 'other'
    else coalesce(line.kind_class, 'other')
end
