-- Whether what a report line bills is a SageMaker training plan by its resource.
-- args: service, resource_id
case when service = 'AmazonSageMaker' then coalesce(resource_id like '%:training-plan/%', false) else false end
