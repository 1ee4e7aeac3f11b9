"""The `trainledger report` command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.base.resources import known_reports, monthly_reports
from pipelines.config.options import AsOf, Config, checked_month, settings_of

if TYPE_CHECKING:
    from pipelines.config.settings import Settings


def report(
    config: Config = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write. Default: report.html or KIND.html; next to the PDF with --pdf."),
    ] = None,
    as_of: AsOf = None,
    kind: Annotated[
        str, typer.Option("--kind", help="training_cost, savings, serving, commitments, showback or expectations.")
    ] = "training_cost",
    month: Annotated[
        str | None,
        typer.Option(
            "--month",
            help="Month of savings, commitments, showback or a pack, YYYY-MM. Default: the newest.",
            callback=checked_month,
        ),
    ] = None,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Print the report here; a page is written only with --out.")
    ] = False,
    pdf: Annotated[Path | None, typer.Option("--pdf", help="Also write the report as a PDF to this file.")] = None,
    pack: Annotated[
        Path | None, typer.Option("--pack", help="Also write the evidence pack, a zip file for `trainledger verify`.")
    ] = None,
    bundle: Annotated[
        bool, typer.Option("--bundle", help="Include the bill lines in the pack, so that it can be verified offline.")
    ] = False,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="Sign the pack by this SSH key, into PACK.sig (ssh-keygen).")
    ] = None,
) -> None:
    """Write a report as an HTML page, a PDF or an evidence pack. With --terminal, print it."""
    if out and (option := {".pdf": "--pdf", ".zip": "--pack"}.get(out.suffix.lower())):
        raise UsageError(f"--out writes an HTML page; use {option} {out}.")
    if bundle and not pack:
        raise UsageError("--bundle requires --pack; name the file of the evidence pack with --pack.")
    if sign and not pack:
        raise UsageError("--sign requires --pack; name the file of the evidence pack with --pack.")
    if kind not in known_reports():
        raise UsageError(f"Report {kind} not found; choose one of {', '.join(known_reports())}.")
    if month and not pack and kind not in (monthly := monthly_reports()):
        raise UsageError(
            f"--month requires a report about one month ({', '.join(monthly)}) or --pack; {kind} covers all "
            "delivered months."
        )
    settings, console = settings_of(config), Console()
    if sign:
        from pipelines.evidence.signature import refuse_no_key

        refuse_no_key(sign)
    html = (pdf or Path("report" if kind == "training_cost" else kind)).with_suffix(".html")
    page = out or (None if terminal else html)
    write_report(settings, page, console, as_of, kind, month, pdf, terminal)
    if pack:
        from pipelines.evidence.pack import write_pack

        write_pack(settings, pack, console, as_of=as_of, bundle=bundle, month=month)
        if sign:
            from pipelines.evidence.signature import sign as sign_pack

            console.say(f"Signature written to {sign_pack(pack, sign)}.")


def write_report(
    settings: Settings,
    out: Path | None,
    console: Console,
    as_of: str | None = None,
    kind: str = "training_cost",
    month: str | None = None,
    pdf: Path | None = None,
    terminal: bool = False,
) -> None:
    """Write a report of the current publication, or of the one current on a date, to `out`, and as a PDF to `pdf`.

    With `terminal` it is printed too.
    """
    from pipelines.models.marts import open_marts
    from pipelines.models.warehouse import Warehouse, published_of
    from pipelines.present.render import put, report_page

    warehouse = Warehouse(settings)
    published = published_of(warehouse, as_of)
    with open_marts(warehouse, published) as engine:
        # A terminal shows no charts.
        page = report_page(engine.query, published, kind, month, is_drawn=bool(out or pdf))
    if out:
        put(page.encode(), out, published, console, "--out")
    if terminal:
        from pipelines.present.terminal import show_page

        show_page(page, console)
    if pdf:
        from pipelines.present.pdf import paper

        put(paper(page, kind, published), pdf, published, console, "--pdf")
