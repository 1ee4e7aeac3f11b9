-- When a machine left its attempt; an open stay ends with the attempt.
-- args: joined_at, left_at, attempt_ended_at
greatest(joined_at, coalesce(left_at, attempt_ended_at, joined_at))
