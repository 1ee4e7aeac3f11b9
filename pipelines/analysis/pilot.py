"""What a pilot must do before a workload can be decided: how many runs a side, at which cost, and what then decides."""

from collections.abc import Collection

from pipelines.analysis.estimate import Sample, runs_needed
from pipelines.analysis.verdict import RUN_FLOOR


def runs_to_do(
    baseline: Sample | None, candidate: Sample | None, deciding: float | None, anew: Collection[str] = ()
) -> tuple[int, int, str]:
    """Runs GPU and Trainium still lack, three a side at the least, and how that is known: from the costs of the runs
    there are and the saving that decides, which is any where no port is declared. The sides `anew` ("baseline",
    "candidate") have runs that may claim nothing; where none is lacking and nothing is decided, both are."""
    wanted, basis = _wanted(baseline, candidate, deciding or 0.0)
    wanted = max(RUN_FLOOR, wanted)
    sides = {"baseline": baseline, "candidate": candidate}
    made = [0 if side is None or name in anew else side.costs.size for name, side in sides.items()]
    lacking = [max(0, wanted - count) for count in made]
    gpu, trainium = lacking if any(lacking) else (wanted, wanted)
    return gpu, trainium, basis


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
