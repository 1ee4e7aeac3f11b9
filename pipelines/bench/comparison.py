"""Simulates comparisons through the product's own interval: coverage, false proof and power (design 5).

A success costs a lognormal draw, a failure a uniform part of one, both times the effect of their machine. Costs are
scaled so that the true cost per success of both sides is equal, or the candidate's is lower by `saving`.
`python -m pipelines.bench.comparison` prints the table of docs/comparisons.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import click
import numpy as np

from pipelines.analysis.estimate import Floats, Sample, interval

SEED = 1
DRAWS = 20_000
RATES = (0.0, 0.05, 0.1, 0.2, 0.3)
MACHINE_EFFECT = 0.08


@dataclass(frozen=True)
class Cell:
    """One design of a comparison: ended runs a side, failure rates, relative noise of costs, and the true saving.

    With `machines` a side has so many, each with an effect of 8 % on all its runs, used in turn; 0 is a machine a run.
    """

    runs: int
    baseline_rate: float
    candidate_rate: float
    noise: float
    candidate_noise: float | None = None
    saving: float = 0.0
    machines: int = 0
    is_balanced: bool = True


@dataclass(frozen=True)
class Result:
    """How often the interval includes the true saving, and how often it shows the candidate cheaper."""

    coverage: float
    found: float


def simulate(cell: Cell, draws: int = DRAWS) -> Result:
    """The cell over so many draws; the same cell always gives the same result."""
    random = np.random.default_rng(SEED)
    baseline = _draw(random, cell, cell.baseline_rate, cell.noise, 1.0, draws)
    noise = cell.noise if cell.candidate_noise is None else cell.candidate_noise
    candidate = _draw(random, cell, cell.candidate_rate, noise, 1.0 - cell.saving, draws)
    _, low, high = interval(baseline, candidate)
    is_usable = ~np.isnan(low)
    truth = np.log(1.0 - cell.saving)
    covered = ((low <= truth) & (truth <= high) & is_usable).sum() / max(is_usable.sum(), 1)
    return Result(float(covered) if is_usable.any() else float("nan"), float(((high < 0) & is_usable).mean()))


def _draw(random: Any, cell: Cell, failure_rate: float, noise: float, true_cost: float, draws: int) -> Sample:
    size = draws, cell.runs
    base: Floats = np.exp(random.normal(0, noise, size) - noise**2 / 2)
    succeeded = random.random(size) >= failure_rate
    scale = true_cost / (1 + failure_rate / (1 - failure_rate) * 0.5)
    costs = scale * np.where(succeeded, base, base * random.random(size))
    if not cell.machines:
        return Sample(costs, succeeded.astype(float), range(cell.runs))
    # Balanced machines take turns; else the first has every run that the others need not have.
    turns = [
        number % cell.machines if cell.is_balanced else max(0, number - cell.runs + cell.machines)
        for number in range(cell.runs)
    ]
    effect = np.exp(random.normal(0, MACHINE_EFFECT, (draws, cell.machines)) - MACHINE_EFFECT**2 / 2)
    return Sample(costs * effect[:, turns], succeeded.astype(float), turns)


def main() -> None:
    """Print power by runs a side and saving, with 5 % of runs failing, and the worst cells."""
    click.echo("| Runs a side | Noise | 20% | 40% | 60% | 75% | Worst false proof | Lowest coverage |")
    click.echo("|---|---|---|---|---|---|---|---|")
    for noise, runs in product((0.03, 0.05, 0.1), (3, 5, 10, 20)):
        power = [simulate(Cell(runs, 0.05, 0.05, noise, saving=saving)).found for saving in (0.2, 0.4, 0.6, 0.75)]
        cells = [simulate(Cell(runs, one, other, noise)) for one, other in product(RATES, RATES)]
        figures = " | ".join(f"{value:.2f}" for value in power)
        worst = f"{max(cell.found for cell in cells):.3f} | {min(cell.coverage for cell in cells):.3f}"
        click.echo(f"| {runs} | {noise:.0%} | {figures} | {worst} |")


if __name__ == "__main__":
    main()
