"""Reading a month of invocation logs of Amazon Bedrock, compared with bare scans of the same files."""

from __future__ import annotations

import gzip
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from pipelines.base.console import Console
from pipelines.bench.measure import median, task
from pipelines.bench.report import Figures, Target, where

# Files of AWS hold far fewer lines; opening more files costs every reader the same.
LINES_PER_FILE = 100_000
SCANS = {"scan-calls-polars": "bare Polars scan", "scan-calls-duckdb": "bare DuckDB scan"}
READ = "read-calls"
_MODELS = ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "qwen.qwen3-32b-v1:0", "amazon.nova-pro-v1:0")
_SUMS = ["inputTokenCount", "cacheReadInputTokenCount", "cacheWriteInputTokenCount", "outputTokenCount"]


def write_calls(place: Path, lines: int) -> None:
    """Write this many calls of July 2026 in gzip files, as AWS delivers them; prompts have about 200 letters."""
    chance = np.random.default_rng(20)
    folder = place / "AWSLogs/111122223333/BedrockModelInvocationLogs/us-east-1/2026/07"
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, lines, LINES_PER_FILE)):
        content = _calls(chance, first, min(LINES_PER_FILE, lines - first)).write_ndjson().encode()
        (folder / f"{number:05}.json.gz").write_bytes(gzip.compress(content, compresslevel=1))


def _calls(chance: np.random.Generator, first: int, count: int) -> pl.DataFrame:
    """Log lines of one hour's calls."""
    hour = datetime(2026, 7, 1) + timedelta(hours=int(chance.integers(0, 744)))
    frame = pl.DataFrame(
        {
            "number": np.arange(first, first + count),
            "second": np.sort(chance.integers(0, 3600, count)),
            **{name: chance.integers(1, 20_000, count) for name in ("read", "cached", "written")},
        }
    )
    number = pl.col("number")
    question = pl.format("question {} {}", number, pl.lit("and so on " * 20))
    return frame.select(
        schemaType=pl.lit("ModelInvocationLog"),
        schemaVersion=pl.lit("1.0"),
        timestamp=(pl.lit(hour) + pl.duration(seconds="second")).dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
        accountId=pl.lit("111122223333"),
        identity=pl.struct(
            arn=pl.format("arn:aws:sts::111122223333:assumed-role/chat-{}/session-{}", number % 20, number % 1000)
        ),
        region=pl.lit("us-east-1"),
        requestId=pl.format("{}-1c2b-4d5e-8f90-{}", number * 2654435761 % 2**32, number + 10**11),
        operation=pl.lit("Converse"),
        modelId=pl.lit(pl.Series(_MODELS)).gather(number % len(_MODELS)),
        input=pl.struct(
            inputContentType=pl.lit("application/json"),
            inputBodyJson=pl.struct(messages=pl.concat_list(pl.struct(role=pl.lit("user"), content=question))),
            inputTokenCount="read",
            cacheReadInputTokenCount="cached",
        ),
        output=pl.struct(
            outputContentType=pl.lit("application/json"),
            outputBodyJson=pl.struct(text=pl.lit("an answer " * 10)),
            outputTokenCount="written",
        ),
    )


def read(place: Path, lines: int) -> None:
    """The logs as a build reads them."""
    from pipelines.config.sources import ServingSource
    from pipelines.ingest.serving.sources import read_serving

    source = ServingSource(name="calls", kind="bedrock_log", location=str(place))
    found = read_serving([source]).tables["serving_traffic"]["request_count"].sum()
    assert found == lines or not lines, found


def scan_polars(place: Path, lines: int) -> None:
    """Sums by hour, model and caller with Polars, file by file; repeated calls are not searched for."""
    counts = {"input": pl.Struct(dict.fromkeys(_SUMS[:3], pl.Int64)), "output": pl.Struct({_SUMS[3]: pl.Int64})}
    schema = dict.fromkeys(("timestamp", "accountId", "region", "modelId", "requestId"), pl.String)
    schema |= {"identity": pl.Struct({"arn": pl.String}), **counts}  # type: ignore[dict-item]
    sums = [
        pl.read_ndjson(file, schema=schema)
        .unnest("input", "output", "identity")
        .group_by(pl.col("timestamp").str.slice(0, 13), "accountId", "region", "modelId", "arn")
        .agg(pl.col(_SUMS).sum(), pl.col("requestId").max())
        for file in sorted(place.rglob("*.json.gz"))
    ]
    pl.concat(sums).group_by("timestamp", "accountId", "region", "modelId", "arn").agg(pl.col(_SUMS).sum())


def scan_duckdb(place: Path, lines: int) -> None:
    """The same with DuckDB, all files in one query."""
    from pipelines.engine.duckdb import DuckDBEngine

    kinds = ", ".join(f"{name}: 'VARCHAR'" for name in ("timestamp", "accountId", "region", "modelId", "requestId"))
    counts = ", ".join(f"{name} BIGINT" for name in _SUMS[:3])
    columns = (
        f"{{{kinds}, identity: 'STRUCT(arn VARCHAR)', input: 'STRUCT({counts})', output: 'STRUCT({_SUMS[3]} BIGINT)'}}"
    )
    sums = ", ".join(f"sum({'output' if name == _SUMS[3] else 'input'}.{name})" for name in _SUMS)
    with DuckDBEngine() as engine:
        engine.query(
            f"select left(timestamp, 13), accountId, region, modelId, identity.arn, {sums}, max(requestId) "
            f"from read_json('{place}/**/*.json.gz', format = 'newline_delimited', columns = {columns}) group by all"
        )


def measured(folder: Path, lines: int, repeat: int) -> Figures:
    """The median of all rounds of reading and of each bare scan."""
    Console().note(f"Generating {lines:,} calls …")
    task("generate-calls", folder, lines)
    return {(lines, kind): median([task(kind, folder, lines) for _ in range(repeat)]) for kind in (READ, *SCANS)}


def report(figures: Figures, repeat: int) -> str:
    """What was measured, as Markdown."""
    lines = max(size for size, _ in figures)
    ours = figures[lines, READ]
    targets = [Target("peak memory, GiB", ours.peak_mib / 1024, None, 4)]
    for kind, name in SCANS.items():
        scan = figures[lines, kind]
        targets.append(Target(f"times a {name}", ours.wall / scan.wall, ours.cpu / scan.cpu, 2))
    rows = (
        f"| {name} | {run.wall:.1f} | {run.cpu:.1f} | {run.peak_mib:,.0f} |"
        for name, run in (("reading", ours), *((name, figures[lines, kind]) for kind, name in SCANS.items()))
    )
    return "\n".join(
        [
            f"# Benchmark of {lines:,} calls of Amazon Bedrock",
            "",
            f"{where(repeat)}; `make bench CALLS={lines}`.",
            "",
            "| Target | by the clock | by processor time | at most | |",
            "|---|---:|---:|---:|---|",
            *(target.line for target in targets),
            "",
            "| | s | processor s | peak MiB |",
            "|---|---:|---:|---:|",
            *rows,
        ]
    )
