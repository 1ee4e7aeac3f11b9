"""What every asset shares: the ledger of its run, its key, its months and what is tried again."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property

import dagster as dg

from pipelines.base.errors import TrainledgerError, UnreachableError
from pipelines.config.settings import Settings, load_settings
from pipelines.models.build import Builder
from pipelines.models.catalog import INPUT_TABLES, load_catalog
from pipelines.models.publish import Plan, plan
from pipelines.models.refresh import refuse_undelivered
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.lock import Waiting

# A source that does not answer is retried; bad content fails at once.
PATIENCE = dg.RetryPolicy(max_retries=3, delay=10, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)
ONE_RUN = dg.BackfillPolicy.single_run()
POOL = "warehouse"


class Ledger:
    """A builder and the plan it follows; a step locks what it writes, and `waiting` names the build it waits for."""

    def __init__(self, settings: Settings, waiting: Waiting = lambda sentence: None):
        self.builder, self.waiting = Builder(Warehouse(settings)), waiting

    @cached_property
    def plan(self) -> Plan:
        """What the sources deliver, looked up once a run."""
        return plan(self.builder.warehouse)


@dg.resource(description="The warehouse of trainledger.toml ($TRAINLEDGER_CONFIG).")
def ledger_resource(context: dg.InitResourceContext) -> Ledger:
    return Ledger(load_settings(), context.log.info if context.log else print)


def billing_months(settings: Settings | None) -> dg.MonthlyPartitionsDefinition:
    """The months from the first one that the sources of the bill deliver; the running one, which counts from its first
    day, where they cannot be read yet."""
    try:
        deliveries = Warehouse(settings).bill.deliveries if settings else []
    except TrainledgerError:
        deliveries = []
    first = min((delivery.billing_period for delivery in deliveries), default=f"{datetime.now(UTC):%Y-%m}")
    return dg.MonthlyPartitionsDefinition(start_date=first, fmt="%Y-%m", end_offset=1)


@contextmanager
def step(ledger: Ledger, *parts: str) -> Iterator[Plan]:
    """The plan, looked up before the first step reads anything: what arrives later is for the next run.

    Holds `parts` of the warehouse, or all of it, and waits while another build does. A failure the user can act on is
    one sentence; only a source that does not answer is tried again.
    """
    warehouse = ledger.builder.warehouse
    try:
        with warehouse.disk_errors(), warehouse.lake.lock(*parts, waiting=ledger.waiting):
            warehouse.sweep(parts)
            yield ledger.plan
    except TrainledgerError as error:
        does_not_answer = isinstance(error, UnreachableError)
        raise dg.Failure(str(error), {"exit_code": error.exit_code}, allow_retries=does_not_answer) from error


def months_of(context: dg.AssetExecutionContext, planned: Plan) -> list[str]:
    """The delivered months among those a run asks for; UsageError when there is none."""
    months = [month for month in context.partition_keys if month in planned.months]
    if not months:
        refuse_undelivered(planned, context.partition_keys)
    return months


def asset_key(table: str) -> dg.AssetKey:
    """`layer/name` of any table a model reads."""
    return dg.AssetKey(["raw", table] if table in INPUT_TABLES else load_catalog()[table].key.split("/"))
