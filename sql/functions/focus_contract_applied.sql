-- The ContractApplied of FOCUS, JSON: what a charge uses of a commitment, in money of a Savings Plan or in hours of a
-- reservation. AWS names no contract, so the commitment stands for it.
-- args: commitment_id, commitment_category, quantity
case
    when quantity is null or not regexp_matches(commitment_id, '^[A-Za-z0-9:/._-]+$') then null
    else '{"Elements": [{"ContractId": "' || commitment_id || '", "ContractCommitmentId": "' || commitment_id || '", '
        || case commitment_category
            when 'Spend' then '"ContractCommitmentAppliedCost": ' || cast(quantity as varchar)
            else '"ContractCommitmentAppliedQuantity": ' || cast(quantity as varchar)
                || ', "ContractCommitmentAppliedUnit": "Hours"' end || '}]}'
end
