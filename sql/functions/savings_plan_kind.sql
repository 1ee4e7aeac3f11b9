-- Which kind of Savings Plan it is, by the words its fee stands under: offering type, usage type such as
-- `ComputeSP:1yrNoUpfront`, product.
-- args: offering
case
    when offering like '%EC2Instance%' or offering like '%EC2 Instance%' then 'ec2_instance_savings_plan'
    when offering like '%SageMaker%' or offering like '%MachineLearning%' then 'sagemaker_savings_plan'
    when offering like '%Database%' then 'database_savings_plan'
    else 'compute_savings_plan'
end
