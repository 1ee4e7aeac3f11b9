"""The pages as files in one folder, for a bucket, an intranet or a disk; they link only to each other."""

from collections.abc import Iterator
from pathlib import Path

from pipelines.base.console import Console
from pipelines.base.errors import UsageError
from pipelines.base.paths import below
from pipelines.dashboard.links import FileLinks
from pipelines.dashboard.lists import MOST_ROWS
from pipelines.dashboard.pages import KNOWN, page
from pipelines.dashboard.reader import Volume, text_of

_PLAIN = ("overview", "serving", "bill", "dictionary", "lineage", "explain")


def export_pages(volume: Volume, folder: Path, run_pages: int, console: Console, as_of: str = "") -> None:
    """Write every page to `folder`, and those of the `run_pages` most expensive runs. UsageError where that fails."""
    most_expensive = volume.rows(
        "select run_id from mart_run_cost order by effective_cost_usd desc nulls last, run_id limit $limit",
        limit=run_pages,
    )
    runs = [row["run_id"] for row in most_expensive]
    count = volume.rows("select count(*) as run_count from mart_run_cost")[0]["run_count"]
    newest = {kind: months[0] for kind, months in _months(volume).items() if months}
    links = FileLinks(months=newest, runs=frozenset(runs))
    written = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("app.css", "app.js"):
            below(folder, name, error=UsageError).write_text(text_of(name), encoding="utf-8")
        for name, kind, parameters in _files(volume, links, runs, count):
            text = page(volume, kind, parameters, links, as_of)
            below(folder, name, error=UsageError).write_text(text, encoding="utf-8")
            written += 1
    except OSError as error:
        raise UsageError(f"{folder} cannot be written ({error.strerror}); choose another folder.") from None
    console.say(f"Wrote {written:,} pages of publication {volume.published.number} to {folder}; open index.html there.")
    if len(runs) < count:
        console.say(f"The {len(runs):,} most expensive of {count:,} runs have a page; --run-pages {count} writes all.")


def _files(volume: Volume, links: FileLinks, runs: list[str], count: int) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The name of each file, the page it holds, and its parameters."""
    for kind in _PLAIN:
        yield links.page(kind), kind, {}
    for kind, months in _months(volume).items():
        for month in months or [""]:
            yield links.page(kind, month=month), kind, {"month": month}
    pairs = len(KNOWN["sides"](volume, {})["pairs"])
    for number in range(1, max(1, pairs) + 1):
        yield links.side(number), "sides", {"pair": str(number)}
    for number in range(1, max(1, -(-count // MOST_ROWS)) + 1):
        yield links.page("runs", page=number), "runs", {"page": str(number), "rows": str(MOST_ROWS)}
    for run_id in runs:
        yield str(links.run(run_id)), "run", {"id": run_id}


def _months(volume: Volume) -> dict[str, list[str]]:
    return {kind: KNOWN[kind](volume, {})["months"] for kind in ("ledger", "commitments", "teams")}
