-- Which kind of Savings Plan the words name; null where they name none. An EC2 Instance plan may stand under the service
-- `ComputeSavingsPlans`, so the narrower word decides.
-- args: offering
case when offering like '%Compute S%' or offering like '%ComputeS%'
        or savings_plan_kind(offering) <> 'compute_savings_plan'
    then savings_plan_kind(offering) end
