-- The kind of commitment that covers a line; null where none does.
-- args: effective_rule, fee_kind, eligibility
-- A plan whose fee is on no delivered bill counts as a SageMaker plan on ml.*, which no other kind covers, else as a
-- Compute plan.
case
    when effective_rule = 'reservation' then 'reserved_instance'
    when effective_rule = 'savings_plan' then coalesce(fee_kind,
        case when eligibility = 'sagemaker_instance' then 'sagemaker_savings_plan' else 'compute_savings_plan' end)
end
