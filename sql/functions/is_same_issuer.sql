-- Whether two names are of one issuer of invoices. AWS alone means any of its companies; a missing name fits all.
-- args: name, other
'' in (name, other) or lower(name) = lower(other)
    or is_aws_name(name) and is_aws_name(other) and (lower(name) in ('aws', 'amazon web services')
        or lower(other) in ('aws', 'amazon web services'))
