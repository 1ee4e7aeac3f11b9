-- Where in its hour the billed time of a machine begins. The bill does not show where the seconds lie: a first hour ends
-- on the hour, a
-- last hour starts on it (facts training-runs 4); a lone short hour could lie anywhere, so its window is the whole
-- hour.
-- args: hour_ms, billed_ms, hour_before_ms, hour_after_ms
-- unit: ms
case when coalesce(hour_after_ms = hour_ms + 3600000, false) and not coalesce(hour_before_ms = hour_ms - 3600000, false)
    then hour_ms + 3600000 - least(billed_ms, 3600000) else hour_ms end
