"""Quantiles against printed tables, closed forms and SciPy."""

from __future__ import annotations

from math import nan, pi, tan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from pipelines.analysis.quantiles import beta, student_t


def test_student_t_of_the_tables() -> None:
    """One degree of freedom is the Cauchy distribution; 2.776445 and 4.302653 are of the tables."""
    found = student_t([1, 2, 4], 0.975)
    assert found == pytest.approx([tan(pi * 0.475), 4.302653, 2.776445], abs=1e-6)


def test_beta_of_closed_forms_and_of_clopper_and_pearson() -> None:
    """0 of 3 is 1 - 0.025^(1/3), 3 of 3 the root of 0.975; 1 of 4 is 0.805880 of the tables."""
    assert beta([1, 3, 2], [3, 1, 3], 0.975) == pytest.approx(
        [1 - 0.025 ** (1 / 3), 0.975 ** (1 / 3), 0.805880], abs=1e-6
    )


def test_what_is_unknown_stays_unknown() -> None:
    assert np.isnan(student_t([nan, 0.5], 0.975)).all()
    assert np.isnan(beta([1, nan], [0, 1], 0.975)).all()


@given(st.floats(1, 1e5), st.sampled_from([0.8, 0.95, 0.975]))
def test_student_t_is_that_of_scipy(freedom: float, level: float) -> None:
    assert float(student_t(freedom, level)) == pytest.approx(special.stdtrit(freedom, level), rel=1e-8)


@given(st.floats(1, 1e5), st.floats(1, 1e5))
def test_beta_is_that_of_scipy(a: float, b: float) -> None:
    assert float(beta(a, b, 0.975)) == pytest.approx(special.betaincinv(a, b, 0.975), rel=1e-7, abs=1e-9)
