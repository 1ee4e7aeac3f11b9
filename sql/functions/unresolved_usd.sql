-- The cost of an accelerator's time that is billed by the day or month, whose hours nobody can tell; else nothing.
-- args: line_class, accelerator_family, usage_started_at, usage_ended_at, cost
-- unit: usd
case when line_class = 'instance' and accelerator_family <> 'none'
    and date_diff('second', usage_started_at, usage_ended_at) > 3600 then cost else 0 end
