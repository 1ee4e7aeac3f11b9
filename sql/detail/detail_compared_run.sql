-- One row per pair of the comparison × cost basis × currency × run of it: whether it was compared, and at which cost.
select
    workload_id, gpu_instance_type, trainium_instance_type, cost_basis, billing_currency, run_id, accelerator_family, unit_measure,
    comparison_part, exclusion_reason, whole_cost_usd, unit_cost_usd, compared_unit_cost_usd
from fct_compared_run
