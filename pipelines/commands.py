"""What the commands do; the command line and tests call these."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipelines.base.errors import CheckError, EngineError, SourceError, UsageError
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of

# Each command imports what it runs on: most run on little.
if TYPE_CHECKING:
    import polars as pl

    from pipelines.config.settings import Settings
    from pipelines.engine.duckdb import DuckDBEngine
    from pipelines.present.console import Console
    from pipelines.warehouse.publication import Publication

Form = Literal["table", "json", "csv"]


def demo(out: Path, console: Console) -> None:
    """Write the demo's bucket and runs below `out` once, build them and render the report."""
    from pipelines.config.settings import load_settings
    from pipelines.demo import write_demo
    from pipelines.models.mart_copy import DATABASE
    from pipelines.present.figures import say_three_figures

    if not (out / "trainledger.toml").is_file():
        console.note(f"Generating a bill and training runs in {out} …")
        write_demo(out)
    settings = load_settings(out / "trainledger.toml")
    page = out / "report.html"
    if build(settings, console) or not page.is_file():
        report(settings, page, console)
    warehouse = Warehouse(settings)
    with open_marts(warehouse, published_of(warehouse)) as engine:
        say_three_figures(engine, console)
    console.say(f"Report:    {page}")
    console.say(f"Marts:     {Path(settings.warehouse.location) / DATABASE}   (schema mart, any DuckDB client)")
    console.say(f"Try:       trainledger query --config {shlex.quote(str(out / 'trainledger.toml'))}")


def build(settings: Settings, console: Console) -> bool:
    """Bring the warehouse up to date and publish; False when nothing changed and nothing was done.

    Raises the first failure of a step: CheckError, SourceError or UsageError.
    """
    if not settings.billing:
        raise UsageError("The configuration names no bill; add a [[billing]] source (README, 'Your own bill').")
    from pipelines.models.mart_copy import is_copied, write_copy
    from pipelines.models.publish import plan
    from pipelines.models.warnings import warnings
    from pipelines.warehouse.pseudonyms import has_another_key

    warehouse = Warehouse(settings)
    planned = plan(warehouse)
    first, *others = planned.damaged or ("",)
    if planned.publication and first:
        more = f" and {len(others)} more" if others else ""
        lost = f"Of publication {planned.publication.number} {first}{more}"
        console.note(f"{lost} is gone or cut short; it is made again.")
    if planned.publication and planned.is_current:
        if not is_copied(warehouse, planned.publication):
            # A build was killed between its publication and the copy of it.
            with warehouse.lake.lock():
                write_copy(warehouse, planned.publication)
        console.say(f"Nothing changed since publication {planned.publication.number}; nothing was done.")
        return False
    if planned.publication and has_another_key(planned.publication.inputs, planned.inputs):
        console.note(
            f"The key of pseudonyms is another than publication {planned.publication.number} was made with: every "
            "pseudonym changes, and none matches what was published before. Set the old key to keep them."
        )
    if not planned.months:
        raise SourceError(
            "No billing source has delivered a month; check `location` under [[billing]] in the configuration."
        )
    published = _refresh(settings, console) or published_of(warehouse)
    warned = [check for check in published.checks if not check["passed"]]
    for sentence in warnings(warned):
        console.note(sentence)
    console.say(
        f"Published {published.number}: {len(planned.months)} billing months, {len(published.checks)} checks, "
        f"{len(warned)} with a warning."
    )
    return True


def _refresh(settings: Settings, console: Console) -> Publication | None:
    """Run the plan in this process; None where there was nothing left to do. The first failure of a step is raised."""
    from pipelines.models.build import Builder
    from pipelines.models.publish import plan
    from pipelines.models.refresh import RECORDS, refresh

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


def check(settings: Settings, console: Console) -> None:
    """Run the expectations of every published mart again; CheckError when one of severity error fails."""
    import polars as pl

    from pipelines.models.build import Builder
    from pipelines.models.warnings import first_row, reading_warnings

    warehouse = Warehouse(settings)
    published = published_of(warehouse)
    results = []
    altered = [file for key, named in published.tables.items() for file in warehouse.lake.altered(key, named["files"])]
    if altered:
        more = f" and {len(altered) - 1} more files" if len(altered) > 1 else ""
        raise CheckError(
            f"{altered[0]}{more} of publication {published.number} does not hold what was published; remove it and "
            "run `trainledger build`, which makes it again."
        )
    builder = Builder(warehouse.as_published(published))
    names = [model.name for model in builder.catalog.ordered if model.key in published.tables]
    with console.steps(len(names)) as steps:
        for name in names:
            results += [(builder.catalog[name].key, result) for result in builder.check(name)]
            steps.step(builder.catalog[name].key)
    poor = [(table, result) for table, result in results if not result.passed]
    rows = [(key, r.severity, r.title, r.unexpected_count, first_row(r.sample)) for key, r in poor]
    read = [check for check in published.checks if check["table"].startswith("raw/")]
    rows += reading_warnings(read)
    if rows:
        console.table(pl.DataFrame(rows, schema=["table", "severity", "check", "rows", "first row"], orient="row"))
    console.say(f"{len(results) - len(poor)} of {len(results)} checks passed on publication {published.number}.")
    if read:
        console.say(f"{len(read)} checks of how the sources were read stand as published; they were not run again.")
    errors = [(table, result) for table, result in poor if result.severity == "error"]
    if errors:
        raise CheckError(f"{len(errors)} error checks failed, first: {errors[0][1].title} of {errors[0][0]}.")


def report(
    settings: Settings,
    out: Path,
    console: Console,
    as_of: str | None = None,
    kind: str = "training_cost",
    month: str | None = None,
) -> None:
    """Render a report of the current publication, or of the one that was on a date, to `out`."""
    from pipelines.present.page import put, report_page

    warehouse = Warehouse(settings)
    published = published_of(warehouse, as_of)
    with open_marts(warehouse, published) as engine:
        page = report_page(engine, published, kind, month)
    put(page.encode(), out, published, console, "--out")


def query(settings: Settings, sql: str | None, form: Form, console: Console, as_of: str | None = None) -> None:
    """Answer a SELECT over the published marts, those of now or of a date, or list them."""
    import polars as pl

    from pipelines.present.csv_text import csv_text

    warehouse = Warehouse(settings)
    published = published_of(warehouse, as_of)
    with open_marts(warehouse, published) as engine:
        if sql is None:
            frame = _mart_list(engine, published)
        else:
            try:
                frame = engine.query(sql)
            except EngineError as error:
                sentence = str(error).rstrip(".!")
                raise UsageError(f"{sentence}; `trainledger query` alone lists the marts.") from None
    if form == "table":
        try:
            console.table(frame)
        except (ValueError, OverflowError) as error:
            # Such as a day that Python's calendar lacks.
            raise UsageError(f"A value cannot be shown ({error}); cast it to varchar.") from None
        return
    try:
        text = frame.write_json() + "\n" if form == "json" else csv_text(frame)
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"--{form} cannot hold a column ({error}); cast it to varchar.") from None
    sys.stdout.write(text)


def _mart_list(engine: DuckDBEngine, published: Publication) -> pl.DataFrame:
    import polars as pl

    from pipelines.models.catalog import load_catalog
    from pipelines.models.contract import load_contract

    models = [model for model in load_catalog().public if model.key in published.tables]
    names = [model.name for model in models]
    counts = [engine.query(f"select count(*) from {name}").item() for name in names]
    grains = [load_contract(model.key).grain for model in models]
    return pl.DataFrame(
        {"mart": names, "rows": counts, "one row per": [g.removeprefix("one row per ") for g in grains]}
    )
