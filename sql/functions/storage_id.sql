-- The volume (`vol-…`) or file system (`fs-…`) a resource is, as its runs name it; null for any other resource.
-- args: resource_id
case when resource_id like 'vol-%' or resource_id like 'fs-%' then resource_id
    when resource_id like '%:file-system/fs-%' or resource_id like '%:volume/vol-%'
        then regexp_extract(resource_id, '((?:fs|vol)-[0-9A-Za-z]+)$', 1) end
