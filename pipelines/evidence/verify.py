"""Verifies a pack: nothing in it was changed, and building again from its inputs gives every figure of it."""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.base.console import Console
from pipelines.base.errors import CheckError, UsageError, counted, shown
from pipelines.base.limits import UNPACK_RATIO, most_bytes
from pipelines.config.settings import Settings
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.evidence.archive import MANIFEST, Pack
from pipelines.evidence.compare import Difference, differences
from pipelines.evidence.inputs import INPUTS, bill_folder, has_all_logs, read_again
from pipelines.evidence.pack import (
    BEFORE,
    CHECKS,
    LOCK,
    PUBLICATION,
    README,
    RECORDS,
    checks_csv,
    code_digest,
    members_of,
    model_members,
    our_lock,
    readme,
    restated_marts,
)
from pipelines.evidence.rebuild import published_in, rebuild
from pipelines.evidence.reports import other_reports
from pipelines.ingest.runs.records import UNREAD
from pipelines.models.build import Builder
from pipelines.models.built import Built
from pipelines.models.catalog import PUBLISHED_KEYS, RAW_TABLES, SCHEMAS, Model, load_catalog
from pipelines.models.contract import load_contract
from pipelines.models.revision import code_revision, has_our_models
from pipelines.present.csv_text import csv_text
from pipelines.warehouse.publication import Publication
from pipelines.warehouse.retention import DATA_FILE

SHOWN = 20
# What pages and checks.csv show of a check.
_SHOWN_OF_A_CHECK = ("severity", "passed", "unexpected_count", "sample", "title", "figures", "totals", "expectation")
# A pack holds files of the publication before and no record of it; data files are named by digests.
_BEFORE = re.compile(rf"{BEFORE}/({'|'.join(PUBLISHED_KEYS)})/{DATA_FILE}")


def verify(path: Path, settings: Settings | None, console: Console) -> None:
    """Print VERIFIED, or raise: CheckError with what differs, SourceError for inputs that are missing or changed."""
    with closing(Pack(path)) as pack:
        _refuse_tampered(pack, console)
        _refuse_other_models(pack, console)
        published = published_in(pack)
        _refuse_misread(pack, published)
        _refuse_unnamed(pack, published)
        _refuse_unreadable(pack)
        if pack.about["has_pseudonyms"]:
            raise UsageError(
                f"{path} is intact and its models are those of this version, but it has pseudonyms instead of account "
                "ids and user names, so it cannot be rebuilt; verify a pack written without [privacy]."
            )
        with TemporaryDirectory(prefix="trainledger-verify-") as folder:
            builder, built = rebuild(pack, Path(folder), settings, console)
            redrawn: list[str] = []
            found = [
                *_other_texts(pack, published),
                *_other_digests(pack),
                *_other_records(pack, Path(folder) / "logs", published),
                *_all_differences(pack, published, builder, built, redrawn),
            ]
            figures = sum(_rebuilt(builder, mart).height * _rebuilt(builder, mart).width for mart in _marts(pack))
        unproven = "; ".join(_unproven(pack, redrawn))
    lost = pack.about["not_recomputed"]
    if found:
        console.table(pl.DataFrame(found[:SHOWN], schema=list(Difference._fields), orient="row"))
        if len(found) > SHOWN:
            console.say(f"and {len(found) - SHOWN:,} more")
        raise CheckError(f"{path} differs from what its inputs give: {counted(len(found), 'difference')}.")
    console.say(
        f"VERIFIED: publication {pack.about['publication']}, {figures:,} figures in {len(_marts(pack))} tables are "
        f"what its inputs give; manifest sha256: {pack.seal}."
    )
    if lost:
        not_compared = "its reports and these tables were not compared"
        console.say(f"The pack lacks the publication before, so {not_compared}: {', '.join(lost)}.")
    console.say(f"Not verified, because the pack contains no proof: {unproven}.")


def _refuse_tampered(pack: Pack, console: Console) -> None:
    wrong = list(pack.tampered())
    for sentence in wrong[:SHOWN]:
        console.say(sentence)
    if wrong:
        raise pack.error(f"{wrong[0]}, {counted(len(wrong), 'file')} in all")


