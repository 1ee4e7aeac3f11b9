-- What serves a model on a machine of our own.
-- args: instance_type, accelerator_family
case when instance_type like 'ml.%' then 'sagemaker' else coalesce(accelerator_family, 'cpu') end
