-- Which kind of Savings Plan the words name; null where they name none.
-- args: offering
case when offering like '%Compute S%' or offering like '%ComputeS%' then 'compute_savings_plan'
    else nullif(savings_plan_kind(offering), 'compute_savings_plan') end
