"""An engine to ask, and a small warehouse to build again with another engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from edge_bill import write_bill
from edge_decisions import decisions
from edge_focus import write_focus_bill
from edge_runs import write_runs
from edge_terms import TERMS
from reference_resources import House
from support.bills import write_config

from pipelines.config.settings import Warehouse
from pipelines.engine import Engine, open_engine

# A block's window that starts and ends in the middle of hours, some of them billed.
HELD = """reservation_id,reservation_kind,instance_type,started_at,ended_at
cr-0b10c,capacity_block,p5.48xlarge,2026-07-14T19:17:00Z,2026-07-15T02:30:00.250Z
"""

# A plan that no line of the bill names.
BOUGHT = {
    "savingsPlanArn": "arn:aws:savingsplans::000011112222:savingsplan/sp-7",
    "savingsPlanType": "Compute",
    "start": "2026-01-01T00:00:00.000Z",
    "end": "2027-01-01T00:00:00.000Z",
    "commitment": "12.3456789012",
    "termDurationInSeconds": 31536000,
}


# An invoice that states its tax.
INVOICED = "invoice_id,currency,total,tax\nINV-1,USD,1234567.8900000001,0.1234567891\n"

# A server for parts of two hours on a machine that runs have too, another in a pod, and calls of a model.
UP = {"event": "server_started", "at": "2026-07-14T20:05:00.037Z", "model": "m", "max_tokens_per_second": 333.3}
COUNTED = {"from": "2026-07-14T20:10:00Z", "to": "2026-07-14T21:20:00.5Z", "requests": 7, "output_tokens": 1000003}
SERVED = (
    {**UP, "server_id": "chat", "resource": "i-0b", "instance_type": "p5.48xlarge", "accelerators_used": 3},
    {"event": "traffic", "server_id": "chat", "input_tokens": 7, "running": 0.3, "ttft_p90": 0.7, **COUNTED},
    {**UP, "server_id": "pod", "resource": "arn:aws:eks:us-west-2:000033334444:pod/c/train/job-1/aaaa"},
    {"event": "traffic", "server_id": "pod", **COUNTED},
)
CALLED = {
    "schemaType": "ModelInvocationLog", "timestamp": "2026-07-14T20:20:00Z", "accountId": "000033334444",
    "region": "us-east-1", "requestId": "1", "modelId": "us.anthropic.claude-haiku-4-5-20251001-v1:0",
    "input": {"inputTokenCount": 12400}, "output": {"outputTokenCount": 850},
}  # fmt: skip


# A comparison declared beforehand, with a run of each table's kind.
REGISTERED = """[[registration]]
name = "edge"
workload_id = "llama-8b / corp-v3 / seq 8192 / batch 256 / bf16 / eval_loss >= 2.05"
registered_on = 2026-07-01
target_metric = "eval_loss"
target_direction = "max"
target_value = 2.05
quality_margin = 0.0371
planned_runs = 3
cost_basis = "effective"
pairs = [{gpu = "run-f", trainium = "run-b"}]

[[exclusion]]
registration = "edge"
run_id = "run-d"
reason = "its node was bad"
excluded_on = 2026-07-20
"""


# 19 hours and 17 minutes of 7 machines, and a chance.
OFFERED = {
    "CapacityBlockOfferings": [
        {
            "InstanceType": "p5.48xlarge",
            "AvailabilityZone": "us-west-2b",
            "InstanceCount": 7,
            "StartDate": "2026-07-28T16:13:00Z",
            "EndDate": "2026-07-29T11:30:00Z",
            "UpfrontFee": "1234.56",
            "CurrencyCode": "USD",
        }
    ],
    "SpotPlacementScores": [{"Region": "us-west-2", "Score": 3}],
    "InstanceTypes": ["trn1.32xlarge"],
    "TargetCapacity": 7,
}


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def opened(request: pytest.FixtureRequest) -> Callable[[], Engine]:
    return lambda: open_engine(Warehouse(engine=request.param))


@pytest.fixture
def engine(opened: Callable[[], Engine]) -> Iterator[Engine]:
    with opened() as engine:
        yield engine


@pytest.fixture(scope="session")
def edge(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A made-up month of every kind of line and every gap, with amounts that are hard to get equal."""
    root = tmp_path_factory.mktemp("edge")
    held = root / "held.csv"
    held.write_text(HELD)
    registered = root / "registered"
    registered.mkdir()
    (registered / "edge.toml").write_text(REGISTERED)
    bought = root / "bought.json"
    bought.write_text(json.dumps({"savingsPlans": [BOUGHT]}))
    invoiced = root / "invoiced.csv"
    invoiced.write_text(INVOICED)
    for name, lines in (("served", SERVED), ("called", (CALLED,))):
        (root / name).mkdir()
        (root / name / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)))
    config = write_config(
        root,
        billing=write_bill(root),
        reservations=held,
        registrations=registered,
        commitments=bought,
        invoices=invoiced,
        serving=root / "served",
    )
    (root / "2026-07-25.json").write_text(json.dumps(OFFERED))
    offers = f'\n[[capacity_offers]]\nname = "seen"\nlocation = "{root / "2026-07-25.json"}"\n'
    config.write_text(config.read_text() + offers)
    logs = f'\n[[serving]]\nname = "logs"\nkind = "bedrock_log"\nlocation = "{root / "called"}"\n'
    config.write_text(config.read_text() + logs)
    config.write_text(f'{config.read_text()}\n[[billing]]\nname = "focus"\nlocation = "{write_focus_bill(root)}"\n')
    config.write_text(config.read_text() + decisions(root) + TERMS)
    House(config, write_runs(root / "tracker")).publish()
    # The month restated: other lines on the same machines, and runs whose cost is not what it was.
    write_bill(root, seed=8, execution="20260802T000000Z-exec-2")
    return House(config, write_runs(root / "tracker"))
