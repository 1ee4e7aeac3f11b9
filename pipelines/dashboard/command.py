"""The `trainledger dashboard` command."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.base.errors import UsageError, installing
from pipelines.config.options import AsOf, Config, settings_of

PORT = 8321


def dashboard(
    config: Config = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = PORT,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; 127.0.0.1: only this machine.")] = (
        "127.0.0.1"
    ),
    is_open: Annotated[
        bool, typer.Option("--open-to-network", help="Allow a --host that others reach without [access].")
    ] = False,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the pages as files into this folder instead of serving them.")
    ] = None,
    run_pages: Annotated[
        int, typer.Option("--run-pages", min=0, help="With --export: number of runs with a page, most expensive first.")
    ] = 1000,
    as_of: AsOf = None,
) -> None:
    """Serve the published marts as pages, or write them as files."""
    if as_of and not export:
        raise UsageError("--as-of requires --export; on a served page, choose the date in its header.")
    settings = settings_of(config)
    from pipelines.config.notify import is_loopback

    access = settings.access
    if not export and not is_loopback(host):
        if access and not access.hosts:
            raise UsageError(f"--host {host} needs the names it is reached by; add hosts to [access].")
        if not access and not is_open:
            raise UsageError(
                f"--host {host} lets other machines read every cost without a login; configure [access], or add "
                "--open-to-network to allow that."
            )
    from pipelines.dashboard.reader import Reader
    from pipelines.models.warehouse import Warehouse

    console = Console()
    reader = Reader(Warehouse(settings))
    if export:
        from pipelines.dashboard.export import export_pages

        export_pages(reader.read(as_of), export, run_pages, console, as_of or "")
        return
    try:
        from pipelines.dashboard.pages import render
        from pipelines.dashboard.web import serve
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed; {installing('ui')}.") from None

    if access:
        # A policy with a mistake is reported now, not to the first reader.
        access.grants()
    # Opened before the first request; without a publication each page shows this error.
    try:
        render(reader, "overview", {})
    except UsageError as error:
        console.note(str(error))
    try:
        serve(reader, host, port, lambda address: console.say(f"Dashboard at {address} (Ctrl-C stops it)"), access)
    except OSError as error:
        raise UsageError(f"{host}:{port} cannot be opened ({error.strerror}); choose another --port.") from None
    except KeyboardInterrupt:
        console.note("Stopped.")
