-- The Savings Plan or reservation of a FOCUS line. Where CommitmentDiscountId is missing on a charge at a committed
-- price, it is the only contract that ContractApplied names; other charges draw down an agreement on spend.
-- args: line
coalesce(line.commitment_discount_id, case
    when line.pricing_category = 'Committed' and line.contract_applied not like '%{%{%{%'
        then nullif(focus_contract_id(line.contract_applied), '')
end)
