"""Billing months, the slices a delivery replaces."""

from __future__ import annotations

import dagster as dg

# Any month an export may hold; the running month counts from its first day.
BILLING_MONTHS = dg.MonthlyPartitionsDefinition(start_date="2015-01", fmt="%Y-%m", end_offset=1)

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


def month_range_tags(months: tuple[str, ...]) -> dict[str, str]:
    """Run tags that ask for one run over the months from the first to the last of `months`."""
    return {RANGE_START: min(months), RANGE_END: max(months)}
