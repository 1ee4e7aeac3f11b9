-- What a commitment is known by wherever it is told: the end of its ARN, or the id that DescribeReservedInstances gives alone.
-- args: commitment_id
lower(regexp_extract(commitment_id, '([^/]*)$', 1))
