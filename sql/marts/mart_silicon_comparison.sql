-- One row per workload × GPU instance type × Trainium instance type × cost basis × currency: is Trainium provably cheaper?
-- The unit is the strongest one both sides have: cost to target, else per epoch, else per million tokens.
select
    workload_id, gpu_instance_type, trainium_instance_type, cost_basis, billing_currency,
    gpu_run_count, trainium_run_count, excluded_run_count, gpu_failed_run_count, trainium_failed_run_count,
    gpu_failed_cost_usd, trainium_failed_cost_usd, gpu_cost_usd, trainium_cost_usd,
    unit_measure, gpu_unit_cost_usd, trainium_unit_cost_usd,
    saving_ratio, saving_low_ratio, saving_high_ratio, interval_method, more_gpu_run_count, more_trainium_run_count,
    quality_status, quality_metric, gpu_final_quality, trainium_final_quality, quality_margin, worst_quality_loss,
    verdict, verdict_reason, price_date, estimated_cost_ratio, evidence_shares,
    gpu_residual_cost_usd, trainium_residual_cost_usd, worst_case_saving_ratio, gpu_price_change_to_flip_ratio, would_flip,
    registration, registered_on, registration_seal, registered_cost_basis
from fct_silicon_comparison
