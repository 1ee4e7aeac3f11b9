-- The contract that a FOCUS charge draws down, the first where it names several; empty where it names none. 1.3 spells
-- the key in another case (facts standards-2026 1.5).
-- args: contract_applied
coalesce(regexp_extract(contract_applied, '(?i)"ContractCommitmentId" *: *"([^"]+)"', 1), '')
