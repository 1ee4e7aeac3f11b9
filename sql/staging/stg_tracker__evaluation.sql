-- One row per value an evaluation gave.
select run_id, attempt_no, step, metric, value, coalesce(split, '') as split, evaluated_at, source_name
from tracker_evaluation
