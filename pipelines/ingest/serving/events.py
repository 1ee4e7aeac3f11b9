"""Serving events: JSON lines that servers write themselves, in files as those of run events."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pipelines.base.errors import MalformedError
from pipelines.base.limits import MOST, MOST_ACCELERATORS
from pipelines.config.mistakes import fix_of
from pipelines.config.sources import ServingSource
from pipelines.ingest.json_lines import by_suffix, lines_of_file
from pipelines.ingest.schema import FUTURE, latest
from pipelines.ingest.serving.records import EARLIEST, Row, ServingRecords, records
from pipelines.warehouse.stores import open_store


def _naive(moment: datetime) -> datetime:
    is_early = moment < EARLIEST.replace(tzinfo=UTC)
    if is_early or moment > latest().replace(tzinfo=UTC):
        when = f"before {EARLIEST.year}" if is_early else FUTURE
        raise ValueError(f"the time is {moment}, {when}; correct the clock of the server")
    return moment.astimezone(UTC).replace(tzinfo=None)


_At = Annotated[AwareDatetime, AfterValidator(_naive)]
_Text = Annotated[str, Field(min_length=1)]
_Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, le=MOST)]


class _Event(BaseModel):
    # Other keys, such as the texts of requests, are never read.
    model_config = ConfigDict(extra="ignore", frozen=True)
    server_id: _Text


class ServerStarted(_Event):
    event: Literal["server_started"]
    at: _At
    model: _Text
    resource: _Text
    precision: str | None = None
    engine: str | None = None
    instance_type: str | None = None
    account_id: str | None = None
    region: str | None = None
    accelerators_used: Annotated[int, Field(gt=0, le=MOST_ACCELERATORS)] | None = None
    max_tokens_per_second: Annotated[float, Field(gt=0, le=MOST, allow_inf_nan=False)] | None = None
    team: str | None = None
    evidence: Literal["imds", "api", "nodemap"] = "imds"


class Traffic(_Event):
    event: Literal["traffic"]
    started_at: _At = Field(alias="from")
    ended_at: _At = Field(alias="to")
    request_count: _Count = Field(alias="requests")
    input_tokens: _Count | None = None
    cache_read_tokens: _Count = Field(default=0, alias="cached_input_tokens")
    output_tokens: _Count | None = None
    error_count: _Count | None = Field(default=None, alias="errors")
    running_count: _Seconds | None = Field(default=None, alias="running")
    waiting_count: _Seconds | None = Field(default=None, alias="waiting")
    ttft_p90_seconds: _Seconds | None = Field(default=None, alias="ttft_p90")
    itl_p90_seconds: _Seconds | None = Field(default=None, alias="itl_p90")


class ServerStopped(_Event):
    event: Literal["server_stopped"]
    at: _At


_EVENT: TypeAdapter[ServerStarted | Traffic | ServerStopped] = TypeAdapter(
    Annotated[ServerStarted | Traffic | ServerStopped, Field(discriminator="event")]
)


def read(source: ServingSource) -> ServingRecords:
    """The servers and traffic of all event files of a source. A line that is wrong is skipped, with a warning."""
    warnings: list[str] = []
    events = [*_events(source, warnings)]
    models = {event.server_id: event.model for event in events if isinstance(event, ServerStarted)}
    traffic = [
        event.model_dump(exclude={"event"}) | {"model": models.get(event.server_id)}
        for event in events
        if isinstance(event, Traffic)
    ]
    return records(source, _servers(events, warnings), traffic, warnings)


def _events(source: ServingSource, warnings: list[str]) -> Iterator[ServerStarted | Traffic | ServerStopped]:
    store = open_store(str(source.location), **source.reach)
    objects, _ = by_suffix(store.list())
    if not objects:
        warnings.append(f"{store.location} has no event file (.jsonl, .jsonl.gz); check `location`.")
    for item in objects:
        where = store.uri(item.key)
        try:
            for number, line in enumerate(lines_of_file(item.key, store.read(item.key), where), start=1):
                if line.strip() and (event := _event(line, f"{where} line {number}", warnings)):
                    yield event
        except MalformedError as error:
            warnings.append(f"{error} What follows in the file is not counted.")


def _event(line: bytes, where: str, warnings: list[str]) -> ServerStarted | Traffic | ServerStopped | None:
    try:
        event = _EVENT.validate_json(line)
        if isinstance(event, Traffic) and event.ended_at <= event.started_at:
            raise ValueError("write a `to` that is after `from`")
        return event
    except ValueError as error:
        warnings.append(f"{where}: {_fix(error)}. Until then it is skipped.")
        return None


def _fix(error: ValueError) -> str:
    """How to fix a line, without its content."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False, include_url=False)[0]
    if first["type"] == "json_invalid":
        return "it is not JSON; write it whole"
    # The first part of a place is the kind of event.
    key = ".".join(str(part) for part in first["loc"][1:])
    fix = fix_of(first["type"], first["msg"])
    return f"key {key!r}: {fix}" if key else "key 'event': write 'server_started', 'traffic' or 'server_stopped'"


def _servers(events: list[Any], warnings: list[str]) -> list[Row]:
    """The starts of servers, each with the first stop after it."""
    stops: dict[str, list[datetime]] = {}
    for event in events:
        if isinstance(event, ServerStopped):
            stops.setdefault(event.server_id, []).append(event.at)
    found = []
    for start in (event for event in events if isinstance(event, ServerStarted)):
        after = [at for at in stops.get(start.server_id, ()) if at >= start.at]
        row = start.model_dump(exclude={"event", "at", "resource", "region"})
        names = {"resource_id": start.resource, "region_id": start.region, "started_at": start.at}
        found.append(row | names | {"stopped_at": min(after, default=None)})
    started = {row["server_id"] for row in found}
    warnings += [
        f"Server {name} has a stop and no start; record server_started." for name in sorted({*stops} - started)
    ]
    return found
