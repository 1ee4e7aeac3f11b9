"""What every asset shares: the ledger of its run, its key, its months and what is tried again."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cached_property

import dagster as dg

from pipelines.base.errors import TrainledgerError, UnreachableError, UsageError
from pipelines.config.settings import Settings, load_settings
from pipelines.models.build import Builder
from pipelines.models.catalog import INPUT_TABLES, load_catalog
from pipelines.models.publish import Plan, plan
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.lock import BuildBusy

# A source that does not answer is retried; bad content fails at once.
PATIENCE = dg.RetryPolicy(max_retries=3, delay=10, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)
ONE_RUN = dg.BackfillPolicy.single_run()
POOL = "warehouse"
# Between two looks at whether another build has ended.
_PAUSE = 1.0


class Ledger:
    """A builder and the plan it follows."""

    def __init__(self, builder: Builder):
        self.builder = builder

    @cached_property
    def plan(self) -> Plan:
        """What the sources deliver, looked up once a run."""
        return plan(self.builder.warehouse)


@contextmanager
def open_ledger(settings: Settings, note: Callable[[str], None] = lambda sentence: None) -> Iterator[Ledger]:
    """The ledger, locked against other builds: while one runs this one waits, and `note` is called with its name."""
    builder = Builder(Warehouse(settings))
    noted = ""
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(builder.lake.lock())
                break
            except BuildBusy as busy:
                if str(busy) != noted:
                    note(noted := str(busy))
                time.sleep(_PAUSE)
        builder.warehouse.sweep()
        yield Ledger(builder)


@dg.resource(description="The warehouse of trainledger.toml ($TRAINLEDGER_CONFIG), locked for the run.")
def ledger_resource(context: dg.InitResourceContext) -> Iterator[Ledger]:
    """The ledger of the configured warehouse; a second run waits for the first."""
    with open_ledger(load_settings(), context.log.info if context.log else print) as ledger:
        yield ledger


def first_month(settings: Settings | None) -> str:
    """The first month that the sources of the bill deliver; the running one where they cannot be read yet."""
    try:
        deliveries = Warehouse(settings).bill.deliveries if settings else []
    except TrainledgerError:
        deliveries = []
    return min((delivery.billing_period for delivery in deliveries), default=f"{datetime.now(UTC):%Y-%m}")


def billing_months(first: str) -> dg.MonthlyPartitionsDefinition:
    """The months of the bill from `first` (YYYY-MM) on; the running month counts from its first day."""
    return dg.MonthlyPartitionsDefinition(start_date=first, fmt="%Y-%m", end_offset=1)


@contextmanager
def step(ledger: Ledger) -> Iterator[Plan]:
    """The plan, looked up before the first step reads anything: what arrives later is for the next run.

    A failure the user can act on is one sentence, and is not tried again.
    """
    try:
        with ledger.builder.warehouse.disk_errors():
            yield ledger.plan
    except UnreachableError:
        raise
    except TrainledgerError as error:
        raise dg.Failure(str(error), metadata={"exit_code": error.exit_code}, allow_retries=False) from error


def months_of(context: dg.AssetExecutionContext, planned: Plan) -> list[str]:
    """The delivered months among those a run asks for; UsageError when there is none."""
    months = [month for month in context.partition_keys if month in planned.months]
    if not months:
        wanted, delivered = ", ".join(context.partition_keys), ", ".join(planned.months) or "none"
        raise UsageError(f"No billing source delivers {wanted}; choose a delivered month ({delivered}).")
    return months


def asset_key(table: str) -> dg.AssetKey:
    """`layer/name` of any table a model reads."""
    return dg.AssetKey(["raw", table] if table in INPUT_TABLES else load_catalog()[table].key.split("/"))
