"""Metrics of vLLM servers: scrapes of /metrics as text, or answers of Prometheus to range queries as JSON.

A scrape is a file `<server_id>/<time>.txt` or `.prom`, gzip or not, such as `chat-1/20260701T100000Z.txt`. In answers
of Prometheus the label `instance` is the server. Counters fall to 0 when a process restarts: only what a process
counted between two samples counts, and before its first sample only if it exports when it started.
"""

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from pipelines.base.errors import SourceError
from pipelines.base.parse import ParseError, parse_json
from pipelines.config.sources import ServingSource
from pipelines.ingest.json_lines import lines_of_file
from pipelines.ingest.runs.records import moment_of, reading
from pipelines.ingest.serving.records import Row, ServingRecords, records
from pipelines.warehouse.stores import open_store

_LINE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SCRAPE = re.compile(r"(?:^|/)(?P<server>[^/]+)/(?P<time>\d{8}T\d{6}Z)\.(txt|prom)(\.gz)?$")
_START = "process_start_time_seconds"
_COUNTERS = {
    "vllm:request_success_total": "request_count",
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:generation_tokens_total": "output_tokens",
}
# Tokens that a cache had, in the order of preference.
_CACHED = ("vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total")
_GAUGES = {"vllm:num_requests_running": "running_count", "vllm:num_requests_waiting": "waiting_count"}
_HISTOGRAMS = {
    "vllm:time_to_first_token_seconds_bucket": "ttft_p90_seconds",
    "vllm:inter_token_latency_seconds_bucket": "itl_p90_seconds",
    "vllm:time_per_output_token_seconds_bucket": "itl_p90_seconds",
}
_READ = {*_COUNTERS, *_CACHED, *_GAUGES, *_HISTOGRAMS, _START}
# By server and time (s since 1970): metric and upper bound of its bucket ("" for none) -> value.
_Samples = dict[str, dict[float, dict[tuple[str, str], float]]]


def read(source: ServingSource) -> ServingRecords:
    """The servers and traffic of all metrics of a source; SourceError for malformed content."""
    store = open_store(source.location, **source.reach)
    samples: _Samples = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    models: dict[str, str] = {}
    described = {server.server_id: server for server in source.servers}
    warnings: list[str] = []
    skipped = []
    for item in store.list():
        where = store.uri(item.key)
        with reading(where):
            scrape = _SCRAPE.search(item.key)
            if scrape is None and not item.key.endswith(".json"):
                skipped.append(item.key)
                continue
            content = store.read(item.key)
            found = _scraped(item.key, content, scrape, where) if scrape else _queried(content)
            for server, at, name, labels, value in found:
                samples[server][at][name, labels.get("le", "")] += value
                if "model_name" in labels:
                    models[server] = min(models.get(server, labels["model_name"]), labels["model_name"])
    if not samples:
        warnings.append(f"{store.location} has no metrics of vLLM; name scrapes <server_id>/20260701T100000Z.txt.")
    if skipped:
        warnings.append(f"{store.location}: {len(skipped)} files like {skipped[0]} are skipped.")
    servers, traffic = [], []
    for server_id, by_time in samples.items():
        declared = described.get(server_id)
        model = (declared.model if declared else None) or models.get(server_id)
        own = [row | {"server_id": server_id, "model": model} for row in _differences(by_time)]
        traffic += own
        if declared is None:
            warnings.append(
                f"Server {server_id} has metrics and no [[serving.servers]] entry; add one with its resource."
            )
        else:
            first = min([moment_of(min(by_time)), *(row["started_at"] for row in own)])
            row = declared.model_dump(exclude={"resource", "region"}) | {"model": model, "engine": "vllm"}
            machine = {"resource_id": declared.resource, "region_id": declared.region, "evidence": "nodemap"}
            servers.append(row | machine | {"started_at": first})
    return records(source, servers, traffic, warnings)


def _scraped(
    key: str, content: bytes, scrape: re.Match[str], where: str
) -> Iterator[tuple[str, float, str, dict[str, str], float]]:
    """(server, time, metric, labels, value) of a scrape."""
    at = datetime.strptime(scrape["time"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    try:
        for number, (line, _) in enumerate(lines_of_file(key, content, where), start=1):
            text = line.decode()
            if not text.strip() or text.startswith("#"):
                continue
            if (found := _LINE.fullmatch(text)) is None:
                raise ParseError(f"has a line {number} that is no metric")
            if found["name"] in _READ:
                labels = dict(_LABEL.findall(found["labels"] or ""))
                yield scrape["server"], at, found["name"], labels, float(found["value"])
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{where} is not a complete gzip file ({error}); write it again.") from None


def _queried(content: bytes) -> Iterator[tuple[str, float, str, dict[str, str], float]]:
    """The same of an answer of Prometheus to a range query."""
    for series in parse_json(content)["data"]["result"]:
        labels = series["metric"]
        if (name := labels["__name__"]) in _READ:
            for at, value in series["values"]:
                yield labels["instance"], float(at), name, labels, float(value)


def _differences(by_time: dict[float, dict[tuple[str, str], float]]) -> Iterator[Row]:
    """What each process counted from sample to sample."""
    times = sorted(by_time)
    if started := by_time[times[0]].get((_START, "")):
        yield from _between(started, {}, times[0], by_time[times[0]])
    for before, at in pairwise(times):
        one, other = by_time[before], by_time[at]
        started = other.get((_START, ""))
        is_new = started != one.get((_START, "")) if started else _has_fallen(one, other)
        # A process that restarted between two samples counted from 0 since then.
        since = max(before, started) if is_new and started else before
        yield from _between(since, {} if is_new else one, at, other)


def _has_fallen(one: dict[tuple[str, str], float], other: dict[tuple[str, str], float]) -> bool:
    return any(other.get((name, ""), 0) < one.get((name, ""), 0) for name in _COUNTERS)


def _between(
    since: float, one: dict[tuple[str, str], float], until: float, other: dict[tuple[str, str], float]
) -> Iterator[Row]:
    if until <= since:
        return
    row: dict[str, Any] = {"started_at": moment_of(since), "ended_at": moment_of(until)}
    counts = {
        name: round(max(other[name, ""] - one.get((name, ""), 0), 0))
        for name in (*_COUNTERS, *_CACHED)
        if (name, "") in other
    }
    row |= {column: counts.get(name) for name, column in _COUNTERS.items()}
    cached = next((counts[name] for name in _CACHED if name in counts), None)
    prompt = row.pop("prompt_tokens")
    row["cache_read_tokens"] = None if prompt is None else cached or 0
    row["input_tokens"] = None if prompt is None else max(prompt - (cached or 0), 0)
    for name, column in _GAUGES.items():
        levels = [sample[name, ""] for sample in (one, other) if (name, "") in sample]
        row[column] = sum(levels) / len(levels) if levels else None
    for name, column in _HISTOGRAMS.items():
        buckets = [(float(le), value - one.get((key, le), 0)) for (key, le), value in other.items() if key == name]
        row[column] = row.get(column) if row.get(column) is not None else _p90(sorted(buckets))
    yield row


def _p90(buckets: Iterable[tuple[float, float]]) -> float | None:
    """The 90th percentile of a cumulative histogram, as histogram_quantile of Prometheus interpolates it."""
    found = [*buckets]
    if not found or found[-1][1] <= 0:
        return None
    rank, below, lower = 0.9 * found[-1][1], 0.0, 0.0
    for upper, count in found:
        if count >= rank:
            if upper == float("inf"):
                return lower
            return lower + (upper - lower) * (rank - below) / (count - below)
        below, lower = count, upper
    return None
