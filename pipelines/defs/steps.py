"""What every asset shares: the ledger of its run, its key, its months and what is tried again."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import dagster as dg

from pipelines.base.errors import TrainledgerError, UnreachableError, UsageError
from pipelines.config.settings import Settings, load_settings
from pipelines.models.build import Builder
from pipelines.models.catalog import INPUT_TABLES, load_catalog
from pipelines.models.publish import Plan, plan
from pipelines.models.warehouse import Warehouse

# A source that does not answer is retried; bad content fails at once.
PATIENCE = dg.RetryPolicy(max_retries=3, delay=10, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)
ONE_RUN = dg.BackfillPolicy.single_run()
POOL = "warehouse"
# Any month an export may hold; the running month counts from its first day.
BILLING_MONTHS = dg.MonthlyPartitionsDefinition(start_date="2015-01", fmt="%Y-%m", end_offset=1)

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


class Ledger:
    """A builder and the plan it follows."""

    def __init__(self, builder: Builder):
        self.builder = builder

    @cached_property
    def plan(self) -> Plan:
        """What the sources deliver, looked up once a run."""
        return plan(self.builder.warehouse)


@contextmanager
def open_ledger(settings: Settings) -> Iterator[Ledger]:
    """The ledger, locked against other builds; BuildBusy names the one that holds it."""
    builder = Builder(Warehouse(settings))
    with builder.lake.lock():
        builder.warehouse.sweep()
        yield Ledger(builder)


@dg.resource(description="The warehouse of trainledger.toml ($TRAINLEDGER_CONFIG), locked for the run.")
def ledger_resource(_: dg.InitResourceContext) -> Iterator[Ledger]:
    """The ledger of the configured warehouse."""
    with open_ledger(load_settings()) as ledger:
        yield ledger


@contextmanager
def step(ledger: Ledger) -> Iterator[Plan]:
    """The plan, looked up before the first step reads anything: what arrives later is for the next run.

    A failure the user can act on is one sentence, and is not tried again.
    """
    try:
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


def month_range_tags(months: tuple[str, ...]) -> dict[str, str]:
    """Run tags that ask for one run over the months from the first to the last of `months`."""
    return {RANGE_START: min(months), RANGE_END: max(months)}
