"""Plays a run through: when each attempt started, what it reported, and which machines it held."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pipelines.demo.price_list import INSTANCE_TYPES
from pipelines.demo.scenario import Node, Run

JOIN_SECONDS, JOIN_STAGGER_SECONDS = 21, 9
INIT_SECONDS, RESTORE_SECONDS, TEARDOWN_SECONDS = 160, 130, 45
UPLOAD_SECONDS = 48
PACE_SPREAD = 0.012


@dataclass(frozen=True)
class Event:
    """One event as the training process `rank` of an attempt wrote it."""

    attempt: int
    rank: int
    at: datetime
    name: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Stay:
    """A run's hold on a node."""

    run: Run
    attempt: int
    node: Node
    joined_at: datetime
    left_at: datetime


@dataclass
class Timeline:
    """Everything that happened to a run, in order of writing."""

    run: Run
    events: list[Event] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)


def play(run: Run) -> Timeline:
    """The run's timeline; the same run always plays the same way."""
    played = Timeline(run)
    first = _Attempt(played, 1, run.nodes, run.started_at, 0.0)
    stop = run.stop
    if stop is None:
        first.train_until(run.epochs)
        first.finish("completed", "completed")
        return played
    first.train_until(stop.position)
    if stop.resumed_at is None:
        first.finish(stop.reason, "failed", stop.is_recorded)
        return played
    first.finish(stop.reason, None, stop.is_recorded)
    second = _Attempt(played, 2, stop.resumed_on, stop.resumed_at, first.resumable)
    second.train_until(run.epochs)
    second.finish("completed", "completed")
    return played


