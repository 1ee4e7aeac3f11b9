-- The reservation a text names: cr-… of EC2, the ARN of a SageMaker training plan; null where it names none, as an
-- endpoint named ocr-chat does.
-- args: text
nullif(regexp_extract(text,
    '(?:^|[^0-9A-Za-z_-])(cr-[0-9a-z]+|arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]+:training-plan/[A-Za-z0-9-]+)', 1), '')
