-- The kind of commitment that covers a line; null where none does.
-- args: effective_rule, told_kind, eligibility
-- A plan whose fee is on no bill of ours: SageMaker's own plans alone cover ml.*, and of the others most are Compute plans.
case
    when effective_rule = 'reservation' then 'reserved_instance'
    when effective_rule = 'savings_plan' then coalesce(told_kind,
        case when eligibility = 'sagemaker_instance' then 'sagemaker_savings_plan' else 'compute_savings_plan' end)
end
