"""The Dagster Definitions object, assembled; nothing else."""

from __future__ import annotations

import dagster as dg

from pipelines.config.settings import has_channels, schedule_cron
from pipelines.defs.assets import ASSETS
from pipelines.defs.jobs import REFRESH, notify_sensor, refresh_schedule
from pipelines.defs.steps import ledger_resource


def assemble(ledger: object = ledger_resource, cron: str | None = None, notifies: bool | None = None) -> dg.Definitions:
    """Definitions of the product; a test or the command line brings its own ledger."""
    return dg.Definitions(
        assets=ASSETS,
        jobs=[REFRESH],
        schedules=[refresh_schedule(cron or schedule_cron())],
        sensors=[notify_sensor(has_channels() if notifies is None else notifies)],
        resources={"ledger": ledger},
        executor=dg.in_process_executor,
    )


defs = assemble()
