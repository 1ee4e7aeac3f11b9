-- An instance type without what it is for, which some product attributes add: ml.p4d.24xlarge-Training.
-- args: instance_type
regexp_replace(instance_type, '-[A-Z][A-Za-z]*$', '')
