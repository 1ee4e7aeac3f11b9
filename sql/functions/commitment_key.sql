-- The key of a commitment in every source: the end of its ARN, or the id that DescribeReservedInstances gives alone.
-- args: commitment_id
lower(regexp_extract(commitment_id, '([^/]*)$', 1))
