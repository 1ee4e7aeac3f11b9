-- One row per month, source and pod of EKS: the instance that AWS splits for it, and the accelerators it held.
-- partition: billing_period, source_name
select
    source_name, billing_period, line_item_resource_id as pod_id, max(split_line_item_parent_resource_id) as resource_id,
    -- A pod that starts or ends within an hour holds its accelerators for a part of it.
    cast(max(case when line_item_usage_type like '%Accelerator-Hours' then ceil(split_line_item_split_usage) end)
        as bigint) as accelerator_count
from aws_cur_line_item
where line_item_operation = 'EKSPod-EC2' and '' not in (line_item_resource_id, split_line_item_parent_resource_id)
group by source_name, billing_period, line_item_resource_id