def _refuse_misread(pack: Pack, published: Publication) -> None:
    """CheckError for a manifest with invalid values."""
    about = pack.about
    lost = about.get("not_recomputed")
    is_right = {
        "publication": type(about.get("publication")) is int and about["publication"] == published.number,
        "published_at": about.get("published_at") == str(published.published_at),
        "has_bills": isinstance(about.get("has_bills"), bool),
        "has_pseudonyms": isinstance(about.get("has_pseudonyms"), bool),
        # Only an earlier publication can be missing, and then for all marts that rest on one: any other list would
        # leave figures unchecked.
        "not_recomputed": lost == [] or (lost == restated_marts() and published.number > 1 and not pack.below(BEFORE)),
        "month": about.get("month") in [None, *published.billing_months],
    }
    if wrong := next((key for key, right in is_right.items() if not right), None):
        raise _misread(pack, wrong)


def _refuse_unnamed(pack: Pack, published: Publication) -> None:
    """CheckError for a member that nothing would read or compare, which a reader would take for verified."""
    try:
        named = {*members_of(pack, published)}
    except (LookupError, TypeError, ValueError, AttributeError):
        raise pack.malformed(f"{INPUTS} or {PUBLICATION}") from None
    has_before = published.number != 1 and not pack.about["has_pseudonyms"]
    before = {name for name in pack.below(BEFORE) if has_before and _BEFORE.fullmatch(name)}
    if names := sorted({*pack.members} - named - before):
        raise pack.error(f"no record of the pack names {shown(names[0])}{_and_more(names)}")


def _refuse_unreadable(pack: Pack) -> None:
    """CheckError for a table that is not Parquet, or has more values than tables of its bytes have."""
    for name in (name for folder in (*SCHEMAS, RECORDS, BEFORE) for name in pack.below(folder)):
        if name.endswith(".parquet"):
            content = pack.read(name)
            try:
                table = pq.read_metadata(BytesIO(content))
            except (pa.ArrowException, OSError):
                raise pack.error(f"{name} is not a complete Parquet file") from None
            # A value counts at least a byte, also where one stands for a million.
            if table.num_rows * table.num_columns > most_bytes(len(content)):
                raise pack.error(f"{name} unpacks to more than {UNPACK_RATIO} times its bytes")


def _misread(pack: Pack, key: str) -> CheckError:
    problem = f"is {pack.about[key]!a:.80}, which is not a valid value" if key in pack.about else "is missing"
    return pack.error(f"{key!r} of {MANIFEST} {problem}")


def _refuse_other_models(pack: Pack, console: Console) -> None:
    made = pack.about.get("code_revision")
    if not isinstance(made, str):
        raise _misread(pack, "code_revision")
    if not has_our_models(made):
        raise UsageError(
            f"{pack.path} was made by revision {made} and this is {code_revision()}, which has other models; verify it "
            "with that version."
        )
    ours = model_members()
    theirs = {name for folder in ("models", "expectations") for name in pack.below(folder)}
    wrong = sorted(name for name in theirs | set(ours) if name not in theirs or ours.get(name) != pack.read(name))
    if wrong:
        raise pack.error(f"{wrong[0]}{_and_more(wrong)} is not what revision {made} runs")
    if pack.about.get("code_sha256") != code_digest():
        console.note(
            "The models are the same, but other code changed since the pack was made; every figure is still compared."
        )


def _other_texts(pack: Pack, published: Publication) -> Iterator[Difference]:
    """Where what a reader opens first is not what the record of the publication gives."""
    for member, ours in ((README, readme()), (CHECKS, checks_csv(published))):
        if pack.read(member) != ours:
            yield Difference(member, "", "", "other text", f"the text that {PUBLICATION} and this version give")


def _unproven(pack: Pack, redrawn: Sequence[str]) -> Iterator[str]:
    """What a pack states and neither its inputs nor this installation show."""
    yield f"the publication time and the configuration ({PUBLICATION})"
    files = "the sha256 of delivered files that the pack includes" if pack.about["has_bills"] else "the sha256 of bills"
    yield f"everything in {INPUTS} except {files}"
    yield f"the warnings of reading the sources ({PUBLICATION})"
    if not pack.about["not_recomputed"]:
        yield f"what was published before ({BEFORE}), on which {', '.join(restated_marts())} rest"
    of_runs = {*RAW_TABLES} if has_all_logs(pack, pack.json(INPUTS)) else set()
    rows = {name.split("/")[1]: pl.read_parquet(BytesIO(pack.read(name))).height for name in pack.below(RECORDS)}
    if unread := sorted(table for table, count in rows.items() if count and table not in of_runs):
        yield f"what {', '.join(unread)} below {RECORDS} were read from"
    gone = [pl.read_parquet(BytesIO(pack.read(name)))["source_name"] for name in pack.below(f"{RECORDS}/{UNREAD}")]
    if UNREAD in of_runs and any(names.has_nulls() for names in gone):
        yield f"the published runs in {RECORDS}/{UNREAD} that are no longer recorded"
    if LOCK in pack.members and pack.read(LOCK) != our_lock():
        yield LOCK
    if redrawn:
        yield f"lengths and places in the charts of {', '.join(redrawn)}, which fonts or a forger changed"


