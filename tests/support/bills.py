"""Small bills and run logs for tests, written the way AWS and a training job write them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

HOUR = timedelta(hours=1)
MS = timedelta(milliseconds=1)

# What every CUR 2.0 line has; a test states only what differs.
ORDINARY_LINE = {
    "bill_bill_type": "Anniversary",
    "bill_billing_entity": "AWS",
    "bill_invoice_id": "INV-1",
    "bill_payer_account_id": "000011112222",
    "bill_payer_account_name": "payer",
    "line_item_currency_code": "USD",
    "line_item_line_item_type": "Usage",
    "line_item_operation": "RunInstances",
    "line_item_product_code": "AmazonEC2",
    "line_item_usage_account_id": "000033334444",
    "pricing_term": "OnDemand",
    "pricing_unit": "Hrs",
    "product_region_code": "us-west-2",
}
ALWAYS = (
    "identity_line_item_id",
    "identity_time_interval",
    "bill_billing_period_start_date",
    "bill_billing_period_end_date",
    "line_item_usage_start_date",
    "line_item_usage_end_date",
    "line_item_usage_type",
    "line_item_usage_amount",
    "line_item_unblended_cost",
    "line_item_resource_id",
    "pricing_public_on_demand_cost",
)


def next_month(period: str) -> str:
    """The month after `YYYY-MM`."""
    year, month = map(int, period.split("-"))
    return f"{year + month // 12}-{month % 12 + 1:02d}"


def write_export(
    root: Path,
    months: Mapping[str, Sequence[Mapping[str, str]]],
    *,
    name: str = "export",
    execution: str = "20260801T000000Z-first",
) -> Path:
    """Write a CUR 2.0 export (csv.gz, create-new versioning) below `root`, one execution of each month.

    `months` maps YYYY-MM to lines; a line is a mapping of the columns that differ from ORDINARY_LINE. Writing a
    month again with another `execution` restates it. Returns the export's root.
    """
    export = root / name
    for period, lines in months.items():
        partition = f"BILLING_PERIOD={period}"
        file = export / "data" / partition / execution / f"{name}-00001.csv.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        columns = list(dict.fromkeys([*ORDINARY_LINE, *ALWAYS, *(key for line in lines for key in line)]))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        writer.writeheader()
        for number, line in enumerate(lines):
            writer.writerow(
                {
                    **ORDINARY_LINE,
                    "identity_line_item_id": f"line-{number}",
                    "bill_billing_period_start_date": f"{period}-01T00:00:00.000Z",
                    "bill_billing_period_end_date": f"{next_month(period)}-01T00:00:00.000Z",
                    **line,
                }
            )
        file.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
        manifest = {
            "executionId": execution.rpartition("-")[2],
            "exportArn": f"arn:aws:bcm-data-exports:us-east-1:000011112222:export/{name}-1",
            "columns": [{"name": column, "type": "string"} for column in columns],
            "dataFiles": [f"s3://example-billing/{name}/data/{partition}/{execution}/{file.name}"],
            "additionalOutputFiles": [],
        }
        place = export / "metadata" / partition / f"{name}-Manifest.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(manifest))
    return export


def instance_hour(
    hour: str, resource: str, instance_type: str, rate: str, hours: str = "1", **more: str
) -> dict[str, str]:
    """An on-demand instance-hour line: `hour` as YYYY-MM-DDTHH, `rate` in USD an hour, `hours` used of it."""
    day, clock = hour.split("T")
    start = f"{day}T{clock}:00:00.000Z"
    cost = str(Decimal(rate) * Decimal(hours))
    return {
        "line_item_usage_start_date": start,
        "line_item_usage_end_date": f"{day}T{int(clock) + 1:02d}:00:00.000Z"
        if clock != "23"
        else start[:11] + "23:59:59.999Z",
        "line_item_usage_type": f"USW2-BoxUsage:{instance_type}",
        "line_item_resource_id": resource,
        "line_item_usage_amount": hours,
        "line_item_unblended_cost": cost,
        "pricing_public_on_demand_cost": cost,
        "product_instance_type": instance_type,
        **more,
    }


def instance_time(
    resource: str, instance_type: str, rate: str, started_at: datetime, lasts: timedelta, **more: str
) -> list[dict[str, str]]:
    """The lines of an instance billed by the second from `started_at`, one a clock hour, at `rate` USD an hour."""
    lines = []
    ended_at = started_at + lasts
    hour = started_at.replace(minute=0, second=0, microsecond=0)
    while hour < ended_at:
        billed = min(ended_at, hour + HOUR) - max(started_at, hour)
        # AWS writes amounts to ten places.
        hours = (Decimal(billed // MS) / 3_600_000).quantize(Decimal("1e-10"))
        lines.append(instance_hour(f"{hour:%Y-%m-%dT%H}", resource, instance_type, rate, str(hours), **more))
        hour += HOUR
    return lines


def one_attempt(
    run_id: str,
    nodes: Sequence[str],
    instance_type: str,
    started_at: datetime,
    lasts: timedelta,
    inside: Sequence[Mapping[str, object]] = (),
    **run: object,
) -> list[dict[str, object]]:
    """Events of a run that completes in one attempt on `nodes`; `inside` are its other events, each with an `at`."""
    began, ended = moment(started_at), moment(started_at + lasts)
    events: list[dict[str, object]] = [
        {"event": "run_started", "at": began, **run},
        {"event": "attempt_started", "attempt": 1, "at": began},
    ]
    for node in nodes:
        place = {"attempt": 1, "resource": node}
        events.append({"event": "resource_joined", "at": began, "instance_type": instance_type, **place})
        events.append({"event": "resource_left", "at": ended, **place})
    events += [{"attempt": 1, **event} for event in inside]
    events += [
        {"event": "attempt_ended", "attempt": 1, "at": ended, "reason": "completed"},
        {"event": "run_ended", "at": ended, "status": "completed"},
    ]
    return [{"run_id": run_id, **event} for event in events]


def moment(at: datetime) -> str:
    """A naive UTC time as run events write it, to the millisecond."""
    return at.isoformat(timespec="milliseconds") + "Z"


def write_events(root: Path, events: Sequence[Mapping[str, object]], name: str = "events.jsonl") -> Path:
    """Write run events as one JSON lines file below `root`; returns the folder."""
    root.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("".join(json.dumps(event) + "\n" for event in events))
    return root


def write_config(
    root: Path,
    *,
    billing: Path | str,
    runs: Path | str | None = None,
    reservations: Path | str | None = None,
    registrations: Path | str | None = None,
    commitments: Path | str | None = None,
    invoices: Path | str | None = None,
    serving: Path | str | None = None,
    warehouse: str = "warehouse",
) -> Path:
    """Write a trainledger.toml below `root`; returns its path."""
    text = f'[warehouse]\nlocation = "{warehouse}"\n\n[[billing]]\nname = "payer"\nlocation = "{billing}"\n'
    if runs is not None:
        text += f'\n[[runs]]\nname = "jobs"\nkind = "events"\nlocation = "{runs}"\n'
    if reservations is not None:
        text += f'\n[[reservations]]\nname = "held"\nlocation = "{reservations}"\n'
    if registrations is not None:
        text += f'\n[proof]\nregistrations = "{registrations}"\n'
    if commitments is not None:
        text += f'\n[[commitments]]\nname = "bought"\nlocation = "{commitments}"\n'
    if invoices is not None:
        text += f'\n[[invoices]]\nname = "invoices"\nlocation = "{invoices}"\n'
    if serving is not None:
        text += f'\n[[serving]]\nname = "servers"\nlocation = "{serving}"\nttft_target_seconds = 2.0\n'
    path = root / "trainledger.toml"
    path.write_text(text)
    return path


def bedrock_hour(usage_type: str, unit: str, quantity: str, cost: str, **more: str) -> dict[str, str]:
    """A line of Amazon Bedrock: an hour of usage on 10 July 2026."""
    return {
        "line_item_usage_start_date": "2026-07-10T10:00:00.000Z",
        "line_item_usage_end_date": "2026-07-10T11:00:00.000Z",
        "line_item_usage_type": usage_type,
        "line_item_usage_amount": quantity,
        "line_item_unblended_cost": cost,
        "line_item_product_code": "AmazonBedrock",
        "line_item_operation": "InvokeModelInference",
        "pricing_unit": unit,
        **more,
    }
