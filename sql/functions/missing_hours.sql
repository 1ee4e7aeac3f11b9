-- Why the hours of an accelerator that cost something are unknown, or those of any line that ends before it starts;
-- null where the bill has them.
-- args: line_class, accelerator_family, usage_quantity, usage_started_at, usage_ended_at, cost
case when cost = 0 then null
when line_class = 'instance' and accelerator_family <> 'none' then case
    when not coalesce(has_time(usage_quantity) and usage_ended_at > usage_started_at, false) then 'no time'
    when date_diff('second', usage_started_at, usage_ended_at) > 3600 then 'billed by the day or month'
end
when usage_ended_at < usage_started_at then 'end before start' end
