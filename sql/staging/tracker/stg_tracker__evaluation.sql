-- One row per value an evaluation gave; null where it gave no number, as a run that diverges.
-- Who dates evaluations by a file has several at one time: they are told apart by their order of steps.
select
    run_id, attempt_no, step, metric, value, coalesce(split, '') as split, evaluated_at,
    row_number() over (partition by run_id, attempt_no, metric, coalesce(split, ''), evaluated_at order by step, value, source_name)
        as evaluation_no,
    source_name
from tracker_evaluation
