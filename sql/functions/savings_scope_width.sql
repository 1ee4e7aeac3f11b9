-- The narrowest scope of the effective savings rate that contains a line: 1 classic, 2 with SageMaker, 3 with Spot, 4
-- all usage.
-- args: effective_rule, service, eligibility
case
    when effective_rule = 'savings_plan_unused' then
        case when service like '%MachineLearning%' then 2 when service like '%Database%' then 4 else 1 end
    when effective_rule = 'reservation_unused' then
        case when service like '%EC2%' or service like '%Elastic Compute%' then 1 else 4 end
    when eligibility in ('ec2_instance', 'rate_unknown', 'fargate', 'lambda') then 1
    when eligibility in ('sagemaker_instance', 'hyperpod', 'warm_pool') then 2
    when eligibility = 'spot' then 3
    else 4
end
