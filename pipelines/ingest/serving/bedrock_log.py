"""Invocation logs of Amazon Bedrock: JSON lines, gzip or not, summed by hour, model and caller.

Only counts are read; prompts and answers never leave the file. A call that was delivered twice counts once. Input
tokens leave out those read from or written to a cache, as AWS logs them.
"""

from collections import Counter
from collections.abc import Iterator

import polars as pl

from pipelines.base.errors import SourceError
from pipelines.config.sources import ServingSource
from pipelines.ingest.serving.records import SCHEMAS, SERVER, TRAFFIC, ServingRecords, table
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
    "schemaType": pl.String,
    "timestamp": pl.String,
    "accountId": pl.String,
    "region": pl.String,
    "requestId": pl.String,
    "modelId": pl.String,
    "modelArn": pl.String,
    "errorCode": pl.String,
    "identity": pl.Struct({"arn": pl.String}),
    "input": pl.Struct({name: pl.Int64 for part, name in _TOKENS.values() if part == "input"}),
    "output": pl.Struct({"outputTokenCount": pl.Int64}),
}
_KEYS = ("started_at", "account_id", "region_id", "model", "caller")
# The last part of an ARN; a system profile is its model with the geography before it.
_NAME, _GEOGRAPHY = r"([^/]+)$", r"^(us|eu|apac|jp|au|ca|us-gov|global)\."
# The session of an assumed role is a person or a process.
_SESSION = r"^(arn:[^:]*:sts::\d*:assumed-role/[^/]+)/.*$"


def read(source: ServingSource) -> ServingRecords:
    """The calls of all log files of a source; SourceError for a file that is no log of Bedrock."""
    store = open_store(source.location, **source.reach)
    counted: Counter[str] = Counter()
    seen: dict[object, list[pl.Series]] = {}
    sums = pl.concat([_empty(), *_summed(source, store, seen, counted)])
    total = sums.group_by(_KEYS).agg(pl.all().sum())
    rows = total.with_columns(
        source_name=pl.lit(source.name),
        ended_at=pl.col("started_at").dt.offset_by("1h"),
        is_quiet=pl.lit(False),
    )
    rows = rows.with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in SCHEMAS[TRAFFIC].items() if name not in rows.columns
    )
    typed = rows.select(pl.col(name).cast(dtype) for name, dtype in SCHEMAS[TRAFFIC].items())
    warnings = [f"{store.location}: {count:,} {what}" for what, count in sorted(counted.items())]
    if total.is_empty():
        warnings.append(
            f"{store.location} has no invocation of a model; turn on model invocation logging in the region."
        )
    profiles = total.filter(pl.col("model").is_in([*source.models.values()]).not_() & _is_profile(pl.col("model")))
    warnings += [
        f"{store.location}: {name} is an inference profile without a model; add it to `models` of [[serving]] "
        f"{source.name}."
        for name in profiles["model"].unique().sort()
    ]
    return ServingRecords({SERVER: table(SERVER, []), TRAFFIC: typed.sort(pl.all(), nulls_last=True)}, warnings)


def _is_profile(model: pl.Expr) -> pl.Expr:
    # An application profile has an id of letters and digits alone; the id of a model names its vendor.
    return ~model.str.contains(".", literal=True)


def _empty() -> pl.DataFrame:
    columns = {name: SCHEMAS[TRAFFIC][name] for name in (*_KEYS, "request_count", "error_count", *_TOKENS)}
    return pl.DataFrame(schema=columns)


def _summed(
    source: ServingSource, store: Store, seen: dict[object, list[pl.Series]], counted: Counter[str]
) -> Iterator[pl.DataFrame]:
    """The sums of each file, by hour; a file is in memory at a time."""
    for item in store.list():
        name = item.key.rpartition("/")[2]
        if not item.key.endswith(_SUFFIXES) or "/data/" in item.key or name == "amazon-bedrock-logs-permission-check":
            continue
        try:
            lines = pl.read_ndjson(store.read(item.key), schema=_LINE, ignore_errors=True)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise SourceError(f"{store.uri(item.key)} is no log of JSON lines ({str(error)[:80]}); check it.") from None
        calls = _new(_calls(source, lines, counted), seen, counted)
        yield calls.group_by(_KEYS).agg(
            request_count=pl.len().cast(pl.Int64),
            error_count=pl.col("errorCode").is_not_null().sum().cast(pl.Int64),
            **{token: pl.col(token).sum() for token in _TOKENS},
        )


def _calls(source: ServingSource, lines: pl.DataFrame, counted: Counter[str]) -> pl.DataFrame:
    """The calls of a file by hour; what is no call is counted."""
    at = pl.col("timestamp").str.to_datetime("%+", time_unit="ms", time_zone="UTC", strict=False)
    model = pl.coalesce("modelArn", "modelId")
    mapped = pl.col("modelId").replace_strict(source.models, default=None, return_dtype=pl.String)
    named = model.str.extract(_NAME).str.replace(_GEOGRAPHY, "")
    calls = lines.with_columns(
        started_at=at.dt.replace_time_zone(None).dt.truncate("1h"),
        account_id="accountId",
        region_id="region",
        model=pl.coalesce(mapped, named),
        caller=pl.col("identity").struct.field("arn").str.replace(_SESSION, "${1}"),
        **{name: pl.col(part).struct.field(key).fill_null(0) for name, (part, key) in _TOKENS.items()},
    ).select(*_KEYS, "requestId", "errorCode", "schemaType", *_TOKENS)
    is_call = pl.col("started_at").is_not_null() & pl.col("model").is_not_null()
    is_negative = pl.any_horizontal(pl.col(*_TOKENS) < 0)
    kept = calls.filter(is_call & ~is_negative)
    if wrong := calls.height - calls.filter(is_call).height:
        counted["lines that are no invocation are skipped; check what else is delivered there."] += wrong
    if wrong := calls.filter(is_call & is_negative).height:
        counted["calls with negative tokens are skipped; check what wrote them."] += wrong
    return kept


def _new(calls: pl.DataFrame, seen: dict[object, list[pl.Series]], counted: Counter[str]) -> pl.DataFrame:
    """The calls that no file had before. Of each call eight bytes are kept, by hour."""
    numbered = calls.with_columns(number=pl.col("requestId").hash(seed=20))
    once = pl.concat(
        [
            numbered.filter(pl.col("requestId").is_null()),
            numbered.filter(pl.col("requestId").is_not_null()).unique("requestId", maintain_order=True),
        ]
    )
    parts = []
    for (hour,), found in once.partition_by("started_at", as_dict=True).items():
        for known in seen.get(hour, ()):
            found = found.filter(pl.col("requestId").is_null() | ~pl.col("number").is_in(known.implode()))
        seen.setdefault(hour, []).append(found.drop_nulls("requestId")["number"])
        parts.append(found)
    fresh = pl.concat([numbered.clear(), *parts])
    if twice := calls.height - fresh.height:
        counted["calls were delivered twice and count once."] += twice
    return fresh
