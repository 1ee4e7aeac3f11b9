-- Whether a provider or publisher is AWS; FOCUS leaves AWS's own name out at times.
-- args: name
coalesce(name like 'AWS%' or name like 'Amazon%', true)
