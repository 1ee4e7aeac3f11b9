"""The demo's bill: the whole story as lines of a month, and the months as deliveries of an export."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.demo import company
from pipelines.demo.capacity import capacity_lines
from pipelines.demo.closing import closing_lines, invoiced, still_open
from pipelines.demo.export import Delivery, bill_constants, parquet_bytes, table
from pipelines.demo.lines import Line, month_end, month_start
from pipelines.demo.machines import machine_lines, machines
from pipelines.demo.pods import pod_lines
from pipelines.demo.reserved_instances import apply_reserved_instances
from pipelines.demo.runs_vision import SHARED_NODE
from pipelines.demo.savings_plan import apply_savings_plan
from pipelines.demo.scenario import utc
from pipelines.demo.services import service_lines
from pipelines.demo.timeline import Stay

EXPORT_NAME, BUCKET, PREFIX = "ml-cur2", "larkfield-billing", "cur2"
LINES_PER_FILE = 12_000

# June was delivered once, after it closed; July the day after it ended, and again when it was closed.
CLOSED_AT = {"2026-06": utc("2026-07-06 04:11:27"), "2026-07": utc("2026-08-06 03:52:10")}
OPEN_AT = utc("2026-08-01 05:36:21")
OPEN_KNOWS_UNTIL = utc("2026-07-31 06:00:00")


def month_lines(month: str, stays: list[Stay]) -> list[Line]:
    """All lines of a closed billing month, with their invoices."""
    start, end = month_start(month), month_end(month)
    fleet = machines(company.STANDING_NODES, stays)
    raw: list[Line] = []
    for machine in fleet:
        if machine.launched_at < end and machine.ended_at > start:
            raw += machine_lines(machine)
    for reservation in company.RESERVATIONS:
        raw += capacity_lines(reservation, fleet)
    lines = [line for line in raw if start <= line["line_item_usage_start_date"] < end]
    for service in company.SERVICES:
        lines += service_lines(service, month)
    for bought in company.RESERVED_INSTANCES:
        lines = apply_reserved_instances(bought, lines, month)
    lines = apply_savings_plan(company.SAVINGS_PLAN, lines, month)
    lines += closing_lines(lines, month)
    pods = pod_lines(SHARED_NODE, company.SHARED_CLUSTER, stays, lines)
    return sorted(invoiced([*lines, *pods], month), key=_order)


def _order(line: Line) -> tuple[str, ...]:
    return (
        line["line_item_usage_start_date"].isoformat(),
        line["line_item_usage_account_id"],
        line["line_item_product_code"],
        line.get("line_item_usage_type", ""),
        line.get("line_item_resource_id", ""),
        line["line_item_line_item_type"],
    )


def export_files(stays: list[Stay], restated: bool) -> Iterator[tuple[str, bytes]]:
    """Every object below the export's root as (path, content), manifests after the data they name.

    Not `restated`: July only as first delivered. Restated: both executions, and a manifest naming the second.
    """
    for month in company.MONTHS:
        closed = month_lines(month, stays)
        deliveries = [(CLOSED_AT[month], closed)]
        if month == company.MONTHS[-1]:
            first = [line | {"bill_invoice_id": ""} for line in still_open(closed, OPEN_KNOWS_UNTIL)]
            deliveries = [(OPEN_AT, first), *(deliveries if restated else ())]
        manifest = ("", b"")
        for delivered_at, lines in deliveries:
            delivery = Delivery(BUCKET, PREFIX, EXPORT_NAME, company.PAYER.id, month, delivered_at)
            files = []
            for start in range(0, len(lines), LINES_PER_FILE):
                files.append(delivery.file(len(files) + 1))
                yield files[-1], _data_file(delivery, lines[start : start + LINES_PER_FILE], start)
            manifest = (delivery.manifest, delivery.manifest_text(files).encode())
        yield manifest


def _data_file(delivery: Delivery, lines: list[Line], offset: int) -> bytes:
    identified = [
        line
        | {
            "identity_line_item_id": f"{delivery.execution_id[:8]}{offset + number:012x}",
            "identity_time_interval": f"{line['line_item_usage_start_date'].isoformat()}Z/"
            f"{line['line_item_usage_end_date'].isoformat()}Z",
        }
        for number, line in enumerate(lines)
    ]
    return parquet_bytes(table(identified, bill_constants(company.PAYER, delivery.month)))
