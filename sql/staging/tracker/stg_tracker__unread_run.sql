-- One row per run of which an event cannot be read, and per file of such events without a known run.
select
    run_id, workload_id as declared_workload_id, model, dataset, seq_len, global_batch_samples, precision, target_metric,
    target_value, target_direction, instance_type, started_at, last_seen_at
from tracker_unread_run
