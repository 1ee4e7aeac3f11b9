"""One file of a generated large bill: machines of runs, covered and reserved fleets, and the long tail."""

from __future__ import annotations

import random
from datetime import timedelta

import numpy as np
import pyarrow as pa

from pipelines.bench.catalog import Templates
from pipelines.bench.rows import Resources, Rows, bill_table, joined, priced
from pipelines.bench.runs import Shape, bench_runs, unclaimed_nodes
from pipelines.demo.lines import hours_in_month, hours_of, month_start
from pipelines.demo.machines import Machine, machines
from pipelines.demo.scenario import Account
from pipelines.demo.timeline import Timeline, play

# Shares of all lines.
CLAIMED, COVERED, RESERVED = 0.85, 0.10, 0.04
RESOURCES_PER_MONTH, TAG_SETS = 60_000, 3_000
TAGGED_RATIO, PLAN_COVERED_NODES, COMMON_BOXES = 0.5, 0.3, 20
TAG_VALUES = {"team": 60, "environment": 4, "cost_center": 200, "service": 150, "owner": 40, "managed_by": 3}


def bench_file(
    accounts: list[Account], number: int, files: int, lines: int, month: str, seed: int, shape: Shape
) -> tuple[pa.Table, list[Timeline]]:
    """File `number` of `files`: exactly `lines` lines, and the runs whose machines are among them.

    A file has a Savings Plan and machines of its own, so its identities hold without the other files.
    """
    draw, chance = random.Random(f"{seed}/{number}"), np.random.default_rng([seed, number])
    payer = accounts[0]
    plan = f"arn:aws:savingsplans::{payer.id}:savingsplan/00000000-0000-4000-8000-{number:012d}"
    templates = Templates(payer, plan, month)
    resources = Resources(accounts, tag_sets=[{}, *(_tags(draw) for _ in range(TAG_SETS))])
    # Of the month too: a bill of another month next to it has runs and machines of its own.
    prefix = f"bench-{month}-{number:03d}"
    node_hours = shape.accelerated * lines
    runs = max(1, round(lines * shape.runs_per_million / 1e6))
    timelines = [play(run) for run in bench_runs(draw, prefix, runs, node_hours * CLAIMED, accounts[1:], month, shape)]
    free = unclaimed_nodes(draw, prefix, node_hours * (1 - CLAIMED), accounts[1:], month)
    fleet = machines(free, [stay for played in timelines for stay in played.stays])
    filler = _Filler(templates, resources, chance, number, RESOURCES_PER_MONTH // files / lines, month)
    covered_boxes = np.array([templates.covered[row] for row in templates.boxes[:COMMON_BOXES]])
    reserved_boxes = np.array([templates.reserved[row] for row in templates.boxes[:COMMON_BOXES]])
    parts = [
        _machine_rows(templates, resources, draw, fleet, month),
        filler.rows(round(lines * COVERED), covered_boxes),
        filler.rows(round(lines * RESERVED), reserved_boxes),
    ]
    parts += [_negations(templates, joined(parts)), *_fees(templates, joined(parts), month)]
    left = lines - sum(len(part) for part in parts)
    boxes = filler.rows(left * 3 // 10, np.array(templates.boxes))
    parts += [boxes, filler.rows(left - len(boxes), np.array(templates.services))]
    return bill_table(templates, resources, joined(parts), month, number), timelines


def _tags(draw: random.Random) -> dict[str, str]:
    keys = draw.sample(list(TAG_VALUES), draw.randint(4, 6))
    return {f"user_{key}": f"{key}-{draw.randrange(TAG_VALUES[key])}" for key in sorted(keys)}


class _Filler:
    """Makes lines of resources that live for some hours of the month each."""

    def __init__(
        self,
        templates: Templates,
        resources: Resources,
        chance: np.random.Generator,
        number: int,
        resources_per_line: float,
        month: str,
    ) -> None:
        self.templates, self.resources, self.chance, self.number = templates, resources, chance, number
        self.hours = hours_in_month(month_start(month))
        self.resources_per_line = max(min(resources_per_line, 1 / 33), 1.01 / self.hours)

    def rows(self, count: int, choices: np.ndarray) -> Rows:
        """`count` lines over resources that each have one of the `choices` of templates."""
        chance, pool = self.chance, max(1, -(-round(count * self.resources_per_line) // 1))
        pool = max(pool, -(-count // self.hours))
        template = chance.choice(choices, pool)
        added = self._add(pool)
        lengths = np.full(pool, count // pool)
        lengths[: count % pool] += 1
        which = np.repeat(np.arange(pool), lengths)
        since = np.arange(count) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        hour = chance.integers(0, self.hours - lengths + 1)[which] + since
        template = template[which]
        is_hourly = self.templates.is_hourly[template]
        hours = np.where(chance.random(count) < 0.95, 1.0, chance.random(count))
        dollars = np.exp(chance.normal(-4.0, 1.5, count))
        amount = np.where(is_hourly, hours, dollars / np.maximum(self.templates.rate[template], 1e-12))
        return priced(self.templates, template, added[which], hour, amount)

    def _add(self, pool: int) -> np.ndarray:
        first = len(self.resources.ids)
        account = self.chance.integers(1, len(self.resources.accounts), pool)
        is_tagged = self.chance.random(pool) < TAGGED_RATIO
        tag_set = np.where(is_tagged, self.chance.integers(1, TAG_SETS + 1, pool), 0)
        # A fifth of the lines name no resource, as API requests and data transfer do.
        is_named = self.chance.random(pool) < 0.8
        ids = [f"i-0{self.number:04x}{first + place:012x}" if named else "" for place, named in enumerate(is_named)]
        return self.resources.add(ids, account.tolist(), tag_set.tolist())


def _machine_rows(
    templates: Templates, resources: Resources, draw: random.Random, fleet: list[Machine], month: str
) -> Rows:
    template, resource, hour, amount = [], [], [], []
    account_number = {account: place for place, account in enumerate(resources.accounts)}
    start = month_start(month)
    for machine in fleet:
        node = machine.node
        kind = templates.accelerated[node.instance_type, node.region, node.market]
        if node.market == "on_demand" and draw.random() < PLAN_COVERED_NODES:
            kind = templates.covered[kind]
        resources.tag_sets.append({f"user_{key}": value for key, value in machine.tags.items()})
        added = resources.add([node.id], [account_number[node.account]], [len(resources.tag_sets) - 1])
        for at, seconds in hours_of(machine.launched_at, machine.ended_at):
            template.append(kind)
            resource.append(added[0])
            hour.append((at - start) // timedelta(hours=1))
            amount.append(seconds / 3600)
    return priced(templates, np.array(template), np.array(resource), np.array(hour), np.array(amount))


def _negations(templates: Templates, lines: Rows) -> Rows:
    """One line an hour and usage type takes back what its covered lines show as On-Demand cost."""
    negation = np.full(len(templates.rate), -1)
    negation[list(templates.negation)] = list(templates.negation.values())
    is_covered = negation[lines.template] >= 0
    hours = int(lines.hour.max()) + 1
    key = negation[lines.template[is_covered]] * hours + lines.hour[is_covered]
    keys, group = np.unique(key, return_inverse=True)
    amount = np.round(np.bincount(group, lines.amount[is_covered]), 10)
    cost = -np.round(np.bincount(group, lines.cost[is_covered]), 10)
    no_run = np.zeros(len(keys), np.int32)
    return Rows((keys // hours).astype(np.int32), no_run, (keys % hours).astype(np.int32), amount, cost)


def _fees(templates: Templates, lines: Rows, month: str) -> list[Rows]:
    """The plan's hourly fee, enough for its busiest hour, and the reservation's monthly fee, all used."""
    committed = np.round(lines.amount * templates.commitment_rate[lines.template], 10)
    is_covered = np.isin(lines.template, list(templates.covered.values()))
    is_reserved = np.isin(lines.template, list(templates.reserved.values()))
    hours = hours_in_month(month_start(month))
    used = np.bincount(lines.hour[is_covered], committed[is_covered], hours)
    hour, no_run, one = np.arange(hours, dtype=np.int32), np.zeros(hours, np.int32), np.ones(hours)
    plan = Rows(np.full(hours, templates.plan_fee), no_run, hour, one, one * np.ceil(used.max()))
    reserved_hours, reserved_usd = lines.amount[is_reserved].sum(), committed[is_reserved].sum()
    fee = Rows(
        np.array([templates.reservation_fee]),
        no_run[:1],
        hour[:1],
        np.round([reserved_hours], 10),
        np.round([reserved_usd], 10),
    )
    return [plan, fee]
