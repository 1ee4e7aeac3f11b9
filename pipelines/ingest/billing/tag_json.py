"""All tags of a bill line as the text of one JSON object, under the keys FOCUS wants."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipelines.base.sql import identifier, quoted
from pipelines.ingest.billing.columns import TagKey, tag_containers
from pipelines.ingest.billing.tags import CATEGORY, bare, origin

_USER = re.compile(r"resourceTags/(user:)?(?!aws:)|user:", re.IGNORECASE)
_PROVIDER = re.compile(r"(resourceTags/)?aws:(?P<name>.+)", re.IGNORECASE)
# As the keys of a map and the names of Parquet columns are normalized.
_NORMALIZED = re.compile(r"(?P<origin>aws|user)_(?P<name>.+)")
# Characters that JSON escapes; AWS allows no control characters in a tag.
_ESCAPED = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def tag_json(tag_keys: Sequence[TagKey]) -> str:
    """A SELECT's expression: `{"RunId": "r-42", "aws:createdBy": "..."}`, NULL where no tag has a value.

    Keys of users are as they were written, where the export keeps that; AWS's own begin with `aws:`, those of
    accounts and principals with their origin. A tag that one export has in two columns is taken once. Cost categories
    are rules about a line, not tags of it.
    """
    pairs = []
    for tag in _once(tag_keys):
        value = identifier(tag.column) + (f"[{quoted(tag.key)}]" if tag.in_map else "")
        for sign, escape in _ESCAPED:
            value = f"replace({value}, {quoted(sign)}, {quoted(escape)})"
        pairs.append(f"{quoted(_quoted(focus_key(tag)) + ': ')} || '\"' || nullif({value}, '') || '\"'")
    if not pairs:
        return "cast(null as varchar)"
    return f"'{{' || nullif(concat_ws(', ', {', '.join(pairs)}), '') || '}}'"


def focus_key(tag: TagKey) -> str:
    """The key of a tag in FOCUS, whatever its spelling in the export."""
    provider = _PROVIDER.fullmatch(tag.key)
    if provider:
        return f"aws:{provider['name']}"
    normalized = _NORMALIZED.fullmatch(tag.key) if tag.container == "resource_tags" else None
    if normalized:
        return ("aws:" if normalized["origin"] == "aws" else "") + normalized["name"]
    return _USER.sub("", tag.key, count=1) if _USER.match(tag.key) else tag.key


def _once(tag_keys: Sequence[TagKey]) -> list[TagKey]:
    """Each tag from the column that keeps its key as it was written, else from the first that has it."""
    containers = sorted(tag_containers(), key=lambda name: name != "tags")
    found: dict[tuple[str, str], str] = {}
    for container in containers:
        for tag in tag_keys:
            if tag.container == container and origin(tag) != CATEGORY:
                found.setdefault((origin(tag), bare(tag.key)), container)
    chosen: dict[str, TagKey] = {}
    for tag in tag_keys:
        if found.get((origin(tag), bare(tag.key))) == tag.container:
            chosen.setdefault(focus_key(tag), tag)
    return [chosen[key] for key in sorted(chosen)]


def _quoted(key: str) -> str:
    for sign, escape in _ESCAPED:
        key = key.replace(sign, escape)
    return f'"{key}"'
