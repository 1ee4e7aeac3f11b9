"""The `trainledger notify` command."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.config.options import Config, settings_of


def notify(
    config: Config = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be told; send nothing.")] = False,
) -> None:
    """Tell Slack and mail what the newest publication has to tell and they have not heard."""
    settings = settings_of(config)
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.notify.send import tell

    console = Console()
    told = tell(settings, console.say, dry_run=dry_run)
    if not told.count:
        # Nothing, for nothing is published yet, is another thing.
        published_of(Warehouse(settings))
        console.say(str(told))
