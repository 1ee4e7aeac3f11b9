"""Metrics of servers: scrapes of /metrics as text, or answers of Prometheus to range queries as JSON.

A scrape is a file `<server_id>/<time>.txt` or `.prom`, gzip or not, such as `chat-1/20260701T100000Z.txt`. In answers
of Prometheus the label `instance` is the server. Counters fall to 0 when a process restarts: only what a process
counted between two samples counts, and before its first sample only if it exports when it started.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite

from pipelines.base.errors import MalformedError
from pipelines.base.limits import MOST
from pipelines.base.parse import ParseError, parse_json, reading
from pipelines.config.sources import ServingServer, ServingSource
from pipelines.ingest.json_lines import lines_of_file, skipped
from pipelines.ingest.schema import FUTURE, latest, moment_of
from pipelines.ingest.serving.records import EARLIEST, Row, ServingRecords, records
from pipelines.warehouse.stores import open_store

_LINE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SCRAPE = re.compile(r"(?:^|/)(?P<server>[^/]+)/(?P<time>\d{8}T\d{6}Z)\.(txt|prom)(\.gz)?$")
_START = "process_start_time_seconds"
_EARLIEST = EARLIEST.replace(tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class _Exporter:
    """The metrics of one kind of server that are read, and the column of each."""

    counters: Mapping[str, str]
    gauges: Mapping[str, str]
    histograms: Mapping[str, str] = field(default_factory=dict)
    # Tokens that a cache had, in the order of preference.
    cached: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        return {*self.counters, *self.gauges, *self.histograms, *self.cached, _START}


_EXPORTERS = {
    "vllm": _Exporter(
        {
            "vllm:request_success_total": "request_count",
            "vllm:prompt_tokens_total": "prompt_tokens",
            "vllm:generation_tokens_total": "output_tokens",
        },
        {"vllm:num_requests_running": "running_count", "vllm:num_requests_waiting": "waiting_count"},
        {
            "vllm:time_to_first_token_seconds_bucket": "ttft_p90_seconds",
            "vllm:inter_token_latency_seconds_bucket": "itl_p90_seconds",
            "vllm:time_per_output_token_seconds_bucket": "itl_p90_seconds",
        },
        ("vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total"),
    ),
    # It exports no time to the first token; sums of its histograms count tokens.
    "tgi": _Exporter(
        {
            "tgi_request_success": "request_count",
            "tgi_request_input_length_sum": "prompt_tokens",
            "tgi_request_generated_tokens_sum": "output_tokens",
        },
        {"tgi_batch_current_size": "running_count", "tgi_queue_size": "waiting_count"},
        {"tgi_request_mean_time_per_token_duration_bucket": "itl_p90_seconds"},
    ),
    # Busy cores are no tokens: they only show when a machine was idle.
    "neuron_monitor": _Exporter(
        {"execution_status_total": "execution_count"}, {"neuroncore_utilization_ratio": "core_utilization_ratio"}
    ),
}
_MACHINE = {"instance_id": "resource_id", "instance_type": "instance_type", "region": "region_id"}
# Metric and upper bound of its bucket ("" for none) -> value.
_Sample = dict[tuple[str, str], float]


@dataclass
class _Server:
    """What was read of a server: its samples and the model of each by time (s since 1970), and its machine."""

    samples: dict[float, _Sample] = field(default_factory=lambda: defaultdict(dict))
    models: dict[float, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)


def read(source: ServingSource) -> ServingRecords:
    """The servers and traffic of all metrics of a source. A file that is malformed is skipped with a warning."""
    exporter = _EXPORTERS[source.kind]
    store = open_store(str(source.location), **source.reach)
    found: dict[str, _Server] = defaultdict(_Server)
    warnings: list[str] = []
    others = []
    for item in store.list():
        where = store.uri(item.key)
        scrape = _SCRAPE.search(item.key)
        if scrape is None and not item.key.endswith(".json"):
            others.append(item.key)
            continue
        try:
            with reading(where):
                content = store.read(item.key)
                names = exporter.names
                lines = [*(_scraped(item.key, content, scrape, where, names) if scrape else _queried(content, names))]
        except MalformedError as error:
            warnings.append(f"{error} It is skipped.")
            continue
        # Series of one file add up; another file with the same sample is the same delivered again.
        sums: dict[tuple[str, float], _Sample] = defaultdict(lambda: defaultdict(float))
        # NaN is no count: the next sample has what both counted. A start of NaN is unknown.
        counted = {*exporter.counters, *exporter.cached, *exporter.histograms}
        lost = {(name, at) for name, at, metric, _, value in lines if metric in counted and not isfinite(value)}
        for name, at, metric, labels, value in lines:
            if (name, at) in lost:
                continue
            server = found[name]
            if metric != _START or isfinite(value):
                sums[name, at][metric, _bound(labels)] += value
            if model := labels.get("model_name"):
                server.models[at] = min(server.models.get(at, model), model)
            server.machine |= {column: labels[label] for label, column in _MACHINE.items() if labels.get(label)}
        for (name, at), sample in sums.items():
            found[name].samples[at] |= sample
    if not found:
        warnings.append(
            f"{store.location} has no metrics of {source.kind}; name scrapes <server_id>/20260701T100000Z.txt."
        )
    warnings += skipped(store.location, others, "")
    described = {server.server_id: server for server in source.servers}
    servers, traffic = [], []
    processes: dict[tuple[str | None, frozenset[float]], str] = {}
    for server_id, server in sorted(found.items()):
        up = _start(described.get(server_id), server, source.kind)
        started = frozenset(one[_START, ""] for one in server.samples.values() if (_START, "") in one)
        if started and (first := processes.setdefault((up["resource_id"], started), server_id)) != server_id:
            warnings.append(
                f"Servers {first} and {server_id} started at the same moment on the same machine, so they are one "
                f"process; {first} counts. Export its counters under one name."
            )
            continue
        own = [row | {"server_id": server_id} for row in _differences(exporter, server_id, server, warnings)]
        if up["resource_id"] is None:
            warnings.append(
                f"Server {server_id} has metrics and no [[serving.servers]] entry; add one with its resource."
            )
        else:
            servers += _starts(up | {"server_id": server_id}, min(server.samples), own)
        traffic += [row | {"model": up["model"] or row["model"]} for row in own]
    return records(source, servers, traffic, warnings)


def _start(declared: ServingServer | None, server: _Server, engine: str) -> Row:
    """A start of a server, without its time: as configured, else as its metrics name its machine."""
    known: Row = {"model": None, "resource_id": None, "evidence": "imds", **server.machine}
    known["engine"] = engine if engine != "neuron_monitor" else None
    if declared is not None:
        row = declared.model_dump(exclude={"resource", "region"}, exclude_none=True)
        known |= row | {"resource_id": declared.resource, "evidence": "nodemap"}
        known["region_id"] = declared.region or known.get("region_id")
    return known


def _starts(up: Row, first: float, traffic: list[Row]) -> Iterator[Row]:
    """The starts of a server: its first, and one whenever it serves another model."""
    model, since = up["model"], min([moment_of(first), *(row["started_at"] for row in traffic)])
    if not traffic or model:
        yield up | {"started_at": since}
        return
    for number, row in enumerate(traffic):
        if number == 0 or row["model"] != model:
            model = row["model"]
            yield up | {"model": model, "started_at": row["started_at"] if number else since}


def _scraped(
    key: str, content: bytes, scrape: re.Match[str], where: str, names: Collection[str]
) -> Iterator[tuple[str, float, str, dict[str, str], float]]:
    """(server, time, metric, labels, value) of a scrape."""
    at = _time(datetime.strptime(scrape["time"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp())
    for number, line in enumerate(lines_of_file(key, content, where), start=1):
        text = line.decode()
        if not text.strip() or text.startswith("#"):
            continue
        if (found := _LINE.fullmatch(text)) is None:
            raise ParseError(f"has a line {number} that is no metric")
        if found["name"] in names:
            labels = dict(_LABEL.findall(found["labels"] or ""))
            yield scrape["server"], at, found["name"], labels, float(found["value"])


def _queried(content: bytes, names: Collection[str]) -> Iterator[tuple[str, float, str, dict[str, str], float]]:
    """The same of an answer of Prometheus to a range query."""
    for series in parse_json(content)["data"]["result"]:
        labels = series["metric"]
        if not all(isinstance(label, str) for label in labels.values()):
            raise ParseError("has a label that is not text")
        if labels["__name__"] in names:
            for at, value in series["values"]:
                yield labels["instance"], _time(float(at)), labels["__name__"], labels, float(value)


def _time(at: float) -> float:
    """The time of a sample; ParseError for one that no server can have, as each hour up to it would be a row."""
    if at < _EARLIEST or moment_of(at) > latest():
        raise ParseError(f"has the time {moment_of(at)}, {'before any server' if at < _EARLIEST else FUTURE}")
    return at


def _bound(labels: Mapping[str, str]) -> str:
    """The upper bound of a latency bucket in one spelling; empty where it is missing or no number."""
    try:
        return str(float(labels.get("le", "")))
    except ValueError:
        return ""


def _differences(exporter: _Exporter, server_id: str, server: _Server, warnings: list[str]) -> Iterator[Row]:
    """What each process counted from sample to sample."""
    times = sorted(server.samples)
    if (started := server.samples[times[0]].get((_START, ""), 0)) >= _EARLIEST:
        yield from _between(exporter, server, started, {}, times[0])
    for before, at in pairwise(times):
        one, other = server.samples[before], server.samples[at]
        started = other.get((_START, ""))
        has_fallen = any(other.get((name, ""), 0) < one.get((name, ""), 0) for name in exporter.counters)
        is_renamed = server.models.get(before) != server.models.get(at)
        is_new = started != one.get((_START, "")) if started else has_fallen or is_renamed
        if has_fallen and not is_new:
            warnings.append(
                f"Server {server_id} has counters that go backwards from {moment_of(before)} to {moment_of(at)}, and "
                "no restart; what it served then is unknown. Export the counters of one process under one name."
            )
            continue
        # A process that restarted between two samples counted from 0 since then.
        since = max(before, started) if is_new and started and started < at else before
        yield from _between(exporter, server, since, {} if is_new else one, at)
    ahead = [at for at in times if server.samples[at].get((_START, ""), 0) > at]
    if ahead:
        warnings.append(
            f"Server {server_id} was scraped at {moment_of(ahead[0])}, before it started by its own clock; correct one "
            "of the clocks. What it served before its first scrape is unknown."
        )


def _between(exporter: _Exporter, server: _Server, since: float, one: _Sample, until: float) -> Iterator[Row]:
    if until <= since:
        return
    other = server.samples[until]
    row: Row = {"started_at": moment_of(since), "ended_at": moment_of(until), "model": server.models.get(until)}
    grown = {
        name: other[name, ""] - one.get((name, ""), 0)
        for name in (*exporter.counters, *exporter.cached)
        if (name, "") in other
    }
    counts = {name: round(max(count, 0)) for name, count in grown.items() if abs(count) < MOST}
    row |= {column: counts.get(name) for name, column in exporter.counters.items()}
    cached = next((counts[name] for name in exporter.cached if name in counts), None)
    prompt = row.pop("prompt_tokens", None)
    row["cache_read_tokens"] = None if prompt is None else cached or 0
    row["input_tokens"] = None if prompt is None else max(prompt - (cached or 0), 0)
    for name, column in exporter.gauges.items():
        levels = [sample[name, ""] for sample in (one, other) if (name, "") in sample]
        row[column] = sum(levels) / len(levels) if levels else None
    for name, column in exporter.histograms.items():
        buckets = [
            (float(le), value - one.get((key, le), 0)) for (key, le), value in other.items() if key == name and le
        ]
        row[column] = row.get(column) if row.get(column) is not None else _p90(sorted(buckets))
    yield {name: None if isinstance(value, float) and not abs(value) < MOST else value for name, value in row.items()}


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
