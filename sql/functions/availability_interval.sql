-- Time from one save's start to the next one's with the largest share of training (NVIDIA); `restart_seconds` is the time from an
-- interruption until the job trains again.
-- args: save_seconds, lasting_seconds, restart_seconds
-- unit: seconds
save_seconds + sqrt(2 * (lasting_seconds + restart_seconds) * save_seconds + save_seconds * save_seconds)
