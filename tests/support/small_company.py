"""The smallest company worth a build: a GPU run in July 2026, a Trainium run in August, each on one instance.

The GPU instance is billed for 2 hours at 55.04 USD, the Trainium one for 4 hours at a rate a restatement may change,
and the two runs use every second of them: run cost is 110.08 + 4 x rate.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from support.bills import instance_hour, write_config, write_events, write_export

GPU_COST = Decimal("110.08")
JULY, AUGUST = "2026-07", "2026-08"
RATE = "21.50"


@dataclass(frozen=True)
class Company:
    """Where a small company keeps its bill, its run events and its ledger."""

    root: Path
    events: Path

    @property
    def config(self) -> Path:
        return self.root / "trainledger.toml"

    @property
    def export(self) -> Path:
        return self.root / "export"

    @property
    def warehouse(self) -> Path:
        return self.root / "warehouse"

    def deliver(self, month: str, rate: str) -> Decimal:
        """Deliver a month of the bill, anew where it was delivered; returns what the runs then cost in USD.

        `rate` is that of the month's instance: of the GPU one in July, of the Trainium one in August.
        """
        kind, resource, hours = {JULY: ("p5.48xlarge", "i-gpu", 2), AUGUST: ("trn1.32xlarge", "i-trn", 4)}[month]
        lines = [instance_hour(f"{month}-10T{10 + hour}", resource, kind, rate) for hour in range(hours)]
        write_export(self.root, {month: lines}, execution=f"20260901T000000Z-{rate}")
        return hours * Decimal(rate) + (GPU_COST if month == AUGUST else 4 * Decimal(RATE))

    def overbill(self) -> None:
        """Deliver July with its first GPU hour billed twice, which a check of severity error finds."""
        lines = [instance_hour(f"{JULY}-10T{hour}", "i-gpu", "p5.48xlarge", "55.04") for hour in (10, 10, 11)]
        write_export(self.root, {JULY: lines}, execution="20260901T000000Z-overbilled")

    def copy(self, root: Path, *, events: bool = False) -> Company:
        """The same company in another folder, built as far; its events are shared unless `events`."""
        for part in ("warehouse", "export", *(("events",) if events else ())):
            shutil.copytree(self.root / part, root / part)
        copied = replace(self, root=root, events=root / "events" if events else self.events)
        write_config(root, billing=copied.export, runs=copied.events)
        return copied


def found(root: Path) -> Company:
    """A company that has delivered July and August and built nothing."""
    company = Company(root, root / "events")
    company.deliver(JULY, "55.04")
    company.deliver(AUGUST, RATE)
    events = run("gpu-1", "i-gpu", "p5.48xlarge", 8, JULY, "10", "12")
    events += run("trn-1", "i-trn", "trn1.32xlarge", 16, AUGUST, "10", "14")
    write_events(company.events, events)
    write_config(root, billing=company.export, runs=company.events)
    return company


def run(
    run_id: str, resource: str, instance_type: str, accelerators: int, month: str, start: str, end: str
) -> list[dict[str, object]]:
    """The events of a run of one attempt, one epoch and one checkpoint, from hour `start` to `end` of the 10th."""
    first, last = f"{month}-10T{start}:00:00Z", f"{month}-10T{end}:00:00Z"
    events: list[dict[str, object]] = [
        {"event": "run_started", "at": first, "model": "llama", "dataset": "corpus", "seq_len": 8192},
        {"event": "attempt_started", "attempt": 1, "at": first},
        {
            **{"event": "resource_joined", "attempt": 1, "at": first, "resource": resource},
            **{"instance_type": instance_type, "accelerators_used": accelerators},
            **{"account_id": "000033334444", "region": "us-west-2"},
        },
        {"event": "epoch_completed", "attempt": 1, "epoch": 1, "at": last, "step": 100, "tokens_seen": 1e9},
        {"event": "checkpoint_saved", "attempt": 1, "at": last, "step": 100, "uri": f"s3://models/{run_id}"},
        {"event": "resource_left", "attempt": 1, "at": last, "resource": resource},
        {"event": "attempt_ended", "attempt": 1, "at": last, "reason": "completed"},
        {"event": "run_ended", "at": last, "status": "completed"},
    ]
    return [{"run_id": run_id, **event} for event in events]
