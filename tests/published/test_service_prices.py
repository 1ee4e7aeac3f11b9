"""Prices published on AWS's own pages, through a bill: a managed-spot saving (S4), inferences by the million (S5)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from support.bills import instance_time, moment, one_attempt, write_config, write_events, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.models.build import Builder

STARTED, HOUR = datetime(2026, 7, 14, 10), timedelta(hours=1)
JOB = "arn:aws:sagemaker:us-west-2:000033334444:training-job/spot-1"
# Neuron's Inf2 page, September 2024: inferences a second, USD per million at the RI-effective 0.328 an hour.
INFERENCES = (
    ("albert-base-v2", "2999.88", 0.030),
    ("bert-base-cased", "2697.72", 0.034),
    ("bert-large-cased", "906.91", 0.100),
    ("distilbert-base-cased", "4756.25", 0.019),
)
RATE, ON_DEMAND = "0.328", "0.7582"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    trained, billed = timedelta(seconds=500), timedelta(seconds=100)
    lines = instance_time(
        JOB,
        "ml.p4d.24xlarge",
        "26",
        STARTED,
        billed,
        line_item_product_code="AmazonSageMaker",
        line_item_operation="RunInstance",
        line_item_usage_type="USW2-Train:ml.p4d.24xlarge",
    )
    events = one_attempt("spot-1", [JOB], "ml.p4d.24xlarge", STARTED, trained, purpose="finetune")
    for model, per_second, _ in INFERENCES:
        for kind, rate in (("reserved", RATE), ("on-demand", ON_DEMAND)):
            node = f"i-{model}-{kind}"
            lines += instance_time(node, "inf2.xlarge", rate, STARTED, HOUR)
            # An inference stands for a token: both are counted by the million.
            seen = {"event": "epoch_completed", "epoch": 1, "tokens_seen": float(per_second) * 3600}
            inside = [{**seen, "at": moment(STARTED + HOUR)}]
            events += one_attempt(f"{model} {kind}", [node], "inf2.xlarge", STARTED, HOUR, inside, model=model)
    root = tmp_path_factory.mktemp("services")
    export = write_export(root, {"2026-07": lines})
    return lazy_warehouse(write_config(root, billing=export, runs=write_events(root / "runs", events)))


def test_managed_spot_bills_a_fifth_of_the_training_time(built: Builder) -> None:
    """SageMaker API reference: BillableTimeInSeconds 100, TrainingTimeInSeconds 500, so (1 - 100/500) x 100 = 80 %."""
    hours, started_at, ended_at = ask(
        built, "select accelerator_hours, started_at, ended_at from mart_run_cost where run_id = 'spot-1'"
    ).row(0)
    billed_seconds = float(hours) * 3600 / 8
    assert (1 - billed_seconds / (ended_at - started_at).total_seconds()) * 100 == pytest.approx(80, abs=1e-4)


@pytest.mark.parametrize(("model", "per_second", "usd"), INFERENCES)
def test_a_million_inferences(built: Builder, model: str, per_second: str, usd: float) -> None:
    def price(kind: str) -> float:
        sql = f"select cost_per_million_tokens_usd from mart_run_cost where run_id = '{model} {kind}'"
        return float(ask(built, sql).item())

    # Printed to a tenth of a cent; on demand 2.3 times as much, so the page's basis must be stated.
    assert price("reserved") == pytest.approx(usd, abs=0.0005)
    assert price("on-demand") / price("reserved") == pytest.approx(2.3, abs=0.05)
