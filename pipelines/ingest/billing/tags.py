"""One tag, five spellings: which keys of a delivered file name a run, an owner or a team."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from pipelines.ingest.billing.columns import tag_containers
from pipelines.ingest.billing.stored_file import RawFile, TagKey

# Where a tag was put: on the resource, else on its account, else by a cost category rule (facts aws-billing 1.3).
RESOURCE, ACCOUNT, CATEGORY = "resource", "account", "cost category"
_ORIGINS = (
    (RESOURCE, re.compile(r"resourceTags/(user:)?|user[:_]", re.IGNORECASE)),
    (ACCOUNT, re.compile(r"accountTag/", re.IGNORECASE)),
    (CATEGORY, re.compile(r"costCategory/", re.IGNORECASE)),
)
_CATEGORIES = "cost_category"
# A whole account or category is somebody's, but never one run.
FALLBACKS = {"run_id": (RESOURCE,), "owner": (RESOURCE, ACCOUNT, CATEGORY), "team": (RESOURCE, ACCOUNT, CATEGORY)}


def bare(key: str) -> str:
    """A key without its export's prefix, in lower case, letters and digits only: `user:Run_ID` -> `runid`."""
    for _, prefix in _ORIGINS:
        if prefix.match(key):
            return _plain(prefix.sub("", key, count=1))
    return _plain(key)


def origin(tag: TagKey) -> str:
    """Where a tag was put: on the resource, on its account or by a cost category."""
    if tag.container == _CATEGORIES:
        return CATEGORY
    return next((name for name, prefix in _ORIGINS if prefix.match(tag.key)), RESOURCE)


def lookups(tag_keys: Sequence[TagKey], accepted: Sequence[str], origins: Sequence[str] = (RESOURCE,)) -> list[TagKey]:
    """The keys of a file that the accepted ones stand for, in the order to try them on each line.

    All tags of the first of `origins` are tried before those of the next. An accepted key may name its own origin
    (`costCategory/Team`), which is then tried in its turn among the first. Where one export says a tag in two
    columns, the first kind of column that has it is taken.
    """
    chosen: dict[TagKey, None] = {}
    for place in origins:
        for wanted in accepted:
            named = next((name for name, prefix in _ORIGINS[1:] if prefix.match(wanted)), None)
            home = place if named is None else named if place == origins[0] else None
            chosen.update(dict.fromkeys(_found([tag for tag in tag_keys if origin(tag) == home], wanted)))
    return list(chosen)


def twins(file: RawFile, name: str, tried: Sequence[TagKey]) -> list[str]:
    """A warning for each set of different keys of a file that are one key but for its spelling."""
    spellings: dict[tuple[str, str], list[str]] = {}
    for tag in tried:
        spellings.setdefault((origin(tag), bare(tag.key)), []).append(tag.key)
    return [
        f"{file.key}: the tags {' and '.join(keys)} are one name for {name}; each line takes the first that is filled."
        for keys in spellings.values()
        if len(keys) > 1
    ]


def _found(tag_keys: Sequence[TagKey], wanted: str) -> list[TagKey]:
    # A tag may itself be called user_name: the words as given come before the words without a prefix.
    for name in dict.fromkeys((_plain(wanted), bare(wanted))):
        found = [tag for tag in tag_keys if name and bare(tag.key) == name]
        homes = [home for home in tag_containers() if any(tag.container == home for tag in found)]
        if found:
            return [tag for tag in found if tag.container == homes[0]]
    return []


def _plain(key: str) -> str:
    # One letter may be written in several ways: é as one sign or as e and an accent.
    return "".join(letter for letter in unicodedata.normalize("NFKC", key).lower() if letter.isalnum())
