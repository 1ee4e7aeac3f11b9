-- What Savings Plans and reservations may cover a bill line of usage, a row of ref_commitment_eligibility; null where
-- the line is
-- no usage of its own: fees, and lines that repeat hours which stand on others.
-- What facts leave unverified is outside, unless `[policy] assumed_eligible` (`assumed`) names it.
-- args: charge_category, effective_rule, line_class, market, service, usage_type, instance_type, assumed
-- What a commitment covers it can cover, whatever the rules are and whatever the line names as its resource.
case
    when charge_category <> 'Usage' or effective_rule in ('zero', 'savings_plan_unused', 'reservation_unused')
        or line_class in ('split_child', 'capacity_marker', 'block_fee') then null
    when market = 'spot' then 'spot'
    when market = 'capacity_block' then 'capacity_block'
    when line_class = 'host' then 'dedicated_host'
    when line_class in ('instance', 'capacity_unused', 'warm_pool') then case
        when service like '%SageMaker%' then case
            when effective_rule = 'as_billed' and usage_type like '%Cluster:%' and strpos(assumed, 'hyperpod') = 0
                then 'hyperpod'
            when effective_rule = 'as_billed' and line_class = 'warm_pool' and strpos(assumed, 'warm_pool') = 0
                then 'warm_pool'
            else 'sagemaker_instance' end
        when service not like '%EC2%' and service not like '%Elastic Compute%' then
            case when effective_rule in ('savings_plan', 'reservation') then 'covered_service' else 'other_service' end
        when effective_rule = 'as_billed' and (instance_type like 'p6-%' or instance_type like 'p6e-%'
            or instance_type like 'trn2%' or instance_type like 'trn3%') and strpos(assumed, 'rate_unknown') = 0
            then 'rate_unknown'
        else 'ec2_instance' end
    when usage_type like '%Fargate%' then 'fargate'
    when effective_rule in ('savings_plan', 'reservation') and (service like '%EC2%' or service like '%Elastic Compute%')
        then 'ec2_instance'
    when effective_rule = 'savings_plan' and service like '%SageMaker%' then 'sagemaker_instance'
    when effective_rule = 'savings_plan' and service like '%Lambda%' then 'lambda'
    when effective_rule in ('savings_plan', 'reservation') then 'covered_service'
    when service like '%Lambda%' and (usage_type like '%GB-Second%' or usage_type like '%Provisioned%') then 'lambda'
    when service like '%Bedrock%' then 'bedrock'
    when usage_type like '%EBS:%' then 'storage'
    when usage_type like '%DataXfer%' or usage_type like '%DataTransfer%' or usage_type like '%-Bytes'
        then 'data_transfer'
    else 'other_service'
end
