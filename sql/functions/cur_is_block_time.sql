-- Whether a fee has paid for the hours of a report line: those of a Capacity Block or of a training plan.
-- over: the combinations of stg_aws__cur_line_kind with their catalog entry
-- How a plan's hours look on the bill is unverified: ReservedCluster usage, and SageMaker accelerators at no price
-- (decision 0008).
coalesce(
    line_item_operation like '%:CB%' or capacity_reservation_capacity_reservation_type like '%Capacity Block%'
    or kind_class in ('block_fee', 'block_time')
    or (kind_class = 'instance' and line_item_product_code = 'AmazonSageMaker' and line_item_line_item_type = 'Usage'
        and accelerator.instance_type is not null and is_free),
    false
)
