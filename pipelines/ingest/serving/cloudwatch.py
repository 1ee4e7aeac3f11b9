"""CloudWatch's hourly metrics of Amazon Bedrock by model: saved answers of GetMetricData, or its API.

An answer names what it counts in its label, `<metric> <model id>` (docs/serving.md). A saved one lies below folders of
its account and region, as invocation logs do, because no answer contains them.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from pipelines.base.aws import connect, requesting
from pipelines.base.errors import MalformedError
from pipelines.base.limits import MOST
from pipelines.base.parse import parse_json, reading
from pipelines.config.sources import ServingSource
from pipelines.ingest.inventory import answers
from pipelines.ingest.json_lines import skipped
from pipelines.ingest.schema import AT, latest
from pipelines.ingest.serving.records import Row, ServingRecords, call_records, model_of, resource_of
from pipelines.warehouse.stores import open_store

_NAMESPACE = "AWS/Bedrock"
_METRICS = {
    "Invocations": "request_count",
    "InvocationClientErrors": "error_count",
    "InvocationServerErrors": "error_count",
    "InputTokenCount": "input_tokens",
    "CacheReadInputTokenCount": "cache_read_tokens",
    "CacheWriteInputTokenCount": "cache_write_tokens",
    "OutputTokenCount": "output_tokens",
}
_PLACE = re.compile(r"(?:^|/)(?P<account_id>\d{12})/(?:.+/)?(?P<region_id>[a-z]{2}(?:-[a-z]+)+-\d)/[^/]+\.json$")
_PERMISSIONS = "cloudwatch:ListMetrics and cloudwatch:GetMetricData"
# Metrics in one request; a month of them has fewer values than an answer may have.
_MOST_METRICS = 100
_KEYS = {"started_at": AT, "account_id": pl.String, "region_id": pl.String, "modelId": pl.String}
Answer = tuple[str, Mapping[str, str], Any]
"""Its address, its account and region, and the answer."""

Sample = tuple[str, str, str, str, datetime]
"""Account, region, model, metric and time of a value."""

Answered = dict[str, list[Answer]]
"""The answers of the API by the name of their source, each queried once."""


def read(source: ServingSource, answered: Answered | None = None) -> ServingRecords:
    """The calls of all models by hour. Saved answers of another form are skipped; SourceError for the API."""
    warnings: list[str] = []
    samples: dict[Sample, int] = {}
    for where, place, answer in found_answers(source, warnings, answered):
        try:
            found = _samples(answer, place, where)
        except MalformedError as error:
            if source.location is None:
                raise
            warnings.append(f"{error} It is skipped.")
            continue
        # The same hour in two answers counts once, as the fuller has it: it may be open in the other. Values within an
        # hour add up.
        samples |= {key: max(value, samples.get(key, 0)) for key, value in found.items()}
    rows: dict[tuple[Any, ...], Row] = {}
    for (account_id, region_id, model, metric, moment), value in samples.items():
        hour = (moment.replace(minute=0, second=0, microsecond=0), account_id, region_id, model)
        row = rows.setdefault(hour, {**dict(zip(_KEYS, hour, strict=True)), **dict.fromkeys(_METRICS.values(), 0)})
        row[_METRICS[metric]] += value
    sums = pl.DataFrame([*rows.values()], schema={**_KEYS, **dict.fromkeys(_METRICS.values(), pl.Int64)})
    named = sums.with_columns(model=model_of(source, "modelId"), resource_id=resource_of("modelId"))
    if named.is_empty():
        warnings.append(f"[[serving]] {source.name} has no metric of Bedrock by model; check its answers and regions.")
    return call_records(source, named, warnings)


def _samples(answer: Any, place: Mapping[str, str], where: str) -> dict[Sample, int]:
    """The values of an answer; MalformedError for one of another form, and for labels that do not name a model."""
    samples: dict[Sample, int] = {}
    with reading(where):
        for result in answer["MetricDataResults"]:
            metric, _, model = str(result["Label"]).partition(" ")
            if metric not in _METRICS or not model:
                if metric and not model:
                    raise MalformedError(f"{where} has the label {metric[:80]!r}; save it as docs/serving.md shows.")
                continue
            for at, value in zip(result["Timestamps"], result["Values"], strict=True):
                moment = answers.moment({"Timestamps": at}, "Timestamps", where)
                if moment is None or moment > latest():
                    raise ValueError(f"{metric} at {at}")
                if not 0 <= value <= MOST:
                    raise ValueError(f"{metric} of {value:.3g}")
                key = (place["account_id"], place["region_id"], model, metric, moment)
                samples[key] = max(round(value), samples.get(key, 0))
    return samples


def found_answers(source: ServingSource, warnings: list[str], answered: Answered | None = None) -> Iterator[Answer]:
    """The saved answers of a location, or those of the API, which are kept in `answered`. A damaged file is skipped."""
    if source.location is None:
        answered = {} if answered is None else answered
        if source.name not in answered:
            regions = source.regions or (source.region,)
            answered[source.name] = [answer for region in regions for answer in _queried(source, region)]
        yield from answered[source.name]
        return
    store = open_store(source.location, **source.reach)
    others = []
    for item in store.list():
        where = store.uri(item.key)
        if place := _PLACE.search(item.key):
            try:
                with reading(where, "save it again"):
                    answer = parse_json(store.read(item.key))
            except MalformedError as error:
                warnings.append(f"{error} It is skipped.")
                continue
            yield where, place.groupdict(), answer
        else:
            others.append(item.key)
    warnings += skipped(store.location, others, "; name answers <account>/<region>/<name>.json")


def _queried(source: ServingSource, region: str | None) -> Iterator[Answer]:
    where = f"[[serving]] {source.name}"
    session, client = connect("cloudwatch", where, **{**source.reach, "region": region})
    where = f"{where}, {client.meta.region_name}"
    with requesting(where, "sts:GetCallerIdentity"):
        identity = session.client("sts", endpoint_url=source.endpoint_url).get_caller_identity()
        place = {"account_id": identity["Account"], "region_id": client.meta.region_name}
    with requesting(where, _PERMISSIONS):
        pages = client.get_paginator("list_metrics").paginate(Namespace=_NAMESPACE)
        listed = [metric["Dimensions"] for page in pages for metric in page["Metrics"]]
        # It lists what was called in the last two weeks; `models` has those that were called before.
        models = {one[0]["Value"] for one in listed if [part["Name"] for part in one] == ["ModelId"]} | {*source.models}
        wanted = [(metric, model) for model in sorted(models) for metric in _METRICS]
        for begin, end in _months(source):
            for first in range(0, len(wanted), _MOST_METRICS):
                queries = [_query(f"m{n}", *one) for n, one in enumerate(wanted[first : first + _MOST_METRICS])]
                paginator = client.get_paginator("get_metric_data")
                for page in paginator.paginate(MetricDataQueries=queries, StartTime=begin, EndTime=end):
                    yield where, place, answers.content(page)


def _query(name: str, metric: str, model: str) -> dict[str, Any]:
    of_model = {"Namespace": _NAMESPACE, "MetricName": metric, "Dimensions": [{"Name": "ModelId", "Value": model}]}
    return {
        "Id": name,
        "Label": f"{metric} {model}",
        "MetricStat": {"Metric": of_model, "Period": 3600, "Stat": "Sum"},
    }


def _months(source: ServingSource) -> Iterator[tuple[datetime, datetime]]:
    """The months of a source, the present one included."""
    now = datetime.now(UTC)
    begin = datetime.strptime(str(source.first_month), "%Y-%m").replace(tzinfo=UTC)
    last = min(source.last_month or "9999", f"{now:%Y-%m}")
    while f"{begin:%Y-%m}" <= last:
        following = (begin + timedelta(days=31)).replace(day=1)
        yield begin, min(following, now)
        begin = following
