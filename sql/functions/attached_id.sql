-- What a line of storage or network hangs on, as runs name it: a volume, a file system, or the instance that sent the bytes.
-- args: resource_id, usage_type
coalesce(storage_id(resource_id),
    case when resource_id like 'i-%' and regexp_matches(usage_type, 'DataTransfer|AWS-(In|Out)-Bytes') then resource_id end)
