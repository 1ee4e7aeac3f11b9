"""One tag, five spellings: which keys of a delivered file name a run, an owner or a team, and all tags of a line."""

import json
import re
import unicodedata
from collections.abc import Sequence

from pipelines.base.sql import identifier, quoted
from pipelines.ingest.billing.columns import RawFile, TagKey, tag_containers

# The origin of a tag: the resource, who called, its account or a cost category (aws-billing 1.3, standards-2026 3).
RESOURCE, CALLER, ACCOUNT, CATEGORY = "resource", "caller", "account", "cost category"
_ORIGINS = (
    (RESOURCE, re.compile(r"resourceTags/(user:)?|user[:_]", re.IGNORECASE)),
    (CALLER, re.compile(r"(iamPrincipal|userAttribute)/", re.IGNORECASE)),
    (ACCOUNT, re.compile(r"accountTag/", re.IGNORECASE)),
    (CATEGORY, re.compile(r"costCategory/", re.IGNORECASE)),
)
_CATEGORIES = "cost_category"
# A caller, a whole account or category has an owner and a team, but never one run.
FALLBACKS = {"run_id": (RESOURCE,), **dict.fromkeys(("owner", "team"), (RESOURCE, CALLER, ACCOUNT, CATEGORY))}
_USER = re.compile(r"resourceTags/(user:)?(?!aws:)|user:", re.IGNORECASE)
_PROVIDER = re.compile(r"(resourceTags/)?aws:(?P<name>.+)", re.IGNORECASE)
# As the keys of a map and the names of Parquet columns are normalized.
_NORMALIZED = re.compile(r"(?P<origin>aws|user)_(?P<name>.+)")
# Characters that JSON escapes; AWS allows no control characters in a tag.
_ESCAPED = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def bare(key: str) -> str:
    """A key without its export's prefix, in lower case, letters and digits only: `user:Run_ID` -> `runid`."""
    prefix = next((prefix for _, prefix in _ORIGINS if prefix.match(key)), None)
    return _plain(prefix.sub("", key, count=1) if prefix else key)


def origin(tag: TagKey) -> str:
    """The origin of a tag: the resource, who called, its account or a cost category."""
    if tag.container == _CATEGORIES:
        return CATEGORY
    return next((name for name, prefix in _ORIGINS if prefix.match(tag.key)), RESOURCE)


def is_of_caller(key: str) -> bool:
    """Whether a cost allocation tag, as AWS lists it, is of who called: `user:iamPrincipal/team`."""
    return bool(dict(_ORIGINS)[CALLER].match(key.removeprefix("user:")))


def lookups(tag_keys: Sequence[TagKey], accepted: Sequence[str], origins: Sequence[str] = (RESOURCE,)) -> list[TagKey]:
    """The keys of a file that the accepted ones stand for, in the order to try them on each line.

    All tags of the first of `origins` are tried before those of the next. An accepted key may name its own origin
    (`costCategory/Team`), which is then tried in its turn among the first. Where one export has a tag in two
    columns, the first kind of column that has it is taken.
    """
    chosen: dict[TagKey, None] = {}
    for current in origins:
        for wanted in accepted:
            named = next((name for name, prefix in _ORIGINS[1:] if prefix.match(wanted)), None)
            home = current if named is None else named if current == origins[0] else None
            chosen.update(dict.fromkeys(_found([tag for tag in tag_keys if origin(tag) == home], wanted)))
    return list(chosen)


def spellings(file: RawFile, name: str, tried: Sequence[TagKey]) -> list[str]:
    """A warning for each key of a file that occurs in several spellings."""
    found: dict[tuple[str, str], list[str]] = {}
    for tag in tried:
        found.setdefault((origin(tag), bare(tag.key)), []).append(tag.key)
    return [
        f"{file.key}: the tags {' and '.join(keys)} are one key for {name}; each line takes the first that is filled. "
        "Use one spelling."
        for keys in found.values()
        if len(keys) > 1
    ]


def _found(tag_keys: Sequence[TagKey], wanted: str) -> list[TagKey]:
    # A tag may itself be called user_name: the whole key is tried before the key without a prefix.
    for name in dict.fromkeys((_plain(wanted), bare(wanted))):
        found = [tag for tag in tag_keys if name and bare(tag.key) == name]
        homes = [home for home in tag_containers() if any(tag.container == home for tag in found)]
        if found:
            return [tag for tag in found if tag.container == homes[0]]
    return []


def _plain(key: str) -> str:
    # One letter may be written in several ways: é as one character or as e and an accent.
    return "".join(letter for letter in unicodedata.normalize("NFKC", key).lower() if letter.isalnum())


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
        pairs.append(
            f"{quoted(json.dumps(focus_key(tag), ensure_ascii=False) + ': ')} || '\"' || nullif({value}, '') || '\"'"
        )
    if not pairs:
        return "cast(null as varchar)"
    return f"'{{' || nullif(concat_ws(', ', {', '.join(pairs)}), '') || '}}'"


def focus_key(tag: TagKey) -> str:
    """The key of a tag in FOCUS, whatever its spelling in the export."""
    if provider := _PROVIDER.fullmatch(tag.key):
        return f"aws:{provider['name']}"
    if tag.container == "resource_tags" and (normalized := _NORMALIZED.fullmatch(tag.key)):
        return ("aws:" if normalized["origin"] == "aws" else "") + normalized["name"]
    return _USER.sub("", tag.key, count=1) if _USER.match(tag.key) else tag.key


def _once(tag_keys: Sequence[TagKey]) -> list[TagKey]:
    """Each tag from the column that keeps its key as it was written, else from the first that has it."""
    order = sorted(tag_containers(), key=lambda name: name != "tags")
    found: dict[tuple[str, str], str] = {}
    for tag in sorted(tag_keys, key=lambda tag: order.index(tag.container)):
        if origin(tag) != CATEGORY:
            found.setdefault((origin(tag), bare(tag.key)), tag.container)
    chosen: dict[str, TagKey] = {}
    for tag in tag_keys:
        if found.get((origin(tag), bare(tag.key))) == tag.container:
            chosen.setdefault(focus_key(tag), tag)
    return [chosen[key] for key in sorted(chosen)]
