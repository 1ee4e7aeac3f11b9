"""What a pilot must do before a workload can be decided: how many runs a side, at which cost, and what then decides."""

from pipelines.analysis.estimate import Sample, runs_needed
from pipelines.analysis.verdict import RUN_FLOOR


def runs_to_do(
    baseline: Sample | None, candidate: Sample | None, deciding: float | None, again: bool = False
) -> tuple[int, int, str]:
    """Runs GPU and Trainium still lack, three a side at the least, and how that is known: from the costs of the runs
    there are and the saving that decides, which is any where no port is declared; `again` where those of Trainium may
    claim nothing and must be made anew."""
    wanted, basis = _wanted(baseline, candidate, deciding or 0.0)
    wanted = max(RUN_FLOOR, wanted)
    made = [0 if side is None else side.costs.size for side in (baseline, candidate)]
    return max(0, wanted - made[0]), max(0, wanted - (0 if again else made[1])), basis


def _wanted(baseline: Sample | None, candidate: Sample | None, deciding: float) -> tuple[int, str]:
    if baseline and candidate and (found := runs_needed(baseline, candidate, deciding)) is not None:
        fewest = "for an 80% chance of a decision, or for an interval of ±5 points if that takes fewer"
        return found, f"{fewest}; at the costs measured so far"
    for name, side in (("GPU", baseline), ("Trainium", candidate)):
        if side and (found := runs_needed(side, side)) is not None:
            return found, f"for an interval of ±5 points, both sides varying as the {name} runs do"
    return RUN_FLOOR, f"{RUN_FLOOR} a side are the minimum; they then show how many more are needed"


def cost_of_a_run(own: float | None, other: float | None) -> tuple[float | None, str]:
    """USD of a run on one side, and its evidence; without a run, at most the other side's cost, since more has lost."""
    if own is not None:
        return own, "measured"
    return other, "unknown" if other is None else "at most what the other side costs"


def deciding_saving(port_cost: float | None, runs: float | None, baseline_cost: float | None) -> float | None:
    """The share of a GPU run's cost that Trainium must save for the port to be paid back by `runs`."""
    if port_cost is None or not runs or not baseline_cost:
        return None
    return port_cost / runs / baseline_cost