class _Attempt:
    """One attempt while it runs: a clock, a position in epochs and the last position that can be resumed."""

    def __init__(
        self, played: Timeline, number: int, nodes: tuple[Node, ...], started_at: datetime, position: float
    ) -> None:
        self.played, self.number, self.nodes = played, number, nodes
        self.run = played.run
        self.clock = started_at
        self.position = self.resumable = position
        self.joined: list[datetime] = []
        self.pace = random.Random(f"{self.run.id}/{number}")
        self._start(started_at)

    def _start(self, started_at: datetime) -> None:
        run = self.run
        if self.number == 1:
            self._write("run_started", **_description(run))
        self._write("attempt_started", first_step=self._step)
        for rank, node in enumerate(self.nodes):
            joined_at = started_at + timedelta(seconds=JOIN_SECONDS + JOIN_STAGGER_SECONDS * rank)
            self.joined.append(joined_at)
            if run.reports_resources:
                self.played.events.append(
                    Event(self.number, rank, joined_at, "resource_joined", _resource(run, node, rank))
                )
        self.clock = self.joined[-1]
        self._phase("init", INIT_SECONDS)
        self._phase("compile", run.compile_seconds)
        if self.position:
            self._phase("restore", RESTORE_SECONDS)

    def train_until(self, end: float) -> None:
        """Train to position `end`, saving and evaluating on the way."""
        self._phase("train")
        saves = self.run.saves_per_epoch
        while self.position < end:
            mark = min(int(self.position * saves + 1.000001) / saves, self.run.epochs)
            self._advance(min(mark, end))
            if mark > end:
                return
            is_epoch = mark == int(mark) or mark == self.run.epochs
            if is_epoch:
                self._complete_epoch()
            self._save()
            if is_epoch:
                self._evaluate()

    def finish(self, reason: str, status: str | None, is_recorded: bool = True) -> None:
        """Leave the nodes, without a word if killed. `status` None: another attempt follows."""
        if is_recorded:
            self._phase("teardown", TEARDOWN_SECONDS)
        ended_at = self.clock
        for rank, (node, joined_at) in enumerate(zip(self.nodes, self.joined, strict=True)):
            self.played.stays.append(Stay(self.run, self.number, node, joined_at, ended_at))
            if is_recorded and self.run.reports_resources:
                self.played.events.append(Event(self.number, rank, ended_at, "resource_left", {"resource": node.id}))
        # What was still being uploaded when the process died was never saved.
        self.played.events = [
            event for event in self.played.events if event.attempt != self.number or event.at <= ended_at
        ]
        if is_recorded:
            self._write("attempt_ended", reason=reason)
            if status:
                self.clock += timedelta(seconds=5)
                self._write("run_ended", status=status)

    @property
    def _step(self) -> int:
        return round(self.position * self.run.workload.steps_per_epoch)

    def _write(self, name: str, at: datetime | None = None, **values: Any) -> None:
        self.played.events.append(Event(self.number, 0, at or self.clock, name, values))

    def _phase(self, phase: str, seconds: int = 0) -> None:
        self._write("phase_started", phase=phase)
        self.clock += timedelta(seconds=seconds)

    def _advance(self, position: float) -> None:
        pace = self.pace.uniform(1 - PACE_SPREAD, 1 + PACE_SPREAD)
        self.clock += timedelta(seconds=round((position - self.position) * self.run.epoch_seconds * pace))
        self.position = position

    def _progress(self) -> dict[str, Any]:
        workload = self.run.workload
        seen: dict[str, Any] = {
            "step": self._step,
            "samples_seen": round(self.position * workload.samples_per_epoch),
        }
        if workload.tokens_per_epoch:
            seen["tokens_seen"] = round(self.position * workload.tokens_per_epoch)
        return seen

    def _complete_epoch(self) -> None:
        index = math.ceil(self.position)
        values: dict[str, Any] = {"epoch": index, **self._progress()}
        if self.position < index:
            values["fraction"] = round(1 - (index - self.position), 6)
        self._write("epoch_completed", **values)

    def _save(self) -> None:
        run = self.run
        is_resumable = self.position not in run.weights_only
        saving_at = self.clock
        self.clock += timedelta(seconds=run.stall_seconds)
        durable_at = self.clock + timedelta(seconds=UPLOAD_SECONDS)
        self._write(
            "checkpoint_saved",
            at=durable_at,
            **self._progress(),
            uri=f"s3://larkfield-{run.workload.team}-checkpoints/{run.id}/step-{self._step}/",
            save_started_at=rfc3339(saving_at),
            stall_seconds=float(run.stall_seconds),
            bytes=run.save_bytes if is_resumable else run.save_bytes // 6,
            resumable=is_resumable,
        )
        if is_resumable:
            self.resumable = self.position

    def _evaluate(self) -> None:
        self._phase("eval", self.run.eval_seconds)
        workload = self.run.workload
        value = self.run.metric[math.ceil(self.position) - 1]
        self._write("evaluation", step=self._step, metric=workload.target_metric, value=value, split="validation")
        if self.position < self.run.epochs:
            self._phase("train")


def _resource(run: Run, node: Node, rank: int) -> dict[str, Any]:
    described = {
        "resource": node.id,
        "instance_type": node.instance_type,
        "account_id": node.account.id,
        "region": node.region,
        "accelerators_used": run.accelerators or INSTANCE_TYPES[node.instance_type].accelerators,
        "node_rank": rank,
        "market": node.market,
    }
    return described | ({"reservation_id": node.reservation.id} if node.reservation else {})


def rfc3339(at: datetime) -> str:
    return at.isoformat() + "Z"


def _description(run: Run) -> dict[str, Any]:
    workload = run.workload
    described = {
        "model": workload.model,
        "dataset": workload.dataset,
        "dataset_tokens": workload.dataset_tokens,
        "dataset_samples": workload.dataset_samples,
        "epoch_unit": "token_block" if workload.epoch_tokens else None,
        "epoch_unit_size": workload.epoch_tokens,
        "seq_len": workload.seq_len,
        "global_batch_samples": workload.global_batch_samples,
        "precision": workload.precision,
        "code_revision": "9f3c2ab",
        "target_metric": workload.target_metric,
        "target_value": workload.target_value,
        "target_direction": workload.target_direction,
        "purpose": workload.purpose,
        "experiment": workload.experiment,
        "team": workload.team,
        "owner": run.owner,
    }
    return {key: value for key, value in described.items() if value is not None}
