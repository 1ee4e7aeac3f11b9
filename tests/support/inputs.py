"""One small valid input of every kind that trainledger reads: its entry of trainledger.toml and its files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from support.bills import instance_hour, write_events, write_export
from support.cur_exports import CUR2_LINE, LEGACY_LINE, csv_text, cur2_export, legacy_export, packed, parquet
from support.focus_exports import focus_export, focus_lines
from support.small_company import run as run_events

DAY = "2026-07-01"
TEN = 1782900000000
SECOND = 1782900000.0


@dataclass(frozen=True)
class Input:
    """Files below the folder `in/`, and the text of the configuration that names them."""

    entry: str
    content: Mapping[str, bytes] | Callable[[], Mapping[str, bytes]]

    @property
    def files(self) -> Mapping[str, bytes]:
        return self.content() if callable(self.content) else self.content


def _text(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def _lines(*values: Any) -> bytes:
    return b"\n".join(map(_text, values)) + b"\n"


def _entry(part: str, kind: str = "", more: str = "") -> str:
    kind = f'kind = "{kind}"\n' if kind else ""
    return f'[[{part}]]\nname = "mine"\n{kind}location = "in"\n{more}'


def _written(make: Callable[[Path], object]) -> dict[str, bytes]:
    """The files that a function writes below a folder."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }


def _export(make: Callable[[Path], object]) -> dict[str, bytes]:
    """The files of a bill that a function writes into the folder `in`."""
    return {name.partition("/")[2]: data for name, data in _written(make).items()}


def _bills() -> dict[str, Input]:
    """Bills of July 2026: two lines of 55.04 USD."""
    hours = [instance_hour(f"{DAY}T{hour:02d}", "i-1", "p5.48xlarge", "55.04") for hour in (10, 11)]
    tagged = [{**CUR2_LINE, "line_item_resource_id": name} for name in ("i-1", "i-2")]
    legacy = [{**LEGACY_LINE, "lineItem/ResourceId": name} for name in ("i-1", "i-2")]
    focus = focus_lines(
        {"BilledCost": "55.04", "EffectiveCost": "55.04", "ChargePeriodStart": f"{DAY}T10:00:00Z", "ResourceId": name}
        | {"ChargePeriodEnd": f"{DAY}T11:00:00Z"}
        for name in ("i-1", "i-2")
    )
    exports = {
        "cur 2.0 csv": lambda root: write_export(root, {"2026-07": hours}, name="in"),
        "cur 2.0 parquet": lambda root: cur2_export(root, {"in-1.snappy.parquet": parquet(tagged)}, name="in"),
        "legacy cur": lambda root: legacy_export(root, {"in-1.csv.gz": packed(csv_text(legacy))}, name="in"),
        "focus": lambda root: focus_export(root, {"in-00001.csv.gz": packed(csv_text(focus))}, focus[0], name="in"),
    }
    found = {name: Input(_entry("billing"), partial(_export, make)) for name, make in exports.items()}
    found["bare csv"] = Input(_entry("billing", more='files = "*.csv"\n'), {"july.csv": csv_text(tagged)})
    found["bare parquet"] = Input(
        _entry("billing", more='files = "*.parquet"\n'), lambda: {"july.parquet": parquet(tagged)}
    )
    return found


