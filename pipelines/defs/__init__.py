"""Dagster's coat over the builder: assets, checks, partitions, resources and the schedule.

These modules do not postpone annotations: Dagster reads them as types.
"""

import warnings

import dagster as dg

# Single-run backfills are beta in name only: what we use of them is held by tests/defs.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)
