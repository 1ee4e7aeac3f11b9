-- What a line of storage or network hangs on, as runs name it: a volume, a file system, or the instance that sent the
-- bytes.
-- args: resource_id, usage_type
-- Every other line of the bill passes here: nothing but prefixes and ends of text.
coalesce(storage_id(resource_id), case when resource_id like 'i-%' and usage_type like '%-Bytes' then resource_id end)
