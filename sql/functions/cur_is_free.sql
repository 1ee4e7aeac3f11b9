-- Whether a SageMaker report line costs nothing and lists at nothing: it may be an hour that a training plan has paid for.
-- over: aws_cur_line_item
case when line_item_product_code = 'AmazonSageMaker'
    then coalesce(line_item_unblended_cost = 0 and coalesce(pricing_public_on_demand_cost, 0) = 0, false) else false end
