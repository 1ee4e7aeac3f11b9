"""The buckets of the ledger, each with its meaning in one line."""

from __future__ import annotations

BUCKETS = {
    "run": "joined to a recorded run: its instances, storage and network",
    "idle": "instances of recorded runs, billed while no run used them",
    "unattributed": "accelerators that no recorded run used",
    "capacity_unused": "reserved capacity and Capacity Blocks without instances",
    "commitment_unused": "unused part of Savings Plans and reserved instances; billed: their whole fees",
    "shared": "storage, network and platform services that serve many runs",
    "other": "everything else on the bill",
}
