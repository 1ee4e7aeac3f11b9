"""The `trainledger notify` command."""

from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.config.options import Config, settings_of


def notify(
    config: Config = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the messages without sending them.")] = False,
) -> None:
    """Send new notifications to Slack and by mail."""
    settings = settings_of(config)
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.notify.send import send_news

    console = Console()
    sent = send_news(settings, console.say, dry_run=dry_run)
    if not sent.count:
        # Raises where nothing is published yet.
        published_of(Warehouse(settings))
        console.say(str(sent))
