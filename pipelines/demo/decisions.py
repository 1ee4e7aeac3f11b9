"""What the made-up company decided, agreed and knows: a registered comparison, a frozen baseline, a port, an EDP,
credits, what it can get, a budget.
"""

from __future__ import annotations

import hashlib

WORKLOAD = "llama-3.1-8b / corp-v3 / seq 8192 / batch 256 / bf16 / eval_loss <= 2.05"

REGISTRATION = f"""\
# What counts as proof, declared before the first run.
[[registration]]
name = "llama8b-2026"
workload_id = "{WORKLOAD}"
registered_on = 2026-06-02
target_metric = "eval_loss"
target_direction = "min"
target_value = 2.05
quality_margin = 0.02
planned_runs = 4
cost_basis = "effective"

[[registration]]
name = "embed-2026"
workload_id = "embed-e5 / support-pairs-v9 / seq 512 / batch 1024 / bf16 / eval_recall >= 0.91"
registered_on = 2026-06-15
target_metric = "eval_recall"
target_direction = "max"
quality_margin = 0.005
planned_runs = 3
cost_basis = "effective"

[[registration]]
name = "speech-2026"
workload_id = "speech-ctc-s / dock-calls-v2 / seq ? / batch 256 / bf16 / eval_wer <= 0.12"
registered_on = 2026-06-15
target_metric = "eval_wer"
target_direction = "min"
quality_margin = 0.005
planned_runs = 3
cost_basis = "effective"
"""

# The two runs of June: no interval, for two runs do not show how hours vary.
BASELINE = f"""\
name = "llama8b"
version = 1
frozen_on = 2026-06-30
workload_id = "{WORKLOAD}"
gpu_instance_type = "p5.48xlarge"
region_id = "us-east-1"
unit_measure = "cost_to_target"
run_ids = ["llama8b-p5-1", "llama8b-p5-2"]
"""

CONFIG = f"""
[proof]
registrations = "registrations"

[[decisions.baselines]]
file = "baselines/llama8b-1.toml"
sha256 = "{hashlib.sha256(BASELINE.encode()).hexdigest()}"

[[decisions.ports]]
name = "llama8b to trn1"
workload_id = "{WORKLOAD}"
started_on = 2026-05-25
engineer_days = 12
day_rate_usd = "900"
validation_run_ids = ["llama8b-trn1-1", "llama8b-trn1-2"]
upkeep_usd_per_month = "150"
planned_gpu_cost_usd_per_run = "850"
planned_saving_ratio = 0.3
runs_per_month = 4
horizon_months = 36
discount_ratio = 0.1
gpu_price_fall_ratio = 0.15
success_ratio = 0.9

[[terms.agreements]]
name = "EDP 2026"
excluded_services = ["AWSSupportBusiness"]
shortfall = "paid"

[[terms.agreements.periods]]
first_month = "2026-06"
last_month = "2027-05"
commitment_usd = "270000"

[[terms.credits]]
name = "MAP 2026"
matches = "Migration Acceleration Program"
eligible_services = ["AmazonEC2"]
issued_usd = "6000"
issued_on = 2026-06-01
expires_on = 2026-12-31

[[decisions.workloads]]
workload_id = "larkfield-3b / corp-web-v5 / seq 4096 / batch 1024 / bf16 / eval_loss <= 2.62"
architecture = "mainstream"
custom_cuda = "none"
neuron_supported = "yes"
architecture_changed_on = 2025-11-03

[[decisions.workloads]]
workload_id = "moe-4x3b / corp-web-v5 / seq 4096 / batch 512 / bf16 / eval_loss <= 2.55"
architecture = "novel"
architecture_changed_on = 2026-06-22

[[decisions.workloads]]
workload_id = "detr-x / dockyard-v2 / seq ? / batch 512 / bf16 / eval_map >= 0.61"
architecture = "moderate_custom"
custom_cuda = "heavy"

[[decisions.offers]]
instance_type = "p5.48xlarge"
region_id = "us-east-1"
purchase_option = "on_demand"
lead_days = 21
reported_on = 2026-07-20

[[decisions.offers]]
instance_type = "trn1.32xlarge"
region_id = "us-east-1"
purchase_option = "capacity_block"
lead_days = 3
reported_on = 2026-07-20
price_per_hour_usd = "9.532"
block_hours = 24

[[decisions.serving]]
model = "qwen3-32b"
candidate_model = "Qwen3 32B"
input_usd = "0.15"
output_usd = "0.60"
source = "AWS Price List of us-east-1, 2026-07-27"
same_quality = true
meets_latency = true

[[decisions.serving]]
model = "e5-embed"
instance_type = "g6.xlarge"
tokens_per_second = 7500
source = "our benchmark of 2026-06-12"
same_quality = true
meets_latency = true

[[decisions.serving]]
model = "Claude Haiku 4.5"
candidate_model = "qwen3-32b"
instance_type = "g6e.xlarge"
region_id = "us-east-1"

[[decisions.budgets]]
team = "nlp"
amount_usd = "10000"
"""
