-- The bucket of a bill line that falls whole into one; lines that are shared out over time have the buckets of their
-- pieces.
-- args: line_class, effective_rule, charge_category, accelerator_family, is_shared_usage, named_run_id
case
    -- An unused hour of a Capacity Block takes its part of the fee, and keeps what it costs itself.
    when line_class = 'capacity_unused' then 'capacity_unused'
    when effective_rule in ('savings_plan_unused', 'reservation_unused') then 'commitment_unused'
    when line_class = 'warm_pool' then 'idle'
    -- A pod's row repeats the cost of its machine, and a reservation's its hours: a run's own use neither is.
    when charge_category = 'Usage' and named_run_id is not null
        and line_class not in ('split_child', 'capacity_marker') then 'run'
    -- Which instances of a dedicated host its price is for, the bill does not show.
    when line_class in ('serving', 'serving_hour') then 'serving'
    when line_class in ('instance', 'host') and accelerator_family <> 'none' then 'unattributed'
    when charge_category = 'Usage' and is_shared_usage then 'shared'
    else 'other'
end
