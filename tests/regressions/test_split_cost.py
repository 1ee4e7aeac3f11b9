"""Split cost allocation: a machine's cost repeated pod by pod, never added to it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from support.bills import instance_hour, write_config, write_events, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.models.contract import load_contract

POD = "arn:aws:eks:us-west-2:000033334444:pod/ml/train/worker-0/1a2b"


def pod_row(kind: str, quantity: str, ratio: str, cost: str) -> dict[str, str]:
    """A split row of POD on i-0p5 in hour 10 of 14 July."""
    return {
        "line_item_usage_start_date": "2026-07-14T10:00:00.000Z",
        "line_item_usage_end_date": "2026-07-14T11:00:00.000Z",
        "line_item_usage_type": f"USW2-EKS-EC2-{kind}-Hours",
        "line_item_resource_id": POD,
        "line_item_usage_amount": quantity,
        "line_item_unblended_cost": "0",
        "line_item_operation": "EKSPod-EC2",
        "line_item_product_code": "AmazonEKS",
        "split_line_item_parent_resource_id": "i-0p5",
        "split_line_item_split_usage": quantity,
        "split_line_item_split_usage_ratio": ratio,
        "split_line_item_split_cost": cost,
        "split_line_item_unused_cost": "0",
    }


def test_split_child_rows_add_nothing_where_the_machine_counts(tmp_path: Path) -> None:
    """T13. A p5.48xlarge hour at 55.04 in two lines, 30.04 and 25, as a half covered by a plan would be.

    The pod holds 4 of 8 GPUs and half of the rest: AWS gives it 72 / 449.6 of the machine for accelerators over 2 and
    so on, 27.52 in all. Ledger 55.04, once; a join of pods to two machine lines would show 110.08 or 82.56. The
    accelerators weigh 72 / 449.6 = 0.160142 (facts 4.4: 16 %), so the row alone is badly low; by chips held the pod has
    half of the machine, 27.52.
    """
    lines = [
        instance_hour("2026-07-14T10", "i-0p5", "p5.48xlarge", "60.08", "0.5"),
        instance_hour("2026-07-14T10", "i-0p5", "p5.48xlarge", "50", "0.5"),
        pod_row("Accelerator", "4", "0.5", "4.4071174377"),
        pod_row("vCPU", "96", "0.5", "10.5770818505"),
        pod_row("GB", "1024", "0.5", "12.5358007117"),
    ]
    export = write_export(tmp_path, {"2026-07": lines})
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", [])))
    ledger = ask(builder, "select sum(effective_cost_usd), sum(billed_cost_usd) from fct_ledger").rows()
    assert ledger == [(Decimal("55.04"), Decimal("55.04"))]
    (pod,) = ask(builder, "select * from detail_pod_cost_daily").rows(named=True)
    # 27.52 to the last place AWS gives each of the three rows.
    assert abs(pod["split_effective_cost_usd"] - Decimal("27.52")) < Decimal("0.000000001")
    assert pod["whole_machine_effective_cost_usd"] == Decimal("27.52")
    assert pod["accelerator_weight_ratio"] == Decimal("0.160142")
    assert (pod["cluster_name"], pod["namespace_name"], pod["instance_type"]) == ("ml", "train", "p5.48xlarge")
    assert ask(builder, "select count(*), sum(machine_effective_cost_usd) from stg_aws__pod_hourly").rows() == [
        (1, Decimal("55.04"))
    ]


@pytest.mark.parametrize("usage_type", ["USW2-EKS-EC2-Accelerator-Hours", "USW2-Reservation:p5.48xlarge"])
def test_a_tag_on_rows_that_repeat_a_machine_bills_no_run(usage_type: str, tmp_path: Path) -> None:
    """A run's tag is on a pod's row, or on a reservation's, which repeats the hours of its machine at 0; no run has the
    machine, 55.04. What the run cost is unknown, not 0, and the machine stays unattributed.
    """
    row = {**pod_row("Accelerator", "8", "1", "55.04"), "line_item_usage_type": usage_type}
    row |= {"resource_tags": '{"user_run_id": "podded"}'}
    if "Reservation" in usage_type:
        row |= {"line_item_operation": "RunInstances", "line_item_product_code": "AmazonEC2"}
    export = write_export(tmp_path, {"2026-07": [instance_hour("2026-07-14T10", "i-0p5", "p5.48xlarge", "55.04"), row]})
    hour = {"run_id": "podded", "attempt": 1, "at": "2026-07-14T10:00:00Z"}, {"at": "2026-07-14T11:00:00Z"}
    events = [{"event": "run_started", **hour[0]}, {"event": "attempt_started", **hour[0]}]
    events += [{"event": "run_ended", **hour[0], **hour[1], "status": "completed"}]
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", events)))
    cost = "select is_billed, accelerator_hours, effective_cost_usd, billed_cost_usd from fct_run_cost"
    assert ask(builder, cost).rows() == [(False, None, None, None)]
    spent = "select bucket, effective_cost_usd from fct_ledger where effective_cost_usd <> 0"
    assert ask(builder, spent).rows() == [("unattributed", Decimal("55.04"))]


def test_a_pod_without_a_split_cost_has_an_unknown_cost(tmp_path: Path) -> None:
    """AWS leaves the split of a machine hour at 55.04 empty: what the pod cost is unknown, and a warning shows it."""
    lines = [instance_hour("2026-07-14T10", "i-0p5", "p5.48xlarge", "55.04"), pod_row("Accelerator", "8", "", "")]
    export = write_export(tmp_path, {"2026-07": lines})
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", [])))
    columns = "split_effective_cost_usd, accelerator_split_cost_usd, whole_machine_effective_cost_usd"
    assert ask(builder, f"select {columns} from detail_pod_cost_daily").rows() == [(None, None, None)]
    name, pods = "split_and_unused_cost_differ_from_the_machine", "stg_aws__pod_hourly"
    (check,) = (each for each in load_contract(f"staging/{pods}").checks if each.name == name)
    assert len(ask(builder, check.query.format(batch=pods))) == 1


@pytest.mark.parametrize(
    ("pod", "back"),
    [
        # An export without resource ids: which pod it was is unknown.
        ({"line_item_resource_id": ""}, "0"),
        # Its machine is on no line of the month, as where the export is of some accounts.
        ({"split_line_item_parent_resource_id": "i-0gone"}, "0"),
        # AWS took back one and a half of the hour: half of -27.52 is more than all of it, and no pod holds too much.
        ({}, "-1.5"),
    ],
)
def test_a_row_of_a_pod_that_repeats_a_machine_stops_no_bill(tmp_path: Path, pod: dict[str, str], back: str) -> None:
    """What these rows repeat is in no total, so their month is published; warnings name them."""
    lines = [instance_hour("2026-07-14T10", "i-0p5", "p5.48xlarge", "55.04", hours) for hours in ("1", back)]
    export = write_export(tmp_path, {"2026-07": [*lines, pod_row("Accelerator", "4", "0.5", "27.52") | pod]})
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", [])))
    is_named = "line_item_resource_id" not in pod
    assert ask(builder, "select count(*) from stg_aws__pod_machine").rows() == [(is_named,)]
    assert ask(builder, "select count(*) from stg_aws__pod_hourly").rows() == [(1,)]
    kinds = ask(builder, "select instance_type from detail_pod_cost_daily").rows()
    assert kinds == [("unknown" if pod else "p5.48xlarge",)] * is_named
