-- One row per pair of the comparison, cost basis, currency and factor: what of the difference of a unit's cost each factor made.
-- The chip's own part is silicon_price and silicon_hours; the parts sum to the difference to the last digit.
select
    workload_id, gpu_instance_type, trainium_instance_type, cost_basis, billing_currency, unit_measure, factor, factor_no,
    gpu_factor, trainium_factor, log_part, cost_part_usd, missing_evidence
from fct_cost_decomposition
