-- Whether a machine's line says no time it was used in: no hours or none above nothing, no end, or one before its start.
-- args: line_class, accelerator_family, usage_quantity, usage_started_at, usage_ended_at
line_class = 'instance' and accelerator_family <> 'none'
    and not coalesce(usage_quantity * 7200000 >= 1 and usage_ended_at > usage_started_at, false)
