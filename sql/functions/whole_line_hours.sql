-- The accelerator-hours of a bill line that falls whole into one bucket; those of a line that is shared out stand on
-- its pieces.
-- args: bucket, line_class, usage_quantity, accelerator_count
-- unit: accelerator-hours
case when bucket is not null and line_class in ('instance', 'capacity_unused', 'warm_pool')
    then usage_quantity * accelerator_count else 0 end
