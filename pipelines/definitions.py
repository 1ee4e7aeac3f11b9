"""The Dagster Definitions object, assembled; nothing else."""

import dagster as dg

from pipelines.config.settings import Settings, settings_or_none
from pipelines.defs.assets import assets
from pipelines.defs.jobs import command_line_builds, notify_sensor, part_jobs, refresh_job, refresh_schedule
from pipelines.defs.steps import billing_months, ledger_resource


def assemble(settings: Settings | None, ledger: object = ledger_resource) -> dg.Definitions:
    """Definitions of the product as configured; a test brings its own ledger."""
    months = billing_months(settings)
    sources = [source.name for source in settings.billing] if settings else []
    return dg.Definitions(
        assets=assets(settings, months),
        jobs=[refresh_job, *part_jobs(months, dg.StaticPartitionsDefinition(sources or ["bill"]))],
        schedules=[refresh_schedule(settings)],
        sensors=[notify_sensor(settings), command_line_builds],
        resources={"ledger": ledger},
        executor=dg.in_process_executor,
    )


defs = assemble(settings_or_none())
