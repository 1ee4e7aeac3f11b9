"""Capacity that AWS offers: answers of DescribeCapacityBlockOfferings and GetSpotPlacementScores.

An offering has its price and start. A placement score is AWS's chance, from 1 to 10, that a Spot request succeeds; its
answer leaves out what was requested, so saved ones need it added. Offers change by the hour, so of each source the
answers of the newest day count.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import polars as pl

from pipelines.base.aws import entries_of
from pipelines.base.errors import MalformedError
from pipelines.config.sources import AnswerSource, CapacityOfferSource
from pipelines.ingest.inventory import answers
from pipelines.ingest.inventory.answers import LEFT_OUT, Answers, Entry, Inventory, Row, kept, values_of
from pipelines.ingest.schema import schema

SCHEMA = schema(
    "source_name purchase_option instance_type region_id instance_count:count recorded_date:date started_at ended_at "
    "upfront_fee:money currency placement_score:count"
)
_BLOCKS, _SCORES = "CapacityBlockOfferings", "SpotPlacementScores"
_RECORDED = "RecordedDate"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?=[^/]*$)")
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+")


def read_offers(sources: Sequence[CapacityOfferSource], known_types: Mapping[str, str]) -> Inventory:
    """The offers of all sources; `known_types` are the instance types of the list. What is malformed is left out."""
    rows: list[Row] = []
    warnings: list[str] = []
    for source in sources:
        # An answer without an offer has a day too.
        days: set[date] = set()
        known = len(warnings)
        answered, read = ANSWERS.read(source, warnings), partial(_offers_in, days=days, warnings=warnings)
        # A malformed answer counts as of the day of its file, so that no older one becomes the newest.
        found = [*kept(answered, read, warnings, partial(_unread, days=days))]
        newest = [row for row in found if row["recorded_date"] == max(days)]
        if not newest and LEFT_OUT not in "".join(warnings[known:]):
            warnings.append(
                f"[[capacity_offers]] {source.name} contains no offer; check its location, or query another size."
            )
        rows += [row | {"source_name": source.name} for row in newest]
        unlisted = {row["instance_type"] for row in newest} - {*known_types}
        warnings += [
            f"[[capacity_offers]] {source.name}: {name} is not in ref_instance_type.csv, so its offers count for no "
            "workload; add it under [[machines]]."
            for name in unlisted
        ]
    return Inventory(pl.DataFrame(rows, schema=SCHEMA).sort(pl.all()), sorted(warnings))


def _queried(source: AnswerSource, warnings: list[str]) -> Iterator[tuple[str, Any]]:
    """The answers of AWS today, for each region and instance type."""
    assert isinstance(source, CapacityOfferSource)
    today = {_RECORDED: f"{datetime.now(UTC):%Y-%m-%d}"}
    for region in source.queried_regions:
        client = ANSWERS.client(source, "ec2", region)
        where = f"[[capacity_offers]] {source.name}, {client.meta.region_name}"
        for name in source.instance_types:
            block = {"InstanceType": name, "InstanceCount": source.instance_count}
            yield from _pages(
                client, "describe_capacity_block_offerings", where, _BLOCKS, today,
                **block, CapacityDurationHours=source.block_hours,
            )  # fmt: skip
            spot = {"InstanceTypes": [name], "TargetCapacity": source.instance_count}
            yield from _pages(
                client, "get_spot_placement_scores", where, _SCORES, today | spot,
                **spot, RegionNames=[client.meta.region_name],
            )  # fmt: skip


def _pages(client: Any, call: str, where: str, name: str, more: Entry, **request: Any) -> Iterator[tuple[str, Any]]:
    permission = f"ec2:{call.title().replace('_', '')}"
    yield f"{where} {permission}", {name: entries_of(client, call, name, where, permission, **request), **more}


ANSWERS = Answers("capacity_offers", (".json",), _queried)


def _day(answer: Entry, where: str) -> date:
    """The day an answer was given; MalformedError where its file is not named after one."""
    found = answer.get(_RECORDED) or (match[0] if (match := _DAY.search(where)) else "")
    try:
        return date.fromisoformat(found)
    except ValueError:
        raise MalformedError(
            f"{where} is not named after the day of its answer; rename it, such as 2026-11-20-p5.json."
        ) from None


def _unread(where: str, days: set[date]) -> Iterator[Row]:
    """No offer; the day of a malformed answer is added to `days`."""
    with suppress(MalformedError):
        days.add(_day({}, where))
    yield from ()


def _offers_in(answer: Any, where: str, days: set[date], warnings: list[str]) -> Iterator[Row]:
    """The offers of one answer, whose day is added to `days`; MalformedError naming `where` and the field at fault."""
    if not isinstance(answer, Mapping) or not {_BLOCKS, _SCORES} & answer.keys():
        raise MalformedError(
            f"{where} has neither {_BLOCKS} (describe-capacity-block-offerings) nor {_SCORES} "
            "(get-spot-placement-scores); save the answer of one of those calls."
        )
    read = {_BLOCKS: _block}
    if _SCORES in answer:
        types = answer.get("InstanceTypes")
        if not isinstance(types, list) or not types or not all(isinstance(name, str) for name in types):
            raise MalformedError(
                f"{where} has no InstanceTypes and TargetCapacity, which AWS's answer leaves out; add those of the "
                "request."
            )
        count = answers.count(answer, "TargetCapacity", where)
        read[_SCORES] = partial(_scores, types, count)
    day = _day(answer, where)
    days.add(day)
    for name in read.keys() & answer.keys():
        for row in kept(answers.entries(answer, name, where), read[name], warnings):
            # East of UTC, a block that starts now starts on the day before.
            if "started_at" in row and (began := row["started_at"].date()) < day - timedelta(days=1):
                raise MalformedError(f"{where} has an offer of {began}; name it after the day of its answer.")
            yield row | {"recorded_date": day}


def _scores(types: Sequence[str], count: int | None, entry: Entry, where: str) -> Iterator[Row]:
    score = answers.count(entry, "Score", where, "points", 10)
    if score == 0:
        raise MalformedError(f"{where} has the Score 0; AWS gives 1 to 10, so save its answer as it came.")
    for name in types:
        yield {
            "purchase_option": "spot",
            "instance_type": name,
            "region_id": answers.text(entry, "Region"),
            "instance_count": count,
            "placement_score": score,
        }


def _block(entry: Entry, where: str) -> Iterator[Row]:
    names = {"instance_type": "InstanceType", "instance_count": "InstanceCount", "started_at": "StartDate"}
    names |= {"ended_at": "EndDate", "upfront_fee": "UpfrontFee", "currency": "CurrencyCode"}
    row = values_of(entry, where, SCHEMA, **names)
    if lacking := [field for name, field in names.items() if not row[name]]:
        raise MalformedError(f"{where} has no {lacking[0]}; save the whole answer.")
    if row["ended_at"] <= row["started_at"]:
        raise MalformedError(f"{where} ends at {row['ended_at']}, not after it starts; save the whole answer.")
    zone = _REGION.match(answers.text(entry, "AvailabilityZone") or "")
    yield row | {"purchase_option": "capacity_block", "region_id": zone[0] if zone else None}
