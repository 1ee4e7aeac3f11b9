-- One row per kind of GPU run × kind of Trainium run that would match but for one field: which it is, and both values.
select
    gpu_workload_id, trainium_workload_id, differing_field, gpu_value, trainium_value,
    gpu_run_count, trainium_run_count, is_compared
from fct_comparison_near_miss
