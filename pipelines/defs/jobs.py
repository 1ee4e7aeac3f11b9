"""The main job and the schedule that runs it when something changed."""

import dagster as dg

from pipelines.config.settings import load_settings
from pipelines.defs.partitions import month_range_tags
from pipelines.models.publish import plan
from pipelines.models.warehouse import Warehouse

RUN_KEY = "dagster/run_key"
UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]

# In process: each step of the multiprocess executor pays seconds of imports.
REFRESH = dg.define_asset_job(
    "refresh",
    selection=dg.AssetSelection.all(),
    executor_def=dg.in_process_executor,
    description="Bring every table of the changed billing months up to date, check them and publish.",
)


def refresh_schedule(cron: str) -> dg.ScheduleDefinition:
    """A schedule that looks at the sources and asks for one run over the months that changed, if any did.

    AWS rewrites the running month several times a day, the month before for about two weeks, and closed months
    when refunds, credits or tag backfills arrive; a changed manifest of any month is picked up.
    """

    @dg.schedule(
        name="daily_refresh",
        job=REFRESH,
        cron_schedule=cron,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def daily_refresh(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        planned = plan(Warehouse(load_settings()))
        if not planned.months:
            return dg.SkipReason("No source has delivered a billing month yet.")
        if planned.is_current:
            return dg.SkipReason("Nothing changed since the newest publication.")
        # The key identifies requests within one tick; runs of earlier ticks are looked up here.
        key = f"{planned.publication.number if planned.publication else 0}-{planned.digest}"
        under_way = dg.RunsFilter(tags={RUN_KEY: key}, statuses=UNFINISHED)
        if context.instance.get_runs(under_way, limit=1):
            return dg.SkipReason("A run for these changes is under way.")
        return dg.RunRequest(run_key=key, tags=month_range_tags(planned.requested_months))

    return daily_refresh
