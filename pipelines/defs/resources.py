"""The warehouse a run works in, held for the whole run so that two runs cannot interleave."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import dagster as dg

from pipelines.config.settings import Settings, load_settings
from pipelines.models.build import Builder
from pipelines.models.publish import Plan, plan
from pipelines.models.warehouse import Warehouse


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
