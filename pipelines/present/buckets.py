"""The places of the ledger a dollar can be in, each in one line."""

from __future__ import annotations

BUCKETS = {
    "run": "joined to a recorded run: its instances, storage and network",
    "idle": "machines that runs are known to use, billed while no run used them",
    "unattributed": "accelerators that no recorded run ever named",
    "capacity_unused": "reserved capacity and Capacity Blocks that ran nothing",
    "commitment_unused": "Savings Plans and reserved instances that no use drew on; billed, their whole fees",
    "shared": "storage, network and platform services that serve many runs",
    "other": "everything else on the bill",
}
