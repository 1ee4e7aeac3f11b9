-- The exclusive end of a charge: AWS ends some lines a second, or a part of one, before the hour, and some never.
-- args: ended_at, month
case
    when ended_at is null then cast(month + interval '1' month as timestamp)
    when minute(ended_at) = 59 and second(ended_at) = 59 then date_trunc('second', ended_at) + interval '1' second
    else ended_at
end
