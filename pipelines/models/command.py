"""Building the marts, and the `trainledger check` command."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines.base.console import Console
from pipelines.base.errors import CheckError, SourceError, UsageError, counted, shown_bytes
from pipelines.config.options import Config, settings_of

# Each command imports what it runs on: an unchanged build and a wrong configuration need little.
if TYPE_CHECKING:
    from pipelines.config.settings import Settings
    from pipelines.models.publish import Plan
    from pipelines.models.warehouse import Warehouse
    from pipelines.warehouse.publication import Publication


def check(config: Config = None) -> None:
    """Run every check of the published marts again."""
    check_marts(settings_of(config), Console())


def prune(
    config: Config = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and remove nothing.")] = False,
) -> None:
    """Remove old publications and their files. Keeps those of 35 days and the last of each month."""
    settings, console = settings_of(config), Console()
    from pipelines.config.settings import Retention
    from pipelines.models.publish import prune as prune_publications
    from pipelines.models.warehouse import Warehouse

    warehouse = Warehouse(settings)
    with warehouse.disk_errors(), warehouse.lake.lock():
        retention = settings.warehouse.retention or Retention()
        pruned = prune_publications(warehouse, retention, datetime.now(UTC), dry_run=dry_run)
    console.say(
        f"{'Would remove' if dry_run else 'Removed'} {counted(len(pruned.publications), 'publication')} and "
        f"{counted(pruned.file_count, 'file')} ({shown_bytes(pruned.byte_count)}); "
        f"{counted(pruned.kept_count, 'publication')} kept."
    )


def build_marts(settings: Settings, console: Console, *, list_warnings: bool = True) -> bool:
    """Bring the warehouse up to date and publish; False when nothing changed and nothing was done.

    Warnings are counted, and listed if `list_warnings`. Raises the first failure of a step: CheckError,
    SourceError or UsageError.
    """
    if not settings.billing:
        raise UsageError("No bill is configured; add a [[billing]] source (README, 'Your own bill').")
    from pipelines.models.warehouse import Warehouse

    warehouse = Warehouse(settings)
    with warehouse.disk_errors():
        return _build_marts(warehouse, console, list_warnings=list_warnings)


def build_parts(settings: Settings, console: Console, months: Sequence[str], sources: Sequence[str] = ()) -> None:
    """Bring the tables of these months up to date, or those made from what `sources` deliver of them, next to builds of
    other months and sources; publish nothing.

    BuildBusy where another build has one of them. Raises the first failure of a step, as `build_marts`.
    """
    from pipelines.models.build import Builder
    from pipelines.models.publish import plan
    from pipelines.models.records import RECORDS
    from pipelines.models.refresh import refresh_parts, refuse_undelivered
    from pipelines.models.warehouse import Warehouse
    from pipelines.warehouse.part import part_of, shown_part

    builder = Builder(Warehouse(settings))
    parts = sorted({part_of(month, source) for month in months for source in sources or [None]})
    with builder.warehouse.disk_errors():
        planned = plan(builder.warehouse)
        refuse_undelivered(planned, parts)
        with builder.lake.lock(*parts):
            builder.warehouse.sweep(parts)
            total = sum(len(steps) for _, steps in builder.phases(parts)) + len(RECORDS) + 1
            with console.steps(total) as progress:
                refresh_parts(builder, planned, parts, console.note, progress.step)
    console.say(f"{' and '.join(map(shown_part, parts))} built; `trainledger build` publishes.")


def _build_marts(warehouse: Warehouse, console: Console, *, list_warnings: bool) -> bool:
    from pipelines.models.publish import plan
    from pipelines.models.warehouse import published_of
    from pipelines.models.warnings import check_counts, failed_checks, warnings

    settings = warehouse.settings
    planned = plan(warehouse)
    if planned.publication:
        _note_changes(planned, planned.publication, console)
        if planned.is_current:
            _complete_copy(warehouse, planned.publication, console)
            console.say(f"Nothing changed since publication {planned.publication.number}; nothing was done.")
            return False
    if not planned.months:
        raise SourceError(
            "No billing source has delivered a month; check `location` under [[billing]] in the configuration."
        )
    published = _refresh(settings, console) or published_of(warehouse)
    _complete_copy(warehouse, published, console)
    warned = failed_checks(published.checks, "warn")
    for sentence in warnings(warned, {**settings.owners}) if list_warnings else ():
        console.note(sentence)
    every = check_counts(published.checks)[1]
    console.say(
        f"Published {published.number}: {counted(len(planned.months), 'billing month')}, {every:,} checks, "
        f"{counted(len(warned), 'warning')}{'' if list_warnings or not warned else '; `trainledger check` lists them'}."
    )
    return True


def _complete_copy(warehouse: Warehouse, published: Publication, console: Console) -> None:
    """Write the copy that a build was killed before, that the disk had no room for, or that somebody changed."""
    from pipelines.models.marts import DATABASE, is_copied, write_copy

    if is_copied(warehouse, published):
        return
    with warehouse.lake.lock():
        reason = write_copy(warehouse, published, None)
    if reason:
        console.note(
            f"{warehouse.work / DATABASE}, the copy for BI tools, is not of publication {published.number} ({reason}); "
            "the publication is complete, and the next build tries again."
        )


def _note_changes(planned: Plan, publication: Publication, console: Console) -> None:
    """Print what is wrong with the newest publication: damaged files, or pseudonyms of another key."""
    from pipelines.warehouse.pseudonyms import has_another_key

    if planned.damaged:
        first, *others = planned.damaged
        more = f" and {len(others)} more" if others else ""
        console.note(f"Publication {publication.number}: {first}{more} is missing or truncated; it is rebuilt.")
    if not planned.is_current and has_another_key(publication.inputs, planned.inputs):
        console.note(
            f"The pseudonym key differs from the one of publication {publication.number}: every pseudonym changes and "
            "none matches what was published before. Set the old key to keep them."
        )


def _refresh(settings: Settings, console: Console) -> Publication | None:
    """Run the plan in this process; None where there was nothing left to do. The first failure of a step is raised."""
    from pipelines.models.build import Builder
    from pipelines.models.publish import plan
    from pipelines.models.records import RECORDS
    from pipelines.models.refresh import refresh
    from pipelines.models.warehouse import Warehouse

    builder = Builder(Warehouse(settings))
    with builder.lake.lock():
        builder.warehouse.sweep()
        planned = plan(builder.warehouse)
        # Another build may have ended between this one's look at the sources and its turn.
        if planned.is_current:
            return None
        # The bill, the records besides it, and the publication.
        total = len(builder.steps(planned.months)) + len(RECORDS) + 2
        with console.steps(total) as progress:
            return refresh(builder, planned, progress.step)


def check_marts(settings: Settings, console: Console) -> None:
    """Run the checks of every published mart again; CheckError when one of severity error fails."""
    from pipelines.models.build import Builder
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.models.warnings import check_counts, failed_checks, sentences

    warehouse = Warehouse(settings)
    published = published_of(warehouse)
    altered = [file for key, named in published.tables.items() for file in warehouse.lake.altered(key, named["files"])]
    if altered:
        more = f" and {len(altered) - 1} more files" if len(altered) > 1 else ""
        raise CheckError(
            f"{altered[0]}{more} of publication {published.number} changed after publishing; remove it and run "
            "`trainledger build`, which makes it again."
        )
    builder = Builder(warehouse.as_published(published))
    models = [model for model in builder.catalog.ordered if model.key in published.tables]
    results: list[dict[str, Any]] = []
    with console.steps(len(models)) as steps:
        for model in models:
            results += [{"table": model.key, "period": None, **made.__dict__} for made in builder.check(model.name)]
            steps.step(model.key)
    # The sources may have changed since: their warnings are those of the publication.
    read = [check for check in published.checks if check["table"].startswith("raw/")]
    errors, warned = (failed_checks([*results, *read], severity) for severity in ("error", "warn"))
    for severity, checks in (("Error", errors), ("Warning", warned)):
        for check in checks:
            for text in sentences(check, {**settings.owners}):
                console.say(f"{severity}: {text}")
    passed, every = check_counts([*results, *read])
    console.say(
        f"{passed:,} of {every:,} checks passed on publication {published.number}; {counted(len(warned), 'warning')}."
    )
    if read:
        console.say("Source checks were not rerun; their published results are shown.")
    if errors:
        raise CheckError(f"{len(errors)} error checks failed, first: {errors[0]['title']} of {errors[0]['table']}.")