def _other_digests(pack: Pack) -> Iterator[Difference]:
    """Where the digests an auditor compares with the bucket are not those of the bills in the pack."""
    for delivery in pack.json(INPUTS)["deliveries"] if pack.about["has_bills"] else ():
        for file in delivery["files"]:
            member = f"{bill_folder(delivery)}/{file['kept_as']}"
            seal, size = pack.members[member]
            # A csv is in the pack as Parquet, so its own digest cannot be checked.
            names = ("kept_sha256", "sha256") if file["bytes"] == size else ("kept_sha256",)
            yield from (Difference(INPUTS, member, name, str(file[name]), seal) for name in names if file[name] != seal)


def _other_records(pack: Pack, place: Path, published: Publication) -> Iterator[Difference]:
    """Where the records of the runs are not what the logs in the pack give."""
    day = published.published_at.date()
    again = read_again(pack, pack.json(INPUTS), place, day)
    for table, rebuilt in (again or {}).items():
        packed = pl.concat([pl.read_parquet(BytesIO(pack.read(name))) for name in pack.below(f"{RECORDS}/{table}")])
        if table == UNREAD:
            # No log has the runs that are gone.
            packed = packed.drop_nulls("source_name")
        yield from differences(f"{RECORDS}/{table}", (), packed, rebuilt)


def _all_differences(
    pack: Pack, published: Publication, builder: Builder, built: Sequence[Built], redrawn: list[str]
) -> Iterator[Difference]:
    for mart in _marts(pack):
        packed = pl.read_parquet(BytesIO(pack.read(f"{mart.key}.parquet")))
        yield from differences(mart.name, load_contract(mart.key).key, packed, _rebuilt(builder, mart))
        member = f"{mart.key}.csv"
        if pack.read(member) != csv_text(packed).encode():
            yield Difference(member, "", "", "other rows", f"the rows of {mart.name}.parquet")
    yield from _other_checks(published, built)
    if not pack.about["not_recomputed"]:
        with DuckDBEngine() as engine:
            for mart in _marts(pack):
                engine.view(mart.name, builder.lake.files(mart.key))
            yield from other_reports(engine, published, pack, redrawn)


def _other_checks(published: Publication, built: Sequence[Built]) -> Iterator[Difference]:
    """Where the recorded result of a check is not what the rebuilt tables give, is missing, or is of no check."""
    checks = {(made.table, made.period, check.check): check for made in built for check in made.checks}
    recorded = {(check["table"], check["period"], check["check"]): check for check in published.checks}
    for address, again in checks.items():
        table, period, name = address
        key = f"{' '.join(filter(None, (table, period)))}: {name}"
        if address not in recorded:
            yield Difference("checks", key, "", "no result", "a result")
            continue
        packed = recorded[address]
        for figure in _SHOWN_OF_A_CHECK:
            rebuilt = getattr(again, figure)
            # A record without an expectation is of a build without the gate, or older than the field.
            if packed.get(figure) != rebuilt and (figure != "expectation" or packed.get(figure)):
                yield Difference("checks", key, figure, str(packed.get(figure)), str(rebuilt))
    for table, period, name in recorded.keys() - checks.keys():
        # Those of raw tables are the warnings of reading.
        if not table.startswith("raw/"):
            yield Difference("checks", " ".join(filter(None, (table, period, name))), "", "a result", "no result")


def _marts(pack: Pack) -> list[Model]:
    return [model for model in load_catalog().public if model.name not in pack.about["not_recomputed"]]


def _rebuilt(builder: Builder, mart: Model) -> pl.DataFrame:
    return pl.read_parquet(builder.lake.files(mart.key))


def _and_more(names: Sequence[str]) -> str:
    return f" and {counted(len(names) - 1, 'more file')}" if len(names) > 1 else ""
