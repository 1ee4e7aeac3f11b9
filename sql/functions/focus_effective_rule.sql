-- How a FOCUS line counts in effective cost: one of the rules of ref_line_item_type (docs/decisions/0006).
-- args: charge_category, charge_class, charge_frequency, line_class, is_usage, commitment, commitment_status, is_aws
-- `commitment` is savings_plan or reservation, null where there is none. One of another provider is a fee, paid at
-- another time than its hours: it covers nothing of AWS.
case
    when charge_category = 'Credit' then 'credit'
    when line_class = 'block_fee' then 'fee'
    when charge_category = 'Tax' then 'as_billed'
    when charge_class = 'Correction' then 'refund'
    when charge_category = 'Purchase' then case
        when commitment is null then 'fee'
        -- Paid upfront for hours to come: those carry its effective cost.
        when charge_frequency is distinct from 'Recurring' or not is_aws then 'upfront_fee'
        -- The fee is about the commitment itself, and so is what it left unused; FOCUS distinguishes them.
        else commitment || '_unused' end
    when is_usage and commitment is not null and not is_aws
        then case when commitment_status = 'Unused' then 'upfront_fee' else 'fee' end
    when is_usage and commitment is not null
        then commitment || case when commitment_status = 'Unused' then '_unused' else '' end
    else 'as_billed'
end
