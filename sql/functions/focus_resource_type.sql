-- What kind of thing a resource id names: by its ARN, else by what ids of its kind begin with.
-- args: resource_id, product_family
case
    when resource_id like 'arn:%' then coalesce(
        nullif(regexp_extract(resource_id, '^arn:[^:]*:[^:]*:[^:]*:[^:]*:([A-Za-z][A-Za-z-]*)[/:]', 1), ''),
        nullif(regexp_extract(resource_id, '^arn:[^:]*:([a-z0-9-]+):', 1), ''), 'resource')
    when resource_id like 'i-%' then 'instance'
    when resource_id like 'vol-%' then 'volume'
    when resource_id like 'snap-%' then 'snapshot'
    when resource_id like 'eni-%' then 'network-interface'
    when resource_id like 'nat-%' then 'natgateway'
    when resource_id like 'cr-%' then 'capacity-reservation'
    when resource_id is not null then coalesce(product_family, 'resource')
end