def _runs() -> dict[str, Input]:
    span = (f"{DAY}T10:00:00Z", f"{DAY}T12:00:00Z")
    events = run_events("r-1", "i-1", "p5.48xlarge", 8, "2026-07", "10", "12")
    container = "arn:aws:ecs:us-west-2:000033334444:container-instance/train/a"
    job = {
        "jobArn": "arn:aws:batch:us-west-2:000033334444:job/j-1", "jobId": "j-1", "jobName": "tune",
        "status": "SUCCEEDED", "startedAt": TEN, "stoppedAt": TEN + 7_200_000, "tags": {"model": "bart"},
        "attempts": [{"startedAt": TEN, "stoppedAt": TEN + 7_200_000,
                      "container": {"containerInstanceArn": container, "exitCode": 0}}],
    }  # fmt: skip
    machine = {"containerInstanceArn": container, "ec2InstanceId": "i-a",
               "attributes": [{"name": "ecs.instance-type", "value": "p4d.24xlarge"}]}  # fmt: skip
    pod = {
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "t", "uid": "a", "labels": {"batch.kubernetes.io/job-name": "ft-1"}},
        "spec": {"nodeName": "n1", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "4"}}}]},
        "status": {"startTime": span[0], "containerStatuses": [
            {"state": {"terminated": {"startedAt": span[0], "finishedAt": span[1], "reason": "Completed"}}}]},
    }  # fmt: skip
    node = {"kind": "Node", "metadata": {"name": "n1", "uid": "n1",
                                         "labels": {"node.kubernetes.io/instance-type": "p4d.24xlarge"}},
            "spec": {"providerID": "aws:///us-west-2a/i-01"}}  # fmt: skip
    mllog = [
        {"namespace": "", "time_ms": TEN + step * 60_000, "event_type": kind, "key": key, "value": value,
         "metadata": {"file": "a.py", "lineno": 1, "epoch_num": step}}
        for step, (kind, key, value) in enumerate([
            ("POINT_IN_TIME", "submission_benchmark", "bert"), ("POINT_IN_TIME", "global_batch_size", 448),
            ("INTERVAL_START", "init_start", None), ("INTERVAL_END", "init_stop", None),
            ("INTERVAL_START", "run_start", None), ("POINT_IN_TIME", "eval_accuracy", 0.72),
            ("INTERVAL_END", "run_stop", None)])
    ]  # fmt: skip
    trained = {"TrainingJobName": "j", "TrainingJobArn": "arn:aws:sagemaker:us-west-2:111122223333:training-job/j",
               "TrainingJobStatus": "Completed", "CreationTime": span[0], "TrainingStartTime": span[0],
               "TrainingEndTime": span[1], "ResourceConfig": {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 1},
               "HyperParameters": {"epochs": "1"}, "FinalMetricDataList": [{"MetricName": "loss", "Value": 0.5}],
               "SecondaryStatusTransitions": [{"Status": "Training", "StartTime": span[0], "EndTime": span[1]}],
               "BillableTimeInSeconds": 7200}  # fmt: skip
    ray = [{"type": "SUBMISSION", "submission_id": "raysubmit_1", "status": "SUCCEEDED", "entrypoint": "python t.py",
            "start_time": TEN, "end_time": TEN + 7_200_000,
            "metadata": {"model": "m", "aws.resource_ids": "i-ray", "aws.account_id": "000033334444"}}]  # fmt: skip
    wandb = {"id": "a", "state": "finished", "created_at": span[0], "user": "u",
             "config": {"model": "m", "aws.resource_ids": "i-wandb"},
             "history": [{"_timestamp": SECOND + 60 * n, "_step": n, "epoch": n / 2, "val_loss": 1.0}
                         for n in range(5)]}  # fmt: skip
    steps = [{"step": 5, "epoch": 0.5, "loss": 1.0}, {"step": 10, "epoch": 1.0, "eval_loss": 0.5}]
    trainer = {"global_step": 10, "epoch": 1.0, "num_input_tokens_seen": 1000, "max_steps": 10, "train_batch_size": 8}
    trainer |= {"log_history": steps}
    sacct = "JobIDRaw|JobName|User|Account|State|Start|End|NodeList|AllocTRES|Comment\n"
    sacct += f"1|t|u|a|COMPLETED|{DAY}T10:00:00|{DAY}T12:00:00|n[1-2]|gres/gpu=8,node=2|trainledger.run_id=r\n"
    nodes = "node,started_at,ended_at,instance_id,instance_type\n"
    nodes += "".join(f"n{n},{DAY}T00:00:00Z,,i-slurm-{n},p4d.24xlarge\n" for n in (1, 2))
    bodies: dict[str, tuple[dict[str, bytes], str]] = {
        "events": (_written(lambda root: write_events(root, events)), ""),
        "batch": ({"jobs.json": _text({"jobs": [job]}), "machines.json": _text({"containerInstances": [machine]})}, ""),
        "kubernetes": ({"a.json": _text({"kind": "List", "items": [pod, node]})}, ""),
        "mllog": ({"result_0.txt": _lines(*(f":::MLLOG {json.dumps(line)}" for line in mllog))}, ""),
        "sagemaker": ({"j.json": _text(trained)}, ""),
        "ray": ({"jobs.json": _text(ray)}, ""),
        "wandb": ({"runs.jsonl": _lines(wandb, wandb | {"id": "b"})}, ""),
        "trainer_state": ({"r/checkpoint-10/trainer_state.json": _text(trainer)}, ""),
        "lightning": ({"version_0/metrics.csv": b"epoch,step,val_loss\n0,1,0.9\n1,2,0.5\n"}, ""),
        "slurm": ({"a.sacct": sacct.encode(), "nodes.csv": nodes.encode()}, 'timezone = "UTC"\n'),
        "checkpoints": (
            {"r/step-1/.metadata": b"0", "r/step-1/__0_0.distcp": b"01", "r/step-2/__0_0.distcp": b"01"},
            "",
        ),
    }  # fmt: skip
    return {f"runs of {kind}": Input(_entry("runs", kind, more), files) for kind, (files, more) in bodies.items()}


