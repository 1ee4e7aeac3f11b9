-- Whether a SageMaker report line costs nothing and lists at nothing: it may be an hour that a training plan paid for.
-- args: service, cost, public_cost
case when service = 'AmazonSageMaker' then coalesce(cost = 0 and coalesce(public_cost, 0) = 0, false) else false end
