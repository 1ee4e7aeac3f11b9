"""The `trainledger init` command."""

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
    """Find billing exports, write trainledger.toml and run doctor."""
    if config.exists() and not force:
        raise UsageError(f"{config} exists; use --force to replace it, or --config to write another file.")
    if "://" not in place and not Path(place).expanduser().is_dir():
        raise UsageError(f"{place} is not a folder; give a folder or s3://bucket/prefix that holds a billing export.")
    from pipelines.config.sources import Reach
    from pipelines.doctor.command import doctor
    from pipelines.init.find import chosen, compared, examined, find_bills
    from pipelines.init.propose import configuration, proposed_tags, shown

    console = Console()
    reach: Reach = {"endpoint_url": endpoint_url, "region": region, "profile": profile}
    location = place if "://" in place else str(Path(place).expanduser().resolve())
    found = find_bills(location, reach)
    folder = config.resolve().parent
    candidates, failed = examined(
        found.bills, folder / "warehouse" / "raw", datetime.now(UTC).replace(tzinfo=None), console
    )
    candidates = chosen(candidates)
    if len(candidates) == 1:
        console.say(f"Found {candidates[0].bill.title} below {candidates[0].bill.source.location}.")
    else:
        console.table(compared(candidates), "Bills found; lines and cost are of the newest month")
    for one in candidates:
        if one.rival:
            console.say(
                f"Not read: {one.bill.what}. {one.rival.bill.source.name} is of the same payer and {one.reason}; both "
                "would count its dollars twice."
            )
    for data_set, _, source in found.data_sets:
        console.say(f"Found FOCUS {data_set}: {source.location}.")
    for sentence in (*found.left_out, *failed):
        console.say(f"Left out: {sentence}")
    tags: dict[str, list[str]] = {}
    for one in candidates:
        if one.rival:
            continue
        mine = proposed_tags(one.tag_keys)
        for name, key in mine.items():
            if key not in tags.setdefault(name, []):
                tags[name].append(key)
        if one.tag_keys:
            console.table(shown(one.tag_keys, mine), f"Tag keys of {one.bill.source.name} in {one.month}, as billed")
        else:
            fix = "activate cost allocation tags, and include them in the export"
            console.say(f"No line of {one.bill.source.name} in {one.month} has a tag: {fix}.")
    folder.mkdir(parents=True, exist_ok=True)
    config.write_text(configuration(candidates, found.data_sets, folder, tags), encoding="utf-8")
    console.say(f"Wrote {config}.")
    console.say("")
    try:
        doctor(config)
    finally:
        console.say("Next: trainledger build")
