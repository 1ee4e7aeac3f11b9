-- The part of a stay's cost that falls on a stretch of time meeting it; it flows evenly, so touching stretches sum to
-- it.
-- args: cost, stay_from_ms, stay_to_ms, from_ms, to_ms
-- unit: usd
piece_usd(cost, greatest(from_ms, stay_from_ms) - stay_from_ms, least(to_ms, stay_to_ms) - stay_from_ms,
    stay_to_ms - stay_from_ms)
