-- What a report line bills: instance, capacity_unused, block_fee and so on (ref_usage_kind); other where it is no
-- instance time.
-- over: the combinations of stg_aws__cur_line_kind with the rule of their charge type
case
    when line_item_operation in ('EKSPod-EC2', 'ECSTask-EC2') then 'split_child'
    -- What a Capacity Block or a training plan costs, and what of it was given back.
    when (rule.effective_rule in ('fee', 'refund') or (rule.charge_category = 'Usage' and kind_class = 'block_fee'))
        and (kind_class in ('block_fee', 'block_time') or (line_item_product_code = 'AmazonSageMaker'
            and coalesce(reservation_reservation_a_r_n like '%:training-plan/%', is_of_training_plan))) then 'block_fee'
    -- Only usage has hours: a negation, a tax or a credit may name the same usage type.
    when rule.charge_category is distinct from 'Usage' or rule.effective_rule = 'zero' or kind_class = 'block_fee'
        then 'other'
    -- What the bill itself says of a reservation's hour counts; Reserved repeats hours that stand on other lines.
    when kind_class in ('instance', 'capacity_unused') and capacity_reservation_capacity_reservation_status is not null
        then case capacity_reservation_capacity_reservation_status
            when 'Unused' then 'capacity_unused' when 'Reserved' then 'capacity_marker' else 'instance' end
    when kind_class = 'block_time' then 'instance'
    -- SageMaker writes the volumes of an instance under the kind of the instance.
    when line_item_usage_type like '%:VolumeUsage%' then 'other'
    else coalesce(kind_class, 'other')
end
