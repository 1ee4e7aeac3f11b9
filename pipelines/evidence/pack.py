"""Writes the evidence pack of a publication: its inputs, models, results and checks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.base import resources
from pipelines.base.code import modules_reached
from pipelines.base.console import Console
from pipelines.base.dates import month_spans
from pipelines.base.errors import SourceError, UsageError
from pipelines.base.parse_cache import digest_of
from pipelines.config.settings import Settings
from pipelines.evidence import inputs as sources
from pipelines.evidence.archive import Pack, as_json, write_archive
from pipelines.evidence.inputs import INPUTS, bill_folder, log_member
from pipelines.evidence.reports import REPORTS, report_members
from pipelines.ingest.billing.columns import REVIEWED
from pipelines.ingest.billing.delivery import RECORD
from pipelines.models.catalog import PUBLISHED, load_catalog, module_of
from pipelines.models.contract import contract_paths
from pipelines.models.marts import mart_files, open_marts
from pipelines.models.revision import code_revision, has_our_models
from pipelines.models.warehouse import Warehouse, published_of
from pipelines.present.csv_text import csv_text
from pipelines.warehouse.lake import Publication

PUBLICATION, CHECKS = "publication.json", "checks.csv"
# The folders of a pack: marts, the records of the sources, the earlier publication.
RECORDS, BEFORE = "records", "before"
README, LOCK = "README.txt", "requirements.lock"
_SUFFIX = {"sql": "sql", "reference": "csv", "transform": "py"}


def write_pack(
    settings: Settings, out: Path, console: Console, *, as_of: str | None, bundle: bool, month: str | None = None
) -> None:
    """Write the pack of the current publication, or of the one of a date, to `out`; with the bills if `bundle`.

    Its monthly reports are about `month` (YYYY-MM), else about the newest delivered.
    """
    warehouse = Warehouse(settings)
    published = published_of(warehouse, as_of)
    if not has_our_models(published.code_revision):
        raise UsageError(
            f"Publication {published.number} was made by revision {published.code_revision} and this is "
            f"{code_revision()}, which has other models; run `trainledger build`, or write its pack with that version."
        )
    pseudonyms = warehouse.pseudonyms
    if pseudonyms and bundle:
        raise UsageError(
            "--bundle puts bill lines and logs into the pack as delivered, and [privacy] requires pseudonyms; "
            "omit --bundle."
        )
    try:
        before, lost = _records(warehouse, published.before, BEFORE), []
    except SourceError:
        # What was published before is gone.
        before, lost = {}, restated_marts()
    with open_marts(warehouse, published) as engine:
        reports = report_members(engine, published, month)
    logs = sources.run_logs(settings, published)
    runs = sources.recorded_runs(settings, published, logs)
    inputs = {**sources.recorded_inputs(warehouse, published), "runs": runs}
    if not pseudonyms:
        _refuse_lost(published, inputs["deliveries"])
        if not bundle and (months := sorted({one["billing_period"] for one in inputs["deliveries"] if _is_gone(one)})):
            spans = month_spans(months)
            console.note(f"Delivered files of {spans} are gone or changed: only a pack with --bundle can be verified.")
    members: dict[str, bytes | Path] = {
        README: readme(),
        PUBLICATION: as_json(pseudonyms.value("", asdict(published))),
        INPUTS: as_json(pseudonyms.value("", inputs)),
        CHECKS: checks_csv(published),
        **reports,
        **_marts(warehouse, published),
        **({} if pseudonyms else {**_records(warehouse, published.raw, RECORDS), **before}),
        **model_members(),
        **({LOCK: lock} if (lock := our_lock()) else {}),
        **(sources.bundled(warehouse, published, logs) if bundle else {}),
    }
    about = {
        "publication": published.number,
        "published_at": published.published_at,
        "code_revision": published.code_revision,
        "code_sha256": code_digest(),
        "has_bills": bundle,
        "month": month,
        "has_pseudonyms": bool(pseudonyms),
        "not_recomputed": lost,
    }
    try:
        seal = write_archive(out, about, members)
    except OSError as error:
        raise UsageError(f"{out} cannot be written ({error.strerror}); choose another file with --pack.") from None
    size = f"{out.stat().st_size // 1024:,} KiB, {len(members)} files"
    console.say(f"Wrote {out} ({size}). Manifest sha256: {seal}.")


def _refuse_lost(published: Publication, deliveries: Sequence[Mapping[str, Any]]) -> None:
    """SourceError for a delivery without which the pack could not be built again."""
    if lost := next((delivery for delivery in deliveries if delivery["files"] is None), None):
        raise SourceError(
            f"Delivery {lost['delivery_id']} ({lost['source']}, {lost['billing_period']}) was replaced, and its files "
            f"are not found at their source as they were read, so a pack of publication {published.number} could not "
            "be verified; restore them. Packs with --bundle, written before a delivery is replaced, need no source."
        )


def _is_gone(delivery: Mapping[str, Any]) -> bool:
    """Whether a delivery that is stored no longer lies at its source as it was read."""
    return delivery.get("is_gone", False) or any(file["sha256"] is None for file in delivery["files"])


def _marts(warehouse: Warehouse, published: Publication) -> dict[str, bytes | Path]:
    members: dict[str, bytes | Path] = {}
    for name, files in mart_files(warehouse, published.tables).items():
        rows = pl.read_parquet(files)
        key = load_catalog()[name.partition(".")[2]].key
        # A mart that is kept month by month becomes one file.
        rows.write_parquet(written := BytesIO())
        members[f"{key}.parquet"] = files[0] if len(files) == 1 else written.getvalue()
        members[f"{key}.csv"] = csv_text(rows).encode()
    return members


def _records(warehouse: Warehouse, tables: Mapping[str, dict[str, Any]], folder: str) -> dict[str, Path]:
    """The files of tables that a publication names, by member; SourceError where one is gone."""
    return {
        record_member(key, file.name, folder): file
        for key, named in tables.items()
        for file in warehouse.lake.named_files(key, named["files"])
    }


def record_member(key: str, file: str, folder: str = RECORDS) -> str:
    """The member that holds a file of the table `key`, by default one of the records."""
    return f"{folder}/{key.removeprefix('raw/')}/{file}"


def restated_marts() -> list[str]:
    """The marts that rest on what was published before."""
    catalog = load_catalog()
    return [model.name for model in catalog.public if catalog.behind(model.name) & {*PUBLISHED}]


def readme() -> bytes:
    return (resources.DASHBOARDS / "pack.txt").read_bytes()


def our_lock() -> bytes | None:
    """The libraries of this installation; None where it does not come with their list."""
    lock = resources.ROOT / LOCK
    return lock.read_bytes() if lock.is_file() else None


def checks_csv(published: Publication) -> bytes:
    columns = ("table", "period", "check", "severity", "passed", "unexpected_count", "observed", "title", "expectation")
    rows: list[dict[str, Any]] = [{name: check.get(name) for name in columns} for check in published.checks]
    return csv_text(pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), strict=False)).encode()


def members_of(pack: Pack, published: Publication) -> Iterator[str]:
    """The members that the records of a pack name, but for those of the publication before."""
    yield from (README, PUBLICATION, INPUTS, CHECKS, LOCK, *model_members())
    for kind in resources.known_reports():
        yield from (f"{REPORTS}/{kind}.html", f"{REPORTS}/{kind}.pdf")
    for model in load_catalog().public:
        if model.key in published.tables:
            yield from (f"{model.key}.parquet", f"{model.key}.csv")
    if not pack.about["has_pseudonyms"]:
        for key, named in published.raw.items():
            yield from (record_member(key, file) for file in named["files"])
    if pack.about["has_bills"]:
        inputs = pack.json(INPUTS)
        folders = {bill_folder(delivery) for delivery in published.inputs["deliveries"]}
        for delivery in inputs["deliveries"]:
            if (folder := bill_folder(delivery)) in folders:
                yield from (f"{folder}/{name}" for name in (RECORD, *(file["kept_as"] for file in delivery["files"])))
        for source in inputs["runs"]:
            yield from (log_member(source["name"], file["key"]) for file in source["files"] or ())


@cache
def model_members() -> dict[str, bytes]:
    """Each model's text (SQL with metrics and functions in place of their calls), each list and each contract.

    Modules that transforms import are below `models/code/`; `models/bill_columns.csv` lists the columns read of bills.
    """
    ordered = load_catalog().ordered
    models = {f"models/{m.key}.{_SUFFIX[m.kind]}": m.text.rstrip().encode() + b"\n" for m in ordered}
    reached = modules_reached(*(module_of(model.name) for model in ordered if model.kind == "transform"))
    own = {model.path for model in ordered}
    models |= {f"models/code/{name}.py": path.read_bytes() for name, path in reached.items() if path not in own}
    contracts = {f"expectations/{table}.yml": path.read_bytes() for table, path in contract_paths().items()}
    columns = {f"expectations/{path.name}": path.read_bytes() for path in resources.EXPECTATIONS.glob("*.yml")}
    return models | contracts | columns | {"models/bill_columns.csv": REVIEWED.read_bytes()}


def code_digest() -> str:
    """The sha256 of all Python that runs."""
    return digest_of(resources.PACKAGE, "*.py")
