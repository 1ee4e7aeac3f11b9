-- Share of the training time that saves and lost work take, as expected at an interval (Daly 2006): interruptions come at a constant
-- rate, also during saves. M * (e^((T + C) / M) - 1) / T - 1; null from 1000 on, where no interval would ever be finished.
-- args: interval_seconds, save_seconds, lasting_seconds
-- unit: ratio
nullif(least(1000,
    -- Of a small x, 2 * e^(x / 2) * sinh(x / 2) has all digits of e^x - 1.
    lasting_seconds * 2 * exp((interval_seconds + save_seconds) / lasting_seconds / 2)
        * sinh((interval_seconds + save_seconds) / lasting_seconds / 2) / nullif(interval_seconds, 0) - 1), 1000)
