"""What a manifest says, once it is known to be one: nothing of it is taken that AWS would not have written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pipelines.base.errors import SourceError
from pipelines.base.parse import ParseError, parse_json
from pipelines.ingest.billing.delivery import Kind


@dataclass(frozen=True)
class Content:
    """The files a manifest names as it spells them, their bucket, and its columns if it lists them."""

    kind: Kind
    delivery_id: str
    names: tuple[str, ...]
    bucket: str | None
    columns: tuple[str, ...]


def read_content(text: str, period: str, where: str) -> Content:
    """The content of the manifest `where`, which lies in the folder of `period` (YYYY-MM).

    Raises SourceError when it is no manifest, or one of another month.
    """
    try:
        content = parse_json(text)
    except ParseError as error:
        raise SourceError(f"{where} {error}; fetch it from the export again.") from None
    if not isinstance(content, dict):
        raise SourceError(f"{where} is not a JSON object; fetch the manifest from the export again.")
    names = content.get("dataFiles", content.get("reportKeys"))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SourceError(f"{where} has no list dataFiles or reportKeys of file names; it is no billing manifest.")
    delivery_id = content.get("executionId") or content.get("assemblyId")
    if not isinstance(delivery_id, str):
        raise SourceError(f"{where} has neither executionId nor assemblyId; fetch it from the export again.")
    if not delivery_id.isprintable() or not delivery_id.strip():
        raise SourceError(
            f"{where} has the delivery id {delivery_id!a}, which is no name; fetch it from the export again."
        )
    _check_period(content.get("billingPeriod"), period, where)
    kind = "cur2" if "dataFiles" in content else "cur"
    return Content(kind, delivery_id, tuple(names), content.get("bucket") or None, _columns(content, where))


def _check_period(told: Any, period: str, where: str) -> None:
    """A legacy manifest says its period by two dates; one of Data Exports says none."""
    start, end = (told.get("start"), told.get("end")) if isinstance(told, dict) else (None, None)
    first, after = (re.sub(r"\D", "", at)[:8] if isinstance(at, str) else "" for at in (start, end))
    if first and f"{first[:4]}-{first[4:6]}" != period:
        raise SourceError(
            f"{where} is for the billing period from {start} but lies in the folder of {period}; "
            "put it back where the export wrote it."
        )
    if first and after and after <= first:
        raise SourceError(f"{where} is for a billing period from {start} to {end}; fetch it from the export again.")


def _columns(content: dict, where: str) -> tuple[str, ...]:
    columns = content.get("columns") or []
    if not isinstance(columns, list) or not all(isinstance(column, dict) for column in columns):
        raise SourceError(f"{where} has `columns` that are no list of columns; fetch it from the export again.")
    return tuple(
        f"{column['category']}/{column.get('name')}" if column.get("category") else str(column.get("name"))
        for column in columns
    )
