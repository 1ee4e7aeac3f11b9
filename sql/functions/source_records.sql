-- Whether a source of this kind can know such a thing of a run (docs/run-sources.md); one of no kind is the run itself.
-- args: source_system, thing
coalesce(case thing
    when 'epoch' then source_system not in ('sagemaker', 'batch', 'kubernetes', 'slurm', 'ray', 'checkpoints')
    when 'checkpoint' then source_system in ('events', 'trainer_state', 'lightning', 'checkpoints')
    when 'compile' then source_system = 'events' end, true)
