-- One row per value an evaluation gave; null where it gave no number, as a run that diverges.
select run_id, attempt_no, step, metric, value, coalesce(split, '') as split, evaluated_at, source_name
from tracker_evaluation
