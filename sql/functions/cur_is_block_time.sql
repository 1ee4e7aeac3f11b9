-- Whether a fee has paid for the hours of a report line: those of a Capacity Block or of a training plan.
-- How a plan's hours look on the bill is unverified: ReservedCluster usage, and SageMaker accelerators at no price
-- (decision 0008).
-- args: line, accelerator
coalesce(
    line.line_item_operation like '%:CB%' or line.capacity_reservation_capacity_reservation_type like '%Capacity Block%'
    or line.kind_class in ('block_fee', 'block_time')
    or (line.kind_class = 'instance' and line.line_item_product_code = 'AmazonSageMaker'
        and line.line_item_line_item_type = 'Usage' and accelerator.instance_type is not null and line.is_free),
    false
)
