"""Unbroken stretches of the hours a bill has of an instance: the same on every engine."""

from __future__ import annotations

from datetime import datetime

from pipelines.engine import Engine
from pipelines.models.catalog import load_catalog


def test_stretches_end_where_an_hour_is_missing(engine: Engine) -> None:
    """Whole hours, an hour billed twice, a midnight and half hours; a fee and a day in one line are no hours."""
    lines = [
        ("i-1", "2026-07-01 08:00", "2026-07-01 09:00", "Usage"),
        ("i-1", "2026-07-01 09:00", "2026-07-01 10:00", "DiscountedUsage"),
        ("i-1", "2026-07-01 09:00", "2026-07-01 10:00", "SavingsPlanCoveredUsage"),
        # The hour from 10 to 11 is missing.
        ("i-1", "2026-07-01 11:00", "2026-07-01 12:00", "Usage"),
        ("i-2", "2026-07-01 22:00", "2026-07-01 23:00", "Usage"),
        ("i-2", "2026-07-01 23:00", "2026-07-02 00:00", "Usage"),
        ("i-2", "2026-07-02 00:00", "2026-07-02 01:00", "Usage"),
        # Half hours that touch, and one that does not.
        ("i-3", "2026-07-01 08:00", "2026-07-01 08:30", "Usage"),
        ("i-3", "2026-07-01 08:30", "2026-07-01 09:00", "Usage"),
        ("i-3", "2026-07-01 09:15", "2026-07-01 10:00", "Usage"),
        ("vol-1", "2026-07-01 00:00", "2026-07-01 01:00", "Usage"),
        ("i-1", "2026-07-01 12:00", "2026-07-01 13:00", "Tax"),
        ("i-1", "2026-07-03 00:00", "2026-07-04 00:00", "Usage"),
    ]
    values = ", ".join(
        f"('{i}', timestamp '{start}:00', timestamp '{end}:00', '{kind}')" for i, start, end, kind in lines
    )
    engine.view_sql(
        "aws_cur_line_item",
        "select 'payer' as source_name, '2026-07' as billing_period, '1' as bill_payer_account_id, "
        "line_item_resource_id, line_item_usage_start_date, line_item_usage_end_date, line_item_line_item_type "
        f"from (values {values}) as line(line_item_resource_id, line_item_usage_start_date, "
        "line_item_usage_end_date, line_item_line_item_type)",
    )
    engine.view_sql(
        "aws_focus_line_item",
        "select '' as source_name, '' as billing_period, '' as billing_account_id, '' as resource_id, "
        "'' as charge_category, "
        "timestamp '2026-07-01 00:00:00' as charge_period_start, timestamp '2026-07-01 00:00:00' as charge_period_end, "
        "'' as commitment_discount_status where 1 = 0",
    )
    rows = engine.query(f"select * from ({load_catalog()['stg_aws__billed_stretch'].text}) as stretch").rows()
    found = sorted((row[3], *(datetime.fromisoformat(str(at)).strftime("%d %H:%M") for at in row[4:])) for row in rows)
    assert found == [
        ("", "01 00:00", "01 01:00"),
        ("i-1", "01 08:00", "01 10:00"),
        ("i-1", "01 11:00", "01 12:00"),
        ("i-2", "01 22:00", "02 01:00"),
        ("i-3", "01 08:00", "01 09:00"),
        ("i-3", "01 09:15", "01 10:00"),
    ]
