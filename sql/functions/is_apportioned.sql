-- Whether a bill line is shared out over time among runs: an instance-hour that runs can use, or a Capacity
-- Block's fee and its unused hours. Every other line falls whole into one bucket.
-- args: line_class, market, resource_id, accelerator_family, claimed_resource_id, usage_started_at, usage_ended_at
coalesce(
    line_class = 'block_fee'
    or (line_class = 'capacity_unused' and market = 'capacity_block')
    or (
        line_class = 'instance'
        and resource_id is not null
        and (accelerator_family <> 'none' or claimed_resource_id is not null)
        and date_diff('second', usage_started_at, usage_ended_at) <= 3600
        and usage_ended_at > usage_started_at
    ),
    false
)
