"""The vocabulary of the demo's story. Times are naive UTC, money is USD, intervals are half-open."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property


def utc(text: str) -> datetime:
    """A naive UTC time from 'YYYY-MM-DD HH:MM:SS'."""
    return datetime.fromisoformat(text)


def opaque_id(prefix: str, name: str, length: int = 17) -> str:
    """An AWS-looking identifier that never changes for a name: i-0…, vol-0…, cr-0…"""
    return prefix + "0" + hashlib.blake2b(f"{prefix}{name}".encode()).hexdigest()[: length - 1]


@dataclass(frozen=True)
class Account:
    id: str
    name: str


@dataclass(frozen=True)
class Reservation:
    """Capacity held for us: an On-Demand Capacity Reservation, or with `fee_per_hour` a Capacity Block."""

    name: str
    instance_type: str
    account: Account
    zone: str
    count: int
    started_at: datetime
    ended_at: datetime
    purchased_at: datetime | None = None
    fee_per_hour: float | None = None

    @property
    def is_block(self) -> bool:
        return self.fee_per_hour is not None

    @property
    def id(self) -> str:
        return opaque_id("cr-", self.name)

    @property
    def arn(self) -> str:
        return f"arn:aws:ec2:{self.zone[:-1]}:{self.account.id}:capacity-reservation/{self.id}"


@dataclass(frozen=True)
class Node:
    """One instance. Without times of its own it lives from just before its first run to just after its last.

    `tags` None: the tags of its first run.
    """

    name: str
    instance_type: str
    account: Account
    zone: str
    market: str = "on_demand"
    reservation: Reservation | None = None
    tags: dict[str, str] | None = None
    boot_seconds: int = 170
    linger_seconds: int = 95
    volume_gib: int = 0
    launched_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def id(self) -> str:
        return opaque_id("i-", self.name)

    @property
    def region(self) -> str:
        return self.zone[:-1]


def fleet(node: Node, count: int) -> tuple[Node, ...]:
    """`count` nodes like `node`, named -0, -1, …"""
    return tuple(replace(node, name=f"{node.name}-{rank}") for rank in range(count))


@dataclass(frozen=True)
class Workload:
    """What a run trains. Runs of one workload may be compared."""

    model: str
    dataset: str
    purpose: str
    team: str
    seq_len: int | None
    global_batch_samples: int
    target_metric: str
    target_value: float
    target_direction: str
    dataset_samples: float
    dataset_tokens: float | None = None
    epoch_tokens: float | None = None
    precision: str = "bf16"
    experiment: str | None = None

    @cached_property
    def tokens_per_epoch(self) -> float | None:
        """Tokens of one epoch: the whole dataset, unless epochs are declared blocks of tokens."""
        return self.epoch_tokens or self.dataset_tokens

    @cached_property
    def samples_per_epoch(self) -> float:
        """Samples of one epoch, in proportion to its tokens."""
        if self.epoch_tokens and self.dataset_tokens:
            return self.dataset_samples * self.epoch_tokens / self.dataset_tokens
        return self.dataset_samples

    @cached_property
    def steps_per_epoch(self) -> float:
        return self.samples_per_epoch / self.global_batch_samples


@dataclass(frozen=True)
class Stop:
    """An attempt that ended early, at `position` epochs of training.

    `is_recorded` False: the process was killed and wrote nothing more. No `resumed_at`: the run ends here.
    """

    position: float
    reason: str
    is_recorded: bool = True
    resumed_at: datetime | None = None
    resumed_on: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Run:
    """One training run: `epoch_seconds` of pure training an epoch, and the metric measured after each."""

    id: str
    workload: Workload
    owner: str
    nodes: tuple[Node, ...]
    started_at: datetime
    epoch_seconds: int
    metric: tuple[float, ...]
    compile_seconds: int
    last_fraction: float = 1.0
    saves_per_epoch: int = 1
    stall_seconds: int = 40
    save_bytes: int = 98_304_000_000
    eval_seconds: int = 240
    weights_only: tuple[float, ...] = ()
    stop: Stop | None = None
    accelerators: int | None = None
    reports_resources: bool = True

    @property
    def epochs(self) -> float:
        """Epochs the run sets out to train; the last may be a part."""
        return len(self.metric) - 1 + self.last_fraction


@dataclass(frozen=True)
class SavingsPlan:
    """A Compute Savings Plan, No Upfront, held by the payer and shared by all accounts."""

    arn: str
    account: Account
    usd_per_hour: float
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True)
class ReservedInstances:
    """A Reserved Instance purchase of `count` instances of one offer in one account and region."""

    id: str
    product_code: str
    usage_type: str
    account: Account
    region: str
    count: int
    started_at: datetime
    ended_at: datetime
    usd_per_hour: float
    upfront_usd: float = 0.0

    @property
    def arn(self) -> str:
        service = "rds" if self.product_code == "AmazonRDS" else "ec2"
        return f"arn:aws:{service}:{self.region}:{self.account.id}:reserved-instances/{self.id}"

    @property
    def upfront_usd_per_hour(self) -> float:
        """Upfront price of one instance spread over the hours of the term."""
        return self.upfront_usd / ((self.ended_at - self.started_at).total_seconds() / 3600)


@dataclass(frozen=True)
class Service:
    """Something that is always on: `amount` units of an offer each hour, or each day for stored bytes."""

    offer: str
    account: Account
    region: str
    amount: float
    resource: str = ""
    swing: float = 0.0
    is_daily: bool = False
    tags: dict[str, str] | None = None
