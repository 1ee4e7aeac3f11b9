-- What saves and lost work are expected to cost a run at an interval: its training time at the share that they take.
-- What was noticed loses nothing, so only interruptions without a notice count.
-- args: run, interval_seconds
-- unit: usd
run.cost_per_second_usd * run.training_seconds
    * checkpoint_overhead_ratio(interval_seconds, run.stop_seconds, run.lasting_seconds / (1 - run.noticed_ratio))
