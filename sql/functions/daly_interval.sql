-- Training time between two saves at the higher-order optimum (Daly 2006, "A higher order estimate of the optimum checkpoint
-- interval for restart dumps"); where a save takes twice the time between interruptions, that time.
-- args: save_seconds, lasting_seconds
-- unit: seconds
case when save_seconds >= 2 * lasting_seconds then lasting_seconds
    else young_interval(save_seconds, lasting_seconds)
        * (1 + sqrt(save_seconds / (2 * lasting_seconds)) / 3 + save_seconds / (2 * lasting_seconds) / 9) - save_seconds
    end
