-- When a stay of a resource ended: an open one with its attempt.
-- args: joined_at, left_at, attempt_ended_at
greatest(joined_at, coalesce(left_at, attempt_ended_at, joined_at))
