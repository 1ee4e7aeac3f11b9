-- A UTC timestamp as milliseconds since 1970.
-- args: moment
-- unit: ms
date_diff('millisecond', timestamp '1970-01-01 00:00:00', moment)
