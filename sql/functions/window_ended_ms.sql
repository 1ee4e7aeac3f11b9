-- Where in its hour the billed time of a machine ends; see window_started_ms.
-- args: hour_ms, billed_ms, hour_before_ms, hour_after_ms
-- unit: ms
case when coalesce(hour_before_ms = hour_ms - 3600000, false) and not coalesce(hour_after_ms = hour_ms + 3600000, false)
    then hour_ms + least(billed_ms, 3600000) else hour_ms + 3600000 end
