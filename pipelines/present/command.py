"""The `trainledger build` command: brings the warehouse up to date and shows the first figures."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.base.dates import month_date
from pipelines.base.errors import UsageError
from pipelines.config.options import Config, settings_of
from pipelines.models.command import build_marts, build_parts


def build(
    config: Config = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            help="Cut-off for the fees of an open month, if later than its newest usage. (`report --as-of` and "
            "`query --as-of` are different: they read an earlier publication.)",
        ),
    ] = None,
    month: Annotated[
        list[str] | None,
        typer.Option(
            "--month",
            metavar="<month>",
            help="Build the tables of this billing month (YYYY-MM) alone and publish nothing. Several may be named. "
            "Builds of other months may run at the same time; `build` then publishes them.",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="<name>",
            help="With --month: build only the tables that are made from the lines of this [[billing]] source. "
            "Builds of other sources of the month may run at the same time.",
        ),
    ] = None,
) -> None:
    """Read what changed, update every table, check it and publish."""
    if source and not month:
        raise UsageError("--source builds a source's part of a month; name the month with --month.")
    for name in month or ():
        month_date(name)
    settings = settings_of(config)
    if as_of is not None:
        settings = settings.model_copy(update={"policy": settings.policy.cut_at(as_of)})
    console = Console()
    if month:
        return build_parts(settings, console, month, source or ())
    if build_marts(settings, console):
        # What shows the figures is imported after the build that makes them.
        from pipelines.models.marts import open_marts
        from pipelines.models.warehouse import Warehouse, published_of
        from pipelines.present.text import show_key_figures

        warehouse = Warehouse(settings)
        with open_marts(warehouse, published_of(warehouse)) as engine:
            show_key_figures(engine, console)
        console.code(f"Next: trainledger report{f' --config {shlex.quote(str(config))}' if config else ''}")
