"""Invocation logs of Amazon Bedrock: JSON lines, gzip or not, summed by hour, model and caller.

Only counts are read; prompts and answers never leave the file. A call that was delivered twice counts once. Input
tokens leave out those read from or written to a cache, as AWS logs them.
"""

from collections import Counter
from collections.abc import Iterator

import polars as pl

from pipelines.base.errors import MalformedError
from pipelines.base.limits import MOST
from pipelines.base.parse import ParseError, parse_json
from pipelines.config.sources import ServingSource
from pipelines.ingest.json_lines import blocks_of_file
from pipelines.ingest.schema import latest
from pipelines.ingest.serving.records import (
    SCHEMAS,
    TRAFFIC,
    ServingRecords,
    call_records,
    model_of,
    resource_of,
)
from pipelines.warehouse.storage import Store
from pipelines.warehouse.stores import open_store

_SUFFIXES = (".json.gz", ".jsonl.gz", ".json", ".jsonl")
_TOKENS = {
    "input_tokens": ("input", "inputTokenCount"),
    "cache_read_tokens": ("input", "cacheReadInputTokenCount"),
    "cache_write_tokens": ("input", "cacheWriteInputTokenCount"),
    "output_tokens": ("output", "outputTokenCount"),
}
# What is read of a line; the rest is not kept in memory either.
_LINE = {
    "timestamp": pl.String,
    "accountId": pl.String,
    "region": pl.String,
    "requestId": pl.String,
    "modelId": pl.String,
    "modelArn": pl.String,
    "errorCode": pl.String,
    "identity": pl.Struct({"arn": pl.String}),
    # As text: what is read as a number is null where it is none, as what is not there.
    "input": pl.Struct({name: pl.String for part, name in _TOKENS.values() if part == "input"}),
    "output": pl.Struct({"outputTokenCount": pl.String}),
}
_KEYS = ("started_at", "account_id", "region_id", "model", "resource_id", "caller")
# The columns of a line that _KEYS are derived from.
_READ_KEYS = ("started_at", "account_id", "region_id", "modelId", "modelArn", "caller")
_COUNTS = ("request_count", "error_count", *_TOKENS)
_ODD = "calls with tokens that are no count, negative, or more than any has, are skipped ({}); check what wrote them."
_NO_CALL = "lines that are no invocation are skipped ({}); check what else is delivered there."
# The session of an assumed role is a person or a process.
_SESSION = r"^(arn:[^:]*:sts::\d*:assumed-role/[^/]+)/.*$"
# How much of a file is in memory at a time.
_BLOCK_BYTES = 64 << 20
Seen = dict[object, list[pl.Series]]
"""Eight bytes of each call that was read, by hour."""


def read(source: ServingSource, seen: Seen) -> ServingRecords:
    """The calls of all log files of a source that are not in `seen`; they are added to it.

    SourceError for a store that does not answer.
    """
    store = open_store(str(source.location), **source.reach)
    counted: Counter[str] = Counter()
    warnings: list[str] = []
    empty = pl.DataFrame(schema={**dict.fromkeys(_READ_KEYS, pl.String), **SCHEMAS[TRAFFIC]}).select(
        *_READ_KEYS, *_COUNTS
    )
    summed = pl.concat([empty, *_summed(store, seen, counted, warnings)]).group_by(_READ_KEYS).agg(pl.all().sum())
    # Models are found once for each sum: a month has millions of calls.
    named = summed.with_columns(
        model=model_of(source, "modelArn", "modelId"),
        resource_id=resource_of("modelId"),
    )
    sums = named.group_by(_KEYS).agg(pl.col(_COUNTS).sum())
    warnings += [f"{store.location}: {what.format(f'{count:,}')}" for what, count in sorted(counted.items()) if count]
    if sums.is_empty() and not seen:
        warnings.append(
            f"{store.location} has no invocation of a model; turn on model invocation logging in the region."
        )
    return call_records(source, sums, warnings)