def _serving() -> dict[str, Input]:
    started = {
        "event": "server_started",
        "server_id": "s",
        "at": f"{DAY}T10:00:00Z",
        "model": "m",
        "resource": "i-served",
    }
    traffic = {"event": "traffic", "server_id": "s", "from": f"{DAY}T10:00:00Z", "to": f"{DAY}T11:00:00Z",
               "requests": 5, "input_tokens": 9, "output_tokens": 70, "running": 1, "ttft_p90": 0.5}  # fmt: skip
    vllm = '{name}{{model_name="m"}} {value}\n'
    tgi = "tgi_{name} {value}\n"
    tokens = (f"vllm:{what}_total" for what in ("prompt_tokens", "generation_tokens", "request_success"))
    neuron = 'execution_status_total{{instance_id="i-neuron",status_type="completed"}} {value}\n'

    def scrapes(suffix: str, form: str, *names: str) -> dict[str, bytes]:
        return {
            f"s/20260701T10{minute}000Z.{suffix}": "".join(
                form.format(name=name, value=10 * (minute + 1)) for name in names or ("",)
            ).encode()
            for minute in (0, 1, 2)
        }

    call = {"schemaType": "ModelInvocationLog", "schemaVersion": "1.0", "timestamp": f"{DAY}T10:05:00Z",
            "accountId": "000033334444", "region": "us-west-2", "requestId": "a", "operation": "Converse",
            "modelId": "anthropic.claude", "identity": {"arn": "arn:aws:sts::000033334444:assumed-role/r/s"},
            "input": {"inputTokenCount": 5}, "output": {"outputTokenCount": 7}}  # fmt: skip
    metric = {"Id": "m1", "Label": "InputTokenCount m", "Timestamps": [f"{DAY}T10:00:00+00:00"], "Values": [5.0],
              "StatusCode": "Complete"}  # fmt: skip
    series = {"metric": {"__name__": "vllm:generation_tokens_total", "instance": "b"},
              "values": [[SECOND, "1"], [SECOND + 60, "9"]]}  # fmt: skip
    latency = b'vllm:time_to_first_token_seconds_bucket{le="0.5"} 9\n'
    latency += b'vllm:time_to_first_token_seconds_bucket{le="+Inf"} 10\n'
    bodies = {
        "events": {"servers.jsonl": _lines(started, traffic)},
        "vllm": scrapes("txt", vllm, *tokens)
        | {"range.json": _text({"status": "success", "data": {"result": [series]}}), "s/20260701T103000Z.txt": latency},
        "tgi": scrapes("txt", tgi, "request_input_length_sum", "request_generated_tokens_sum", "request_success"),
        "neuron_monitor": scrapes("prom", neuron),
        "bedrock_log": {"log.jsonl": _lines(call, call | {"requestId": "b"})},
        "cloudwatch": {"000033334444/us-west-2/july.json": _text({"MetricDataResults": [metric]})},
    }
    return {f"serving of {kind}": Input(_entry("serving", kind), files) for kind, files in bodies.items()}


