"""Quantiles of Student's t and of the beta distribution, to eight digits or more.

SciPy has them too, among 100 MB that nothing else here needs.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
# Of a length of one, denser at its start, where a power that is not whole is not smooth.
_PARTS, _PART_WEIGHTS = ((1 + _NODES) / 2) ** 3, _WEIGHTS * 3 / 2 * ((1 + _NODES) / 2) ** 2
# Rounded to these, results hardly depend on the order in which a processor adds.
_DECIMALS = 9
_log_gamma = np.vectorize(math.lgamma, otypes=[float])


def student_t(freedom: ArrayLike, level: float) -> Floats:
    """The quantile at `level`, from 0.5 up, for each number of degrees of freedom; NaN below 1."""
    freedom = np.asarray(freedom, float)
    found: Floats = np.sqrt(freedom) * np.tan(_angle(np.full(freedom.shape, 0.5), freedom / 2, 2 * level - 1))
    return found.round(_DECIMALS)


def beta(a: ArrayLike, b: ArrayLike, level: float) -> Floats:
    """The quantile at `level` for each pair of parameters; NaN where one is below 0.5."""
    a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
    found: Floats = np.sin(_angle(a, b, level)) ** 2
    return found.round(_DECIMALS)


def _angle(a: Floats, b: Floats, level: float) -> Floats:
    """The angle whose squared sine is the quantile of the beta distribution.

    By Newton's method from the mode: the density over angles has only one, so no step goes past the quantile.
    """
    if a.ndim == 0:
        return np.asarray(_one_angle(float(a), float(b), level))
    is_known = (a >= 0.5) & (b >= 0.5) & np.isfinite(a + b)
    # The last axis is that of the parts.
    a, b = np.where(is_known, a, 1.0)[..., None], np.where(is_known, b, 1.0)[..., None]
    scale = math.log(2) + _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
    angle = np.arctan2(np.sqrt(2 * a - 1), np.sqrt(2 * b - 1))
    # Twelve standard deviations below the mode the remainder is below double precision.
    lowest = np.maximum(0.0, angle - 6 / np.sqrt(a + b))

    def density(at: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            sine, cosine = (2 * a - 1) * np.log(np.sin(at)), (2 * b - 1) * np.log(np.cos(at))
        # 0 to the power 0 is 1.
        return np.exp(scale + np.where(a > 0.5, sine, 0.0) + np.where(b > 0.5, cosine, 0.0))

    for _ in range(40):
        length = angle - lowest
        below = length * (density(lowest + length * _PARTS) * _PART_WEIGHTS).sum(-1, keepdims=True)
        step = (level - below) / density(angle)
        angle = np.clip(angle + step, lowest, math.pi / 2)
        # The digits double with each step.
        if np.all(np.abs(step) <= 1e-7 * angle):
            break
    return np.where(is_known, angle[..., 0], np.nan)


@lru_cache(maxsize=65_536)
def _one_angle(a: float, b: float, level: float) -> float:
    """That of one pair of parameters: how many runs are needed is searched by the same ones again and again."""
    return float(_angle(np.array([a]), np.array([b]), level)[0])
