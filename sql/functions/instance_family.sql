-- The family of an instance type, such as p5 of p5.48xlarge and of ml.p5.48xlarge; null where there is none.
-- args: instance_type
nullif(split_part(replace(instance_type, 'ml.', ''), '.', 1), '')
