-- One row per run of which a record cannot be read, or that was published and is no longer recorded; null for a record
-- that names no run.
select
    run_id, workload_id as declared_workload_id, model, dataset, seq_len, global_batch_samples, precision, target_metric,
    target_value, target_direction, instance_type, started_at, last_seen_at
from tracker_unread_run
