"""Published prices per million: one table that follows from its inputs (S5), and one that does not (S6)."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from pipelines.proof.published_price import PublishedPrice, reconcile


def rows(*told: tuple[str, str, str, str]) -> list[PublishedPrice]:
    return [PublishedPrice(name, Decimal(speed), Decimal(rate), Decimal(usd)) for name, speed, rate, usd in told]


# S5, Neuron's Inf2 page of September 2024: inferences a second on inf2.xlarge at its RI-effective rate.
INF2 = rows(
    ("albert-base-v2", "2999.88", "0.328", "0.030"),
    ("bert-base-cased", "2697.72", "0.328", "0.034"),
    ("bert-large-cased", "906.91", "0.328", "0.100"),
    ("distilbert-base-cased", "4756.25", "0.328", "0.019"),
)
# S6, a serving table of 2026, whose figures its page itself calls projections.
SERVING = rows(
    ("p5", "4200", "98.32", "0.85"),
    ("p4d", "1800", "21.96", "0.72"),
    ("g6e.48xlarge", "1400", "54.91", "0.52"),
    ("trn2", "3500", "45.00", "0.35"),
    ("inf2.48xlarge", "2800", "12.89", "0.28"),
)


def test_inferentia_prices_follow_from_their_inputs() -> None:
    assert reconcile(INF2) == []


def test_a_serving_table_is_flagged_not_reproduced() -> None:
    said = reconcile(SERVING)
    # As the facts recompute them, to a cent.
    for name, recomputed in (
        ("p5", 6.50),
        ("p4d", 3.39),
        ("g6e.48xlarge", 10.90),
        ("trn2", 3.57),
        ("inf2.48xlarge", 1.28),
    ):
        (sentence,) = (line for line in said if line.startswith(f"{name}: the inputs do not give the output: "))
        (found,) = re.findall(r"are \$([0-9.]+) per million", sentence)
        assert float(found) == pytest.approx(recomputed, abs=0.0101)
    factors = [float(found) for line in said for found in re.findall(r"\(([0-9.]+) times less\)", line)]
    # Off by 4.6 to 21 times.
    assert len(factors) == 5 and min(factors) == 4.6 and round(max(factors)) == 21
    assert said[-1] == "The ranking differs too: by the inputs it is inf2.48xlarge < p4d < trn2 < p5 < g6e.48xlarge."
