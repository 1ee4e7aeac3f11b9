"""How far apart checkpoints should be, and what a distance costs (facts training-runs 5).

All times are seconds. `save` is how long a save stops the run, `between` the mean time between two interruptions of
the whole job, `restart` the time from an interruption until the job trains again. Intervals are from the end of one
save to the start of the next, but for `availability`, which is from one save's start to the next one's.
"""

from math import exp, expm1, inf, sqrt


def young(save: float, between: float) -> float:
    """Young 1974: the first-order optimum."""
    return sqrt(2 * save * between)


def daly(save: float, between: float) -> float:
    """Daly 2006: the higher-order optimum; when a save takes twice the time between interruptions, that time."""
    if save >= 2 * between:
        return between
    part = save / (2 * between)
    return young(save, between) * (1 + sqrt(part) / 3 + part / 9) - save


def availability(save: float, between: float, restart: float) -> float:
    """NVIDIA's period: the largest share of the time spent training."""
    return save + sqrt(2 * (between + restart) * save + save**2)


def dollar(save: float, between: float, rate: float, save_cost: float, noticed: float) -> float:
    """The interval that costs least: `rate` USD a second of all nodes, `save_cost` USD a save besides its time.

    `noticed` is the share of interruptions before which a save still succeeds, as after a Spot notice: those lose
    nothing, so saves by the clock matter less. Below 1; at 1 no save by the clock would pay.
    """
    return sqrt(2 * between * (save + save_cost / rate) / (1 - noticed))


def overhead(interval: float, save: float, between: float, restart: float = 0.0, noticed: float = 0.0) -> float:
    """Share of the training time that saves, the work lost and restarts take, as expected at an interval (Daly 2006).

    M·e^(R/M)·(e^((T + C)/M) - 1)/T - 1: interruptions come at a constant rate, also during saves and restarts. What was
    noticed loses nothing, so M is the time between interruptions without a notice. Infinite where no interval is ever
    finished.
    """
    between /= 1 - noticed
    try:
        return between * exp(restart / between) * expm1((interval + save) / between) / interval - 1
    except OverflowError:
        return inf
