"""The `trainledger` command: demo, build, check, report, verify, query, compare, reprice, explain, export,
dashboard, doctor, notify.

Exit 0 done, 1 a data check failed, 2 wrong usage or configuration, 3 a source could not be read. Errors are one
plain sentence; a traceback only with --debug.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pipelines.base.errors import TrainledgerError, UsageError
from pipelines.compare.command import compare
from pipelines.config.file import DEMO_FOLDER
from pipelines.config.options import AsOf, Config, settings_of
from pipelines.dashboard.command import dashboard
from pipelines.doctor.command import doctor
from pipelines.evidence.command import verify
from pipelines.explain.command import app as explain_app
from pipelines.exports.command import app as export_app
from pipelines.notify.command import notify
from pipelines.present.console import Console
from pipelines.prices.command import reprice

app = typer.Typer(
    name="trainledger",
    help="What a model really cost to train, from the AWS bill.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.add_typer(explain_app, name="explain")
app.command()(compare)
app.command()(dashboard)
app.command()(doctor)
app.command()(notify)
app.command()(reprice)
app.command()(verify)
app.add_typer(export_app, name="export")


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """What a model really cost to train, from the AWS bill."""
    # Read from the command line by `main`, which also catches what fails before this runs.
    del debug


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder the demo is written to.")] = Path(DEMO_FOLDER),
) -> None:
    """Generate a small company's bill and runs, build every mart and write report.html."""
    from pipelines import commands

    commands.demo(out, Console())


@app.command()
def build(
    config: Config = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            help="Moment an open month's fees are cut at, where later than its newest use. (`report --as-of` and "
            "`query --as-of` are another thing: they read an earlier publication.)",
        ),
    ] = None,
) -> None:
    """Read what changed, bring every table up to date, check it and publish."""
    settings = settings_of(config)
    if as_of is not None:
        settings = settings.model_copy(update={"policy": settings.policy.cut_at(as_of)})
    from pipelines import commands

    commands.build(settings, Console())


@app.command()
def check(config: Config = None) -> None:
    """Run every expectation again on the published marts and show the results."""
    settings = settings_of(config)
    from pipelines import commands

    commands.check(settings, Console())


@app.command()
def report(
    config: Config = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to write; else report.html, or KIND.html.")] = None,
    as_of: AsOf = None,
    kind: Annotated[
        str, typer.Option("--kind", help="training_cost, savings, commitments or expectations.")
    ] = "training_cost",
    month: Annotated[str | None, typer.Option("--month", help="YYYY-MM of a monthly report; else the newest.")] = None,
    pdf: Annotated[Path | None, typer.Option("--pdf", help="Write the same figures for paper too.")] = None,
    pack: Annotated[
        Path | None, typer.Option("--pack", help="Write the evidence pack too, a zip file for `trainledger verify`.")
    ] = None,
    bundle: Annotated[
        bool, typer.Option("--bundle", help="Put the bill lines into the pack, so that it is verified on its own.")
    ] = False,
) -> None:
    """Write a report of the current publication, or of the one of a date, as one HTML page."""
    if bundle and not pack:
        raise UsageError("--bundle puts the bill into a pack; name its file with --pack.")
    settings, console = settings_of(config), Console()
    from pipelines import commands

    page = out or Path("report.html" if kind == "training_cost" else f"{kind}.html")
    commands.report(settings, page, console, as_of, kind, month)
    if pdf:
        from pipelines.present.pdf import write_pdf

        write_pdf(settings, pdf, console, as_of, kind, month)
    if pack:
        from pipelines.evidence.pack import write_pack

        write_pack(settings, pack, console, as_of=as_of, bundle=bundle, month=month)


@app.command()
def query(
    sql: Annotated[str | None, typer.Argument(help="A SELECT over the marts; without it the marts are listed.")] = None,
    config: Config = None,
    as_of: AsOf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a row.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Ask the published marts a question in SQL."""
    if as_json and as_csv:
        raise UsageError("Give --json or --csv, not both.")
    form = "json" if as_json else "csv" if as_csv else "table"
    settings = settings_of(config)
    from pipelines import commands

    commands.query(settings, sql, form, Console(), as_of)


def main() -> None:
    """Run the command and leave with its exit code."""
    try:
        _refuse_no_text(sys.argv)
        # Accepted after the command as well, where people add it.
        app(args=[word for word in sys.argv[1:] if word != "--debug"])
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        sentence, code = _explained(error)
        Console().error(sentence)
        raise SystemExit(code) from None
    except KeyboardInterrupt:
        Console().error("Stopped; the next build goes on from here.")
        raise SystemExit(130) from None


def _refuse_no_text(words: Sequence[str]) -> None:
    """Bytes that are no text reach us as halves of signs, which nothing can look up."""
    for word in words:
        if not word.isascii() and word != word.encode(errors="replace").decode():
            raise UsageError(f"The argument {word!a} is not UTF-8 text; write it again.")


def _explained(error: Exception) -> tuple[str, int]:
    """An error as one sentence, and the exit code it leaves with."""
    if isinstance(error, TrainledgerError):
        return str(error), error.exit_code
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}; check its permissions and the disk.", UsageError.exit_code
    return f"Unexpected {type(error).__name__}: {error}; run again with --debug.", 1
