"""The `trainledger` command: registers the commands of the packages and turns errors into exit codes.

Exit 0 done, 1 a data check failed, 2 wrong usage, configuration or a full disk, 3 a source could not be read, 4 another
build is running, 130 stopped by Ctrl-C or SIGTERM, 141 the reader of its output has stopped. Errors are one plain
sentence; a traceback only with --debug.
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from pipelines.base.console import Console
from pipelines.base.errors import TrainledgerError, UsageError, is_full
from pipelines.base.version import __version__
from pipelines.compare.command import compare
from pipelines.dashboard.command import dashboard
from pipelines.demo.command import demo
from pipelines.doctor.command import doctor
from pipelines.evidence.command import verify
from pipelines.explain.command import app as explain_app
from pipelines.exports.command import app as export_app
from pipelines.init.command import init
from pipelines.migrate.command import migrate
from pipelines.models.command import check, prune
from pipelines.notify.command import notify
from pipelines.present.command import build
from pipelines.prices.command import app as prices_app
from pipelines.prices.command import reprice
from pipelines.query.command import query
from pipelines.report.command import report

_INTERRUPTED, _UNREAD = 130, 141
_STOPPED = "Stopped; the next build continues from here."

app = typer.Typer(
    name="trainledger",
    help="What a model really cost to train, from the AWS bill.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    demo,
    init,
    build,
    check,
    report,
    query,
    compare,
    reprice,
    dashboard,
    doctor,
    notify,
    verify,
    prune,
    migrate,
):
    app.command()(command)
app.add_typer(explain_app, name="explain")
app.add_typer(export_app, name="export")
app.add_typer(prices_app, name="prices")


def _show_version(wanted: bool) -> None:
    if wanted:
        Console().say(f"trainledger {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """What a model really cost to train, from the AWS bill."""
    # Read from the command line by `main`, which also catches what fails before this runs.
    del debug, version


def main() -> None:
    """Run the command and leave with its exit code."""
    # Most of what a command makes lives to its end; to look through it for garbage took a twentieth of a large build.
    gc.set_threshold(100_000, 20, 100)
    # A container's stop ends like Ctrl-C: what is written stays, what is half written is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if isinstance(sys.stdout, TextIOWrapper):
        # Characters that its encoding lacks, in a locale that is not UTF-8, are written as escapes.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _check_encoding(sys.argv)
        # Accepted after the command as well, where people add it.
        try:
            app(args=[word for word in sys.argv[1:] if word != "--debug"])
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except Exception as error:
        if isinstance(error, BrokenPipeError):
            _leave_unread()
        if "--debug" in sys.argv:
            raise
        sentence, code = _explained(error)
        Console().error(sentence)
        raise SystemExit(code) from None
    except SystemExit as end:
        # Rich and Typer then end with 1.
        if isinstance(end.__context__, BrokenPipeError):
            _leave_unread()
        # Typer's end of an interrupted command.
        if end.code == _INTERRUPTED:
            Console().error(_STOPPED)
        raise


def _leave_unread() -> NoReturn:
    """End where the reader of a pipe has stopped, such as `head`; what Python still writes goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(_UNREAD) from None


def _check_encoding(arguments: Sequence[str]) -> None:
    """UsageError for an argument that is not UTF-8: Python passes its bytes on as lone surrogates."""
    for argument in arguments:
        if not argument.isascii() and argument != argument.encode(errors="replace").decode():
            raise UsageError(f"The argument {argument!a} is not UTF-8 text; write it again.")


def _explained(error: Exception) -> tuple[str, int]:
    """An error as one sentence, and the exit code it leaves with."""
    # A query of DuckDB that a signal stops ends in an error of its own.
    if isinstance(error.__cause__, KeyboardInterrupt):
        return _STOPPED, _INTERRUPTED
    if isinstance(error, TrainledgerError):
        return str(error), error.exit_code
    if is_full(error):
        return f"The disk is full ({error}); free space and run it again.", UsageError.exit_code
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}; check its permissions and the disk.", UsageError.exit_code
    # Pydantic, while it reads the settings, reports a signal in words of its own.
    if "KeyboardInterrupt" in str(error):
        return _STOPPED, _INTERRUPTED
    return f"Unexpected {type(error).__name__}: {error}; run again with --debug.", 1
