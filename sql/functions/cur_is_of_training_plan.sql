-- Whether what a report line bills is a SageMaker training plan by its resource.
-- over: aws_cur_line_item
case when line_item_product_code = 'AmazonSageMaker' then coalesce(line_item_resource_id like '%:training-plan/%', false) else false end
