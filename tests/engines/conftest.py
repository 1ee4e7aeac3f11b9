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


# A comparison said of beforehand, with a run of each table's kind.
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
    config = write_config(
        root, billing=write_bill(root), reservations=held, registrations=registered, commitments=bought
    )
    config.write_text(f'{config.read_text()}\n[[billing]]\nname = "focus"\nlocation = "{write_focus_bill(root)}"\n')
    config.write_text(config.read_text() + decisions(root) + TERMS)
    House(config, write_runs(root / "tracker")).publish()
    # The month restated: other lines on the same machines, and runs whose cost is not what it was.
    write_bill(root, seed=8, execution="20260802T000000Z-exec-2")
    return House(config, write_runs(root / "tracker"))
