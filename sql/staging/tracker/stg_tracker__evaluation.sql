-- One row per value of an evaluation; null where it is not a number, as in a run that diverges.
-- Evaluations dated by a file may share a time: evaluation_no numbers them by step.
select
    run_id, attempt_no, step, metric, value, coalesce(split, '') as split, evaluated_at,
    row_number() over (partition by run_id, attempt_no, metric, coalesce(split, ''), evaluated_at order by step, value, source_name)
        as evaluation_no
from tracker_evaluation
