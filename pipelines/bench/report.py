"""What `make bench` measured, as Markdown: a table of figures and one of the targets, each met or not."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

BILL_KINDS = ("bare scan", "exact scan", "full build", "unchanged refresh", "restated month")
SPARK_KIND = "full build on Spark"
CSV_KINDS = ("bare csv read", "csv ingest")


@dataclass(frozen=True)
class Run:
    """One measured process: wall and processor seconds, peak memory in MiB."""

    wall: float
    cpu: float
    peak_mib: float


Figures = dict[tuple[int, str], Run]


@dataclass(frozen=True)
class Target:
    """A promise of the product: what was measured, by the clock and by processor time, and what it may be at most."""

    name: str
    wall: float
    cpu: float | None
    most: float
    form: str = ".2f"

    @property
    def line(self) -> str:
        """The target as a row of a table."""
        cpu = "" if self.cpu is None else format(self.cpu, self.form)
        met = "met" if self.wall <= self.most else "**not met**"
        return f"| {self.name} | {self.wall:{self.form}} | {cpu} | {self.most:{self.form}} | {met} |"


def report(figures: Figures, repeat: int) -> str:
    """All that was measured, as Markdown."""
    lines = max(size for size, _ in figures)
    return "\n".join(
        [
            "# Benchmarks",
            "",
            f"{where(repeat)}; `make bench LINES={lines}`.",
            "",
            *target_table(targets(figures)),
            "",
            *_table(figures, BILL_KINDS),
            "",
            *_table(figures, CSV_KINDS),
        ]
    )


def spark_report(figures: Figures) -> str:
    """Full builds on both engines, as Markdown."""
    return "\n".join([f"{where(1)}.", "", *_table(figures, ("full build", SPARK_KIND))])


def where(repeat: int) -> str:
    """When and on what machine it was measured, and how often."""
    rounds = f"medians of {repeat} rounds" if repeat > 1 else "one round"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} processors, {_memory_gib():.0f} GiB, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}; {rounds}"
    )


def targets(figures: Figures) -> Iterator[Target]:
    """Every target with what was measured of it."""
    sizes = _sizes(figures, "full build")
    large = sizes[-1]

    def slopes(kind: str, other: str) -> tuple[float, float]:
        return (
            slope(figures, kind, "wall") / slope(figures, other, "wall"),
            slope(figures, kind, "cpu") / slope(figures, other, "cpu"),
        )

    def share(kind: str) -> tuple[float, float]:
        part, whole = figures[large, kind], figures[large, "full build"]
        return part.wall / whole.wall, part.cpu / whole.cpu

    named = f"{large / 1e6:g} million lines"
    yield Target("slope of a full build ÷ slope of the bare scan", *slopes("full build", "bare scan"), 3)
    yield Target("the same ÷ slope of the exact scan, a stricter anchor", *slopes("full build", "exact scan"), 12)
    exponents = growth(figures, "wall"), growth(figures, "cpu")
    yield Target(f"growth exponent of a full build, {sizes[0] / 1e6:g} to {named}", *exponents, 1.05)
    yield Target(f"peak memory of a full build at {named}, GiB", figures[large, "full build"].peak_mib / 1024, None, 4)
    yield Target(f"unchanged refresh ÷ full build at {named}", *share("unchanged refresh"), 0.05, ".1%")
    yield Target("restated month ÷ full build of that month", *share("restated month"), 1)
    yield Target("slope of csv.gz ingest ÷ slope of the bare csv read", *slopes("csv ingest", "bare csv read"), 1.5)


def slope(figures: Figures, kind: str, measure: str) -> float:
    """Seconds a further million lines cost, between the smallest and the largest size."""
    sizes = _sizes(figures, kind)
    small, large = (getattr(figures[size, kind], measure) for size in (sizes[0], sizes[-1]))
    return (large - small) / (sizes[-1] - sizes[0]) * 1e6


def growth(figures: Figures, measure: str) -> float:
    """The exponent of a full build's time in the number of lines: of all sizes or of the last step, the steeper.

    Start-up flattens the fit at small sizes; the last step alone would be swayed by one figure.
    """
    sizes = _sizes(figures, "full build")
    points = [(math.log(size), math.log(getattr(figures[size, "full build"], measure))) for size in sizes]
    return max(_fitted(points), _fitted(points[-2:]))


def _fitted(points: list[tuple[float, float]]) -> float:
    x_mean, y_mean = (sum(values) / len(points) for values in zip(*points, strict=True))
    rise = sum((x - x_mean) * (y - y_mean) for x, y in points)
    return rise / sum((x - x_mean) ** 2 for x, _ in points)


def target_table(found: Iterable[Target]) -> list[str]:
    """Targets as lines of a table."""
    head = ["| Target | by the clock | by processor time | at most | |", "|---|---:|---:|---:|---|"]
    return head + [target.line for target in found]


def _table(figures: Figures, kinds: tuple[str, ...]) -> Iterator[str]:
    sizes = _sizes(figures, kinds[0])
    heads = [f"{size / 1e6:g} M lines, s (processor)" for size in sizes]
    yield f"| | {' | '.join(heads)} | peak MiB | s per M lines (processor) |"
    yield "|---|" + "---:|" * (len(sizes) + 2)
    for kind in kinds:
        runs = [figures[size, kind] for size in sizes]
        cells = [f"{run.wall:.1f} ({run.cpu:.1f})" for run in runs]
        slopes = f"{slope(figures, kind, 'wall'):.2f} ({slope(figures, kind, 'cpu'):.2f})"
        yield f"| {kind} | {' | '.join(cells)} | {runs[-1].peak_mib:,.0f} | {slopes} |"


def _sizes(figures: Figures, kind: str) -> list[int]:
    return sorted(size for size, found in figures if found == kind)


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
