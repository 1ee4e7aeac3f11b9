-- Milliseconds as hours, to ten places on every engine.
-- args: ms
-- unit: hours
cast(cast(ms // 3600000 as decimal(20, 0)) + apportioned_usd(cast(1 as decimal(20, 10)), ms % 3600000, 3600000)
    as decimal(38, 10))
