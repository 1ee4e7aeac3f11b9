-- One row per workload × currency × rule of leaning, with the arithmetic and the result: gpu, trainium, either or run a spike.
-- Hard stops are asked first, then the arithmetic, then the scenarios; the first that holds decides (asked_no).
select
    workload_id, billing_currency, rule, rule_kind, asked_no, situation, lean, finding, decided_by, lean_reason, missing_inputs
from fct_lean
