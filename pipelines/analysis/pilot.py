"""What a spike must do before a workload can be decided: how many runs a side, at which cost, and what then decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.analysis.estimate import runs_to_decide, runs_wanted
from pipelines.analysis.verdict import RUN_FLOOR


@dataclass(frozen=True)
class SideCost:
    """Cost of a run on one side: as measured, or the most one may cost, which is what the other side's costs."""

    usd: float | None
    evidence: str


def runs_to_do(
    gpu: Sequence[float], trainium: Sequence[float], deciding: float | None, again: bool = False
) -> tuple[int, int, str]:
    """Runs GPU and Trainium still lack, three a side at the least, and how that is known: from the costs of the runs
    there are and the saving that decides, which is any where no port is stated; `again` where those of Trainium may
    claim nothing and must be made anew."""
    wanted, said = _wanted(gpu, trainium, deciding or 0.0)
    wanted = max(RUN_FLOOR, wanted)
    return max(0, wanted - len(gpu)), max(0, wanted - (0 if again else len(trainium))), said


def _wanted(gpu: Sequence[float], trainium: Sequence[float], deciding: float) -> tuple[int, str]:
    found = runs_to_decide(gpu, trainium, deciding) if deciding < 1 else None
    if found is not None:
        return (
            found,
            "enough to decide four times in five, or for ±5 points if those are fewer, costs going on as measured",
        )
    for name, costs in (("GPU", gpu), ("Trainium", trainium)):
        found = runs_wanted(costs)
        if found is not None:
            return found, f"for an interval of ±5 points, both sides varying as the {name} runs do"
    return RUN_FLOOR, f"{RUN_FLOOR} a side are the least; they then tell how many more are needed"


def costs_of_a_run(gpu: float | None, trainium: float | None) -> tuple[SideCost, SideCost]:
    """What a run costs on either side; where none was made, at most what it costs on the other: dearer, it has lost."""
    sides = [SideCost(usd, "measured") for usd in (gpu, trainium)]
    for own, other in ((0, 1), (1, 0)):
        if sides[own].usd is None:
            usd = (gpu, trainium)[other]
            sides[own] = SideCost(usd, "unknown" if usd is None else "at most what the other side costs")
    return sides[0], sides[1]


def deciding_saving(port_cost: float | None, runs: float | None, gpu_cost: float | None) -> float | None:
    """The share of a GPU run's cost that Trainium must save for the port to be paid back by `runs`."""
    if port_cost is None or not runs or not gpu_cost:
        return None
    return port_cost / runs / gpu_cost
