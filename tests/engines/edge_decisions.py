"""Decisions about the made-up month: a baseline, adjustments, ports with and without a pair, inputs of rules."""

from __future__ import annotations

import hashlib
from pathlib import Path

# Run b trains on Trainium, run a on a GPU.
WORKLOAD = "llama-8b / corp-v3 / seq 8192 / batch 256 / bf16 / eval_loss >= 2.05"
BASELINE = f"""name = "b"
version = 1
frozen_on = 2026-07-01
workload_id = "{WORKLOAD}"
gpu_instance_type = "p5.48xlarge"
unit_measure = "cost_per_million_tokens"
hours_per_unit = 0.0123456789
hours_low_per_unit = 0.0111111111
hours_high_per_unit = 0.0133333333
paid_ratio = 0.7
"""
# Run f began at a checkpoint, run b at none.
MEASURED = f"""name = "c"
version = 1
frozen_on = 2026-07-14
workload_id = "{WORKLOAD}"
gpu_instance_type = "p5.48xlarge"
unit_measure = "cost_per_epoch"
run_ids = ["run-f"]
"""
PORT = f"""
[[decisions.ports]]
workload_id = "{WORKLOAD}"
started_on = 2026-07-02
engineer_days = 3.3
day_rate_usd = "799.99"
pilot_run_ids = ["run-c"]
validation_run_ids = ["run-a", "gone"]
planned_gpu_cost_usd_per_run = "333.33"
planned_saving_ratio = 0.123
runs_per_month = 3.3
success_ratio = 0.9
"""
# What one workload is like, and a block that is offered.
KNOWN = f"""
[[decisions.workloads]]
workload_id = "{WORKLOAD}"
architecture = "mainstream"
architecture_changed_on = 2026-01-13
team_is_cuda_native = true
need_within_days = 9

[[decisions.offers]]
instance_type = "trn1.32xlarge"
region_id = "us-west-2"
purchase_option = "capacity_block"
lead_days = 3
reported_on = 2026-07-25
price_per_hour_usd = "9.5321"
block_hours = 24
"""


def decisions(root: Path) -> str:
    """The `[decisions]` section; its baselines are written below `root`."""
    baselines = ""
    for file, text in (("baseline.toml", BASELINE), ("measured.toml", MEASURED)):
        (root / file).write_text(text)
        seal = hashlib.sha256(text.encode()).hexdigest()
        baselines += f'\n[[decisions.baselines]]\nfile = "{file}"\nsha256 = "{seal}"\n'
    adjustments = "".join(
        f'\n[[decisions.adjustments]]\nbaseline = "b"\nmonth = "{month}"\namount_usd = "{usd}"\nreason = "it\'s so"\n'
        "decided_on = 2026-09-01\n"
        for month, usd in (("2026-07", "-0.12345678905"[:13]), ("2026-08", "1.3"))
    )
    budgets = "".join(
        f'\n[[decisions.budgets]]\nteam = "{team}"\namount_usd = "{usd}"\n'
        for team, usd in (("nlp", "1234.567891"), ("it's someone's", "1"))
    )
    return (
        f"{baselines}{adjustments}{budgets}"
        + PORT.replace("workload_id", 'name = "one"\nworkload_id')
        + PORT.replace(WORKLOAD, "someone's")
        .replace("workload_id", 'name = "other"\nworkload_id')
        .replace('["run-c"]', '["run-a"]')
        .replace('["run-a", "gone"]', "[]")
        + KNOWN
    )