def _summed(store: Store, seen: Seen, counted: Counter[str], warnings: list[str]) -> Iterator[pl.DataFrame]:
    """The sums of each block of each file, by hour; a file that is damaged counts up to the damage, with a warning."""
    for item in store.list():
        name = item.key.rpartition("/")[2]
        if not item.key.endswith(_SUFFIXES) or "/data/" in item.key or name == "amazon-bedrock-logs-permission-check":
            continue
        try:
            with store.open(item.key) as content:
                for block in blocks_of_file(item.key, content, item.size, store.uri(item.key), _BLOCK_BYTES):
                    calls = _new(_calls(_lines(block, counted), counted), seen, counted)
                    sums = calls.group_by(_READ_KEYS).agg(
                        request_count=pl.len().cast(pl.Int64),
                        error_count=pl.col("is_error").sum().cast(pl.Int64),
                        **{token: pl.col(token).sum() for token in _TOKENS},
                    )
                    # Texts of Polars keep the whole block in memory that they are taken from.
                    yield pl.DataFrame(sums.rows(), sums.schema, orient="row")
        except MalformedError as error:
            warnings.append(f"{error} What follows in the file is not counted.")


def _lines(block: bytes, counted: Counter[str]) -> pl.DataFrame:
    """What is read of each line; one that is no JSON object is counted, and never quoted: it may hold a prompt."""
    if not block.strip():
        return pl.DataFrame(schema=_LINE)
    try:
        return pl.read_ndjson(block, schema=_LINE, ignore_errors=True)
    except (pl.exceptions.PolarsError, OSError):
        # What begins as a packed file does is unpacked, and may be no such file.
        lines = block.splitlines()
        whole = [found for line in lines if (found := _line(line)) is not None]
        counted[_NO_CALL] += len(lines) - len(whole)
        return pl.concat([pl.DataFrame(schema=_LINE), *whole])


def _line(line: bytes) -> pl.DataFrame | None:
    try:
        return pl.read_ndjson(line, schema=_LINE, ignore_errors=True) if isinstance(parse_json(line), dict) else None
    except (ParseError, pl.exceptions.PolarsError, OSError):
        return None


def _calls(lines: pl.DataFrame, counted: Counter[str]) -> pl.DataFrame:
    """The calls of a file by hour; what is no call is counted."""
    at = pl.col("timestamp").str.to_datetime("%+", time_unit="ms", time_zone="UTC", strict=False)
    # In one pass: a month has millions of calls in thousands of files.
    calls = (
        lines.lazy()
        .select(
            "modelId",
            "modelArn",
            "requestId",
            started_at=at.dt.replace_time_zone(None).dt.truncate("1h"),
            account_id="accountId",
            region_id="region",
            caller=pl.col("identity").struct.field("arn").str.replace(_SESSION, "${1}"),
            is_error=pl.col("errorCode").is_not_null(),
            number=pl.col("requestId").hash(seed=20),
            **{name: pl.col(part).struct.field(key).fill_null("0") for name, (part, key) in _TOKENS.items()},
        )
        .with_columns(pl.col(*_TOKENS).cast(pl.Int64, strict=False))
        .with_columns(
            is_call=(pl.col("started_at") <= latest()).fill_null(False)
            & pl.any_horizontal(pl.col("modelId", "modelArn") != ""),
            is_odd=~pl.all_horizontal(pl.col(*_TOKENS).is_between(0, MOST).fill_null(False)),
        )
        .collect()
    )
    counted[_NO_CALL] += int((~calls["is_call"]).sum())
    counted[_ODD] += int((calls["is_call"] & calls["is_odd"]).sum())
    return calls.filter(pl.col("is_call") & ~pl.col("is_odd"))


def _new(calls: pl.DataFrame, seen: Seen, counted: Counter[str]) -> pl.DataFrame:
    """The calls that no file had before."""
    once = calls.filter(pl.col("requestId").is_null() | pl.col("requestId").is_first_distinct())
    parts = []
    for (hour,), found in once.partition_by("started_at", as_dict=True).items():
        for known in seen.get(hour, ()):
            found = found.filter(pl.col("requestId").is_null() | ~pl.col("number").is_in(known.implode()))
        seen.setdefault(hour, []).append(found.drop_nulls("requestId")["number"])
        parts.append(found)
    fresh = pl.concat([calls.clear(), *parts])
    counted["calls that were delivered twice count once ({})."] += calls.height - fresh.height
    return fresh
