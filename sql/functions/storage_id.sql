-- The volume (`vol-…`) or file system (`fs-…`) a resource is, as its runs name it; null for any other resource.
-- args: resource_id
case when resource_id like 'vol-%' or resource_id like 'fs-%' then resource_id
    when resource_id like '%/fs-%'
        then nullif(regexp_extract(resource_id, ':file-system/(fs-[0-9A-Za-z]+)$', 1), '') end
