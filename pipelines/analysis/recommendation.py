"""What is recommended for a workload, and why: rules from a list, applied to its inputs (facts training-runs 8).

Hard stops come first, then the arithmetic of the measured comparison, then the scenarios; the first that holds decides.
A port that costs more than all runs it could save on decides against itself, whatever else is unknown.
If an input is missing, the rules that need it are undecided, never false. If an undecided rule has priority and could
change the answer, the recommendation is `run a pilot`. The same applies when no rule matches.
A scenario alone moves nothing: where it speaks for Trainium, a pilot is recommended (design 5). No rule speaks for it
where it was measured to be more expensive, whatever the verdict.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from math import inf, isinf
from operator import itemgetter
from typing import Any

from pipelines.analysis.verdict import minus, percent

PILOT = "run a pilot"
Value = str | float | None
Inputs = Mapping[str, Value]
# The comparison's own rule, which is not in the list.
ARITHMETIC = "arithmetic"
# The port's own, which no missing input can change.
REPAYMENT = "repayment"


@dataclass(frozen=True)
class Condition:
    """An input held against a value: a word, a number, or the name of another input."""

    name: str
    comparison: str
    value: str

    def holds(self, inputs: Inputs) -> bool | None:
        """None where an input it needs is missing."""
        left, right = inputs[self.name], self._other(inputs)
        if right == inf and left != inf:
            # Whatever it is, it is below never.
            return self.comparison in ("<", "<=")
        if left is None or right is None:
            return None
        if self.comparison == "=":
            return left == right
        one, other = float(left), float(right)
        return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[self.comparison]

    def missing(self, inputs: Inputs) -> list[str]:
        return [name for name in (self.name, self.value) if name in inputs and inputs[name] is None]

    def explanation(self, inputs: Inputs) -> str:
        """The condition with its values, in words."""
        left, right = inputs[self.name], self._other(inputs)
        name, other = _words(self.name), _words(self.value) + " " if self.value in inputs else ""
        if self.comparison == "=":
            return f"{name} is {_shown(left)}" + (f", not {_shown(right)}" if self.holds(inputs) is False else "")
        return f"{name} {_shown(left)} {'' if self.holds(inputs) else 'not '}{self.comparison} {other}{_shown(right)}"

    def _other(self, inputs: Inputs) -> Value:
        if self.value in inputs:
            return inputs[self.value]
        return float(self.value) if self.value.replace(".", "", 1).isdigit() else self.value


@dataclass(frozen=True)
class Rule:
    """It holds where all conditions of one of its alternatives do."""

    name: str
    kind: str
    recommendation: str
    situation: str
    alternatives: Sequence[Sequence[Condition]]


@dataclass(frozen=True)
class Finding:
    """One rule applied to a workload: `holds` is None where a missing input would decide it."""

    rule: str
    kind: str
    recommendation: str
    holds: bool | None
    explanation: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """A family, either or PILOT; decided by the rule named, or by missing inputs."""

    recommendation: str
    decided_by: str
    reason: str
    missing: tuple[str, ...] = ()


# What a port shows, where one is declared.
OF_PORT = ("break_even_runs", "payback_months", "port_cost_usd", "runs_per_month", "saving_per_run_usd")
# Where missing inputs can be declared.
_DECLARED_IN = {
    "a port in [[decisions.ports]]": OF_PORT,
    "lead times in [[decisions.offers]]": ("baseline_lead_days", "candidate_lead_days"),
    "two whole months of bills": ("monthly_cost_trend_usd",),
}


def where_to_declare(missing: Sequence[str]) -> str:
    """Where people can declare the missing inputs, or which bills give them."""
    elsewhere = [place for place, names in _DECLARED_IN.items() if set(names) & set(missing)]
    own = [name for name in missing if not any(name in names for names in _DECLARED_IN.values())]
    own = ["architecture_changed_on" if name == "months_since_architecture_change" else name for name in own]
    of_workload = [f"{', '.join(own)} in [[decisions.workloads]]"] if own else []
    return f"to declare: {'; '.join([*of_workload, *elsewhere])}"


def rules_of(conditions: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """The rules of ref_recommendation_rule, a row per condition: hard stops first, then by their number."""
    numbers = ("rule_no", "alternative_no", "condition_no")
    rows = sorted(conditions, key=lambda row: (row["rule_kind"] != "hard_stop", *(int(row[no]) for no in numbers)))
    rules = []
    for name, own in groupby(rows, key=itemgetter("rule")):
        first, *others = own
        alternatives = [
            [Condition(one["condition_input"], one["comparison"], one["compared_value"]) for one in alternative]
            for _, alternative in groupby([first, *others], key=itemgetter("alternative_no"))
        ]
        rules.append(Rule(name, first["rule_kind"], first["recommendation"], first["situation"], alternatives))
    return rules


def weigh(rule: Rule, inputs: Inputs) -> Finding:
    """The rule with the inputs of a workload (Kleene's three values)."""
    met = [[condition.holds(inputs) for condition in conditions] for conditions in rule.alternatives]
    each = [False if False in values else None if None in values else True for values in met]
    holds = True if True in each else None if None in each else False
    # The alternatives that made it so.
    own = [conditions for conditions, value in zip(rule.alternatives, each, strict=True) if value is holds]
    explanation = "; or ".join(" and ".join(one.explanation(inputs) for one in conditions) for conditions in own)
    missing = [name for conditions in own for one in conditions for name in one.missing(inputs) if holds is None]
    return Finding(rule.name, rule.kind, rule.recommendation, holds, explanation, tuple(dict.fromkeys(missing)))


def weigh_measured(rule: Rule, inputs: Inputs, pair: Mapping[str, Any] | None) -> Finding:
    """The rule with the inputs of a workload; for Trainium it holds only where no measured cost speaks against it."""
    found = weigh(rule, inputs)
    if pair is None or rule.recommendation != "trainium" or found.holds is False:
        return found
    saving = pair["saving_ratio"]
    if saving is None or saving >= 0:
        return found
    words = f"Trainium is measured to cost {percent(-float(saving))} more than {pair['baseline_instance_type']}"
    return replace(found, holds=False, explanation=f"{found.explanation}, but {words}", missing=())


_finding = partial(Finding, ARITHMETIC, ARITHMETIC)


def arithmetic(
    pair: Mapping[str, Any] | None, npv: float | None, inputs: Inputs, unbilled: Sequence[str] = ()
) -> Finding:
    """What the measured comparison decides: nothing before it can prove anything; then it overrides the scenarios.

    `pair` is its row of mart_silicon_comparison, `npv` the expected value of its port, where one is declared, and
    `unbilled` why the cost of that port is unknown: then nothing moves. A proven saving must pay the port back within
    the horizon, upkeep and falling prices included. A tie goes to what is
    available sooner. Where the interval is too wide, or a pair may claim nothing, only more runs decide.
    """
    if pair is None:
        return _finding(PILOT, False, "no pair of runs is compared")
    verdict = explanation = pair["verdict"]
    ratios = (pair[name] for name in ("saving_ratio", "saving_low_ratio", "saving_high_ratio"))
    saving, low, high = (None if ratio is None else float(ratio) for ratio in ratios)
    if saving is not None:
        costs = (
            f"costs {percent(-saving)} more than {pair['baseline_instance_type']}"
            if saving < 0
            else f"saves {percent(saving)}"
        )
        explanation += f", Trainium {costs}"
    if low is not None and high is not None:
        interval = f"{percent(low)} to {percent(high)}"
        explanation += f" (saving {interval})" if saving is not None and saving < 0 else f" ({interval})"
    if verdict in ("indicative", "not comparable"):
        return _finding(PILOT, verdict == "not comparable", f"{explanation}: {pair['verdict_reason']}")
    if verdict == "supported":
        return _finding(PILOT, True, f"{explanation}: register a pilot before anything moves")
    if verdict in ("disproven", "contradicted"):
        return _finding("gpu", True, explanation)
    if verdict == "proven" and unbilled:
        return _finding(PILOT, True, f"{explanation}; the cost of the port is unknown: {'; '.join(unbilled)}")
    if verdict == "proven":
        return _paid_back(explanation, npv, inputs)
    more = pair["more_baseline_run_count"], pair["more_candidate_run_count"]
    if None in more:
        return _finding(PILOT, True, f"{explanation}: too few successes show how many runs would decide")
    if sum(more):
        return _finding(PILOT, True, f"{explanation}: the interval exceeds ±5 points: not a tie")
    leads = inputs["baseline_lead_days"], inputs["candidate_lead_days"]
    if leads[0] == leads[1] or None in leads:
        return _finding("either", True, f"{explanation}: a tie, and neither can be had sooner")
    sooner = "gpu" if float(leads[0] or 0) < float(leads[1] or 0) else "trainium"
    days = min(float(lead or 0) for lead in leads)
    return _finding(sooner, True, f"{explanation}: a tie, and {sooner} can be had in {days:.0f} days")


def repayment(inputs: Inputs) -> Finding | None:
    """Against a port that no saving could pay back: it costs more than all GPU runs of the horizon."""
    cost, runs, run_cost = (inputs[name] for name in ("port_cost_usd", "runs_in_horizon", "baseline_run_cost_usd"))
    if cost is None or runs is None or run_cost is None or float(cost) <= float(runs) * float(run_cost):
        return None
    whole = float(runs) * float(run_cost)
    words = f"the port costs {float(cost):,.2f}, the {float(runs):,.1f} GPU runs of the horizon {whole:,.2f}"
    return Finding(REPAYMENT, ARITHMETIC, "gpu", True, f"{words}: no saving pays it back")


def _paid_back(explanation: str, npv: float | None, inputs: Inputs) -> Finding:
    needed, runs, port = inputs["break_even_runs"], inputs["runs_in_horizon"], inputs["port_cost_usd"]
    if port is None or needed is None:
        missing = ("port_cost_usd",)
        return _finding("trainium", True, f"{explanation}; no cost of a port is declared", missing)
    if runs is None:
        return _finding(PILOT, True, f"{explanation}; how often it runs is unknown", ("runs_per_month",))
    paid = "1 run pays" if needed == 1 else f"{needed:,.0f} runs pay"
    words = f"{explanation}; {paid} the port back and {float(runs):,.1f} fit the horizon"
    if float(runs) < float(needed):
        return _finding("gpu", True, f"{words}: too few")
    if npv is None:
        return _finding(PILOT, True, f"{words}, but how often it runs is unknown", ("runs_per_month",))
    if npv < 0:
        words += f", but with upkeep, falling prices and its chance the port is expected to lose {-npv:,.2f}"
        return _finding("gpu", True, words)
    return _finding("trainium", True, words)


def decide(findings: Sequence[Finding], situations: Mapping[str, str]) -> Decision:
    """The first finding that holds, in their order, unless an undecided one before it recommends otherwise."""
    unknown: list[Finding] = []
    for found in findings:
        if found.holds is None:
            unknown.append(found)
        elif found.holds:
            is_pilot = found.kind == "scenario" and found.recommendation == "trainium"
            against = [
                one
                for one in unknown
                if found.recommendation not in (one.recommendation, PILOT) or (is_pilot and one.kind != "scenario")
            ]
            if against and found.rule != REPAYMENT:
                return _unknown(against, f"{_name(found, situations)} recommends {found.recommendation}, but ")
            reason = f"{_name(found, situations)}: {found.explanation}"
            if is_pilot:
                return Decision(PILOT, found.rule, f"{reason}; to move needs a proven comparison", found.missing)
            return Decision(found.recommendation, found.rule, reason, found.missing)
    return _unknown(unknown, "") if unknown else Decision(PILOT, "nothing", "no rule applies to the known inputs")


def _unknown(rules: Sequence[Finding], but: str) -> Decision:
    missing = tuple(dict.fromkeys(name for found in rules for name in found.missing))
    reason = f"{but}insufficient evidence: {', '.join(map(_words, missing))} not known"
    return Decision(PILOT, "missing inputs", reason, missing)


def _name(found: Finding, situations: Mapping[str, str]) -> str:
    return situations.get(found.rule, found.rule)


def _words(name: str) -> str:
    return name.removesuffix("_usd").replace("_", " ")


def _shown(value: Value) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return value.replace("_", " ")
    words = "never" if isinf(value) else f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
    return minus(words)
