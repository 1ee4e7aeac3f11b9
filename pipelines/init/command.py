"""The `trainledger init` command."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.config.file import CONFIG_NAME


def init(
    place: Annotated[str, typer.Argument(help="Folder or s3://bucket/prefix that holds billing exports at any level.")],
    config: Annotated[Path, typer.Option("--config", help="File to write.")] = Path(CONFIG_NAME),
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    endpoint_url: Annotated[str | None, typer.Option("--endpoint-url", help="Of an S3-compatible store.")] = None,
    region: Annotated[str | None, typer.Option("--region", help="Region of the bucket.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="AWS profile to use.")] = None,
) -> None:
    """Find billing exports, propose tags, write trainledger.toml and run doctor."""
    if config.exists() and not force:
        raise UsageError(f"{config} exists; use --force to replace it, or --config to write another file.")
    if "://" not in place and not Path(place).expanduser().is_dir():
        raise UsageError(f"{place} is not a folder; give a folder or s3://bucket/prefix that holds a billing export.")
    from pipelines.doctor.command import doctor
    from pipelines.init.find import find_bills
    from pipelines.init.propose import configuration, proposed_tags, shown, tag_keys

    console = Console()
    reach = {"endpoint_url": endpoint_url, "region": region, "profile": profile}
    location = place if "://" in place else str(Path(place).expanduser().resolve())
    found = find_bills(location, {name: value for name, value in reach.items() if value})
    for bill in found:
        note = "" if bill is found[0] else ": not used, it may hold the same dollars"
        console.say(f"Found {bill.title} below {bill.source.location}{note}.")
    used = found[0]
    work = config.resolve().parent / "warehouse"
    month, keys = tag_keys(used, work / "raw", datetime.now(UTC).replace(tzinfo=None), console)
    tags = proposed_tags(keys)
    if keys:
        console.table(shown(keys, tags), f"Tag keys of {month}, as billed")
    else:
        console.say(f"No line of {month} has a tag: activate cost allocation tags, and include them in the export.")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(configuration(found, config.resolve().parent, tags), encoding="utf-8")
    console.say(f"Wrote {config}.")
    console.say("")
    try:
        doctor(config)
    finally:
        console.say("Next: trainledger build")