def _inventory() -> dict[str, Input]:
    reserved = {"CapacityReservationId": "cr-0b10c5", "OwnerId": "000033334444", "InstanceType": "p5.48xlarge",
                "CapacityReservationArn": "arn:aws:ec2:us-west-2:000033334444:capacity-reservation/cr-0b10c5",
                "TotalInstanceCount": 2, "State": "active", "StartDate": "2026-07-01T11:30:00+00:00",
                "EndDate": "2026-07-02T11:30:00.000Z", "ReservationType": "capacity-block"}  # fmt: skip
    capacity = "reservation_id,reservation_kind,instance_type,instance_count,started_at,ended_at\n"
    capacity += "cr-0b10c6,capacity_block,p5.48xlarge,2,2026-07-01T11:30:00Z,2026-07-02T11:30:00Z\n"
    plan = {"savingsPlanArn": "arn:aws:savingsplans::000011112222:savingsplan/sp-1", "savingsPlanType": "EC2Instance",
            "ec2InstanceFamily": "p4d", "region": "us-west-2", "start": "2026-01-01T00:00:00.000Z",
            "end": "2028-12-31T00:00:00.000Z", "state": "active", "paymentOption": "All Upfront", "currency": "USD",
            "commitment": "12.5", "termDurationInSeconds": 94608000}  # fmt: skip
    contract = {"ContractId": "c-1", "ContractCommitmentId": "sp-2", "ContractCommitmentType": "Savings Plan",
                "ContractCommitmentCategory": "Spend", "ContractCommitmentPeriodStart": "2026-01-01T00:00:00Z",
                "ContractCommitmentPeriodEnd": "2027-01-01T00:00:00Z", "BillingCurrency": "USD",
                "ContractCommitmentCost": "100.0"}  # fmt: skip
    summary = {"AccountId": "000011112222", "InvoiceId": "INV-1", "IssuedDate": "2026-08-03T00:00:00Z",
               "Entity": {"InvoicingEntity": "Amazon Web Services, Inc."}, "BillingPeriod": {"Month": 7, "Year": 2026},
               "InvoiceType": "INVOICE", "BaseCurrencyAmount": {
                   "TotalAmount": "110.00", "TotalAmountBeforeTax": "100.00", "CurrencyCode": "USD"}}  # fmt: skip
    detail = {"InvoiceIssuerName": "AWS", "InvoiceId": "INV-1", "InvoiceDetailId": "1", "BilledCost": "10.5",
              "BillingCurrency": "USD", "ChargeCategory": "Usage", "BillingPeriodStart": "2026-07-01T00:00:00Z",
              "InvoiceIssueStatus": "Issued", "InvoiceIssueDate": "2026-08-03T00:00:00Z",
              "InvoiceDetailLastUpdated": "2026-08-03T00:00:00Z", "ReferenceInvoiceId": "INV-1"}  # fmt: skip
    block = {"CapacityBlockOfferingId": "cb-0a1b2c", "InstanceType": "trn2.48xlarge", "InstanceCount": 1,
             "AvailabilityZone": "ap-south-2a", "StartDate": "2026-10-03T16:13:00.000Z", "CurrencyCode": "USD",
             "EndDate": "2026-10-04T11:30:00.000Z", "CapacityBlockDurationHours": 19, "UpfrontFee": "689.59",
             "CapacityBlockDurationMinutes": 17, "Tenancy": "default"}  # fmt: skip
    scores = {"SpotPlacementScores": [{"Region": "us-west-2", "Score": 3}], "InstanceTypes": ["p5.48xlarge"],
              "TargetCapacity": 2}  # fmt: skip
    totals = b"invoice_id,issued_date,currency,total,tax\nINV-1,2026-08-03,USD,110.00,10.00\n"
    bodies = {
        "reservations": {"cr.json": _text({"CapacityReservations": [reserved]}), "cr.csv": capacity.encode()},
        "commitments": {"sp.json": _text({"savingsPlans": [plan]}), "contract.csv": csv_text([contract])},
        "invoices": {
            "a.json": _text({"InvoiceSummaries": [summary]}),
            "totals.csv": totals,
            "detail.csv": csv_text([detail]),
        },
        "capacity_offers": {
            "2026-10-03-blocks.json": _text({"CapacityBlockOfferings": [block]}),
            "2026-10-03-scores.json": _text(scores),
        },
    }
    return {name: Input(_entry(name), files) for name, files in bodies.items()}


def _declared() -> dict[str, Input]:
    workload = 'workload_id = "llama / corpus / seq 8192 / batch 256 / bf16 / no target"\n'
    registration = (
        f'[[registration]]\nname = "a"\n{workload}registered_on = 2026-06-20\ntarget_metric = "eval_loss"\n'
        'target_direction = "min"\ntarget_value = 2.05\nquality_margin = 0.02\nplanned_runs = 3\n'
        'cost_basis = "effective"\n\n[[exclusion]]\nregistration = "a"\nrun_id = "b"\n'
        'reason = "its node failed"\nexcluded_on = 2026-07-08\n'
    )
    units = {"OrganizationalUnits": [{"Id": "ou-ab12-11111111", "Name": "Research", "ParentId": "r-ab12"}],
             "Accounts": [{"Id": "000033334444", "ParentId": "ou-ab12-11111111"}]}  # fmt: skip
    teams = '[teams]\nunits = {"Research" = "vision"}\naccounts = {"000033334444" = "ml"}\norganization = "in"\n'
    return {
        "registrations": Input('[proof]\nregistrations = "in"\n', {"a.toml": registration.encode()}),
        "organization": Input(teams, {"2026-07-01.json": _text(units)}),
    }


def inputs() -> dict[str, Input]:
    """Every kind of input by its name."""
    return {**_bills(), **_runs(), **_serving(), **_inventory(), **_declared()}
