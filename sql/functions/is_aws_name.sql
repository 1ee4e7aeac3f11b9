-- Whether a provider or publisher is AWS; FOCUS leaves AWS's own name out at times.
-- args: name
coalesce(lower(name) like 'aws%' or lower(name) like 'amazon%', true)
