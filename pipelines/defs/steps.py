"""What every asset shares: its key, its part in the ledger's progress, and what is tried again."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from pipelines.base.errors import TrainledgerError, UnreachableError, UsageError
from pipelines.defs.resources import Ledger
from pipelines.models.catalog import INPUT_TABLES, load_catalog
from pipelines.models.publish import Plan

# A source that does not answer is retried; bad content fails at once.
PATIENCE = dg.RetryPolicy(max_retries=3, delay=10, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)
ONE_RUN = dg.BackfillPolicy.single_run()
POOL = "warehouse"


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
