"""Which way a workload leans, and why: rules given as data, weighed with what is known of it (facts training-runs 8).

Hard stops come first, then the arithmetic of the measured comparison, then the scenarios; the first that holds decides.
What is not known makes a rule unknown, never false, and an unknown rule that would have come first and leans otherwise
leaves one answer: run a spike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf, isinf
from typing import Any

SPIKE = "run a spike"
Value = str | float | None
Inputs = Mapping[str, Value]
# Beside the rules that are data.
ARITHMETIC, RESULT = "arithmetic", "result"


@dataclass(frozen=True)
class Condition:
    """An input held against a value: a word, a number, or the name of another input."""

    name: str
    comparison: str
    value: str

    def holds(self, inputs: Inputs) -> bool | None:
        """None where it needs what is not known."""
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

    def lacks(self, inputs: Inputs) -> list[str]:
        """The inputs it needs that are not known."""
        return [name for name in (self.name, self.value) if name in inputs and inputs[name] is None]

    def said(self, inputs: Inputs) -> str:
        """It with what is known, in words."""
        left, right = inputs[self.name], self._other(inputs)
        name, other = _words(self.name), _words(self.value) + " " if self.value in inputs else ""
        if self.comparison == "=":
            return f"{name} is {_told(left)}" + (f", not {_told(right)}" if self.holds(inputs) is False else "")
        return f"{name} {_told(left)} {'' if self.holds(inputs) else 'not '}{self.comparison} {other}{_told(right)}"

    def _other(self, inputs: Inputs) -> Value:
        if self.value in inputs:
            return inputs[self.value]
        return float(self.value) if self.value.replace(".", "", 1).isdigit() else self.value


@dataclass(frozen=True)
class Rule:
    """It holds where all conditions of one of its alternatives do."""

    name: str
    kind: str
    lean: str
    situation: str
    alternatives: Sequence[Sequence[Condition]]


@dataclass(frozen=True)
class Finding:
    """What one rule says of a workload: `holds` is None where what it `lacks` would tell."""

    rule: str
    kind: str
    lean: str
    holds: bool | None
    said: str
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """gpu, trainium, either or SPIKE; decided by the rule named, or by what is unknown."""

    lean: str
    decided_by: str
    reason: str
    lacks: tuple[str, ...] = ()


# Where what is not known can be told.
_TELL = {
    "a port in [[decisions.ports]]": ("break_even_runs", "payback_months", "port_cost_usd", "saving_per_run_usd"),
    "lead times in [[decisions.offers]]": ("gpu_lead_days", "trainium_lead_days"),
    "two whole months of bills": ("monthly_cost_trend_usd",),
}


def to_tell(lacks: Sequence[str]) -> str:
    """What people or bills must tell for these inputs to be known."""
    elsewhere = [place for place, names in _TELL.items() if set(names) & set(lacks)]
    own = [name for name in lacks if not any(name in names for names in _TELL.values())]
    own = ["architecture_changed_on" if name == "months_since_architecture_change" else name for name in own]
    of_workload = [f"{', '.join(own)} in [[decisions.workloads]]"] if own else []
    return f"to be told: {'; '.join([*of_workload, *elsewhere])}"


def rules_of(told: Iterable[Mapping[str, Any]], conditions: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """The rules as reviewed, hard stops first, then by their number: ref_lean_rule with ref_lean_condition."""
    by_rule: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(conditions, key=lambda row: (row["alternative_no"], row["condition_no"])):
        by_rule.setdefault(row["rule"], []).append(row)
    return [
        Rule(
            row["rule"],
            row["rule_kind"],
            row["lean"],
            row["situation"],
            [
                [Condition(one["lean_input"], one["comparison"], one["compared_value"]) for one in group]
                for _, group in groupby(by_rule[row["rule"]], key=lambda one: one["alternative_no"])
            ],
        )
        for row in sorted(told, key=lambda row: (row["rule_kind"] != "hard_stop", row["rule_no"]))
    ]


def weigh(rule: Rule, inputs: Inputs) -> Finding:
    """The rule with what is known of a workload (Kleene's three values)."""
    met = [[condition.holds(inputs) for condition in conditions] for conditions in rule.alternatives]
    each = [False if False in values else None if None in values else True for values in met]
    holds = True if True in each else None if None in each else False
    lacking = [
        name
        for conditions, value in zip(rule.alternatives, each, strict=True)
        if holds is None and value is None
        for condition in conditions
        for name in condition.lacks(inputs)
    ]
    said = "; or ".join(
        " and ".join(condition.said(inputs) for condition in conditions)
        for conditions, value in zip(rule.alternatives, each, strict=True)
        if value is holds
    )
    return Finding(rule.name, rule.kind, rule.lean, holds, said, tuple(dict.fromkeys(lacking)))


@dataclass(frozen=True)
class Measured:
    """What the comparison of a workload's two sides says, on the effective basis; `npv` is what its port is expected
    to bring, None where no port is stated; `more_runs` those that would make the interval ±5 points wide."""

    verdict: str
    reason: str
    saving: float | None = None
    low: float | None = None
    high: float | None = None
    more_runs: int | None = None
    npv: float | None = None


def arithmetic(measured: Measured | None, inputs: Inputs) -> Finding:
    """What the measured comparison decides: it says nothing before it can prove anything, and overrides scenarios then.

    Proven, it must pay the port back within the horizon, upkeep and falling prices counted; a tie goes to what can be
    had sooner, and where the interval is too wide to tell, or a pair may claim nothing, only more runs tell.
    """
    if measured is None:
        return Finding(ARITHMETIC, ARITHMETIC, SPIKE, False, "no pair of runs is compared")
    said = measured.verdict
    if measured.saving is not None:
        said += f", Trainium saves {measured.saving:.1%}"
    if measured.low is not None and measured.high is not None:
        said += f" ({measured.low:.1%} to {measured.high:.1%})"
    if measured.verdict == "indicative":
        return Finding(ARITHMETIC, ARITHMETIC, SPIKE, False, f"{said}: {measured.reason}")
    if measured.verdict == "not comparable":
        return Finding(ARITHMETIC, ARITHMETIC, SPIKE, True, f"{said}: {measured.reason}")
    if measured.verdict == "disproven":
        return Finding(ARITHMETIC, ARITHMETIC, "gpu", True, said)
    if measured.verdict == "proven":
        return _paid_back(said, measured, inputs)
    if measured.more_runs:
        return Finding(ARITHMETIC, ARITHMETIC, SPIKE, True, f"{said}: wider than ±5 points, too wide to call a tie")
    leads = inputs["gpu_lead_days"], inputs["trainium_lead_days"]
    if leads[0] == leads[1] or None in leads:
        return Finding(ARITHMETIC, ARITHMETIC, "either", True, f"{said}: a tie, and neither can be had sooner")
    sooner = "gpu" if float(leads[0] or 0) < float(leads[1] or 0) else "trainium"
    words = f"{said}: a tie, and {sooner} can be had in {min(map(float, filter(None, leads)), default=0):.0f} days"
    return Finding(ARITHMETIC, ARITHMETIC, sooner, True, words)


def _paid_back(said: str, measured: Measured, inputs: Inputs) -> Finding:
    needed, runs, port = inputs["break_even_runs"], inputs["runs_in_horizon"], inputs["port_cost_usd"]
    if port is None or needed is None or runs is None:
        lacks = ("port_cost_usd",)
        return Finding(ARITHMETIC, ARITHMETIC, "trainium", True, f"{said}; no port is stated that it must pay", lacks)
    words = f"{said}; {needed:,.0f} runs pay the port back and {float(runs):,.1f} fit the horizon"
    if float(runs) < float(needed):
        return Finding(ARITHMETIC, ARITHMETIC, "gpu", True, f"{words}: too few")
    if measured.npv is not None and measured.npv < 0:
        words += f", but with upkeep, falling prices and its chance the port is expected to lose {-measured.npv:,.2f}"
        return Finding(ARITHMETIC, ARITHMETIC, "gpu", True, words)
    return Finding(ARITHMETIC, ARITHMETIC, "trainium", True, words)


def decide(findings: Sequence[Finding], situations: Mapping[str, str]) -> Decision:
    """The first finding that holds, in the order given, unless an unknown one before it leans otherwise."""
    unknown: list[Finding] = []
    for found in findings:
        if found.holds is None:
            unknown.append(found)
        elif found.holds:
            against = [one for one in unknown if found.lean not in (one.lean, SPIKE)]
            if against:
                return _unknown(against, f"{_name(found, situations)} leans to {found.lean}, but ")
            return Decision(found.lean, found.rule, f"{_name(found, situations)}: {found.said}", found.lacks)
    return _unknown(unknown, "") if unknown else Decision(SPIKE, "nothing", "no rule applies to what is known")


def _unknown(rules: Sequence[Finding], but: str) -> Decision:
    lacks = tuple(dict.fromkeys(name for found in rules for name in found.lacks))
    return Decision(
        SPIKE, "unknown inputs", f"{but}insufficient evidence: {', '.join(map(_words, lacks))} not known", lacks
    )


def _name(found: Finding, situations: Mapping[str, str]) -> str:
    return situations.get(found.rule, found.rule)


def _words(name: str) -> str:
    return name.removesuffix("_usd").replace("_", " ")


def _told(value: Value) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return value.replace("_", " ")
    return "never" if isinf(value) else f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
