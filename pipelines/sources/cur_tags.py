"""One tag, five spellings: which keys of a delivered file name a run, an owner or a team."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipelines.sources.cur_columns import tag_containers
from pipelines.sources.cur_delivery import RawFile, TagKey

_PREFIX = re.compile(r"resourceTags/(user:)?|user[:_]", re.IGNORECASE)


def bare(key: str) -> str:
    """A key without its export's prefix, in lower case, letters and digits only: `user:Run_ID` -> `runid`."""
    return _plain(_PREFIX.sub("", key, count=1) if _PREFIX.match(key) else key)


def lookups(tag_keys: Sequence[TagKey], accepted: Sequence[str]) -> list[TagKey]:
    """The keys of a file that the accepted ones stand for, in the order to try them on each line.

    Where one export says a tag in two columns, the first kind of column that has it is taken.
    """
    chosen: dict[TagKey, None] = {}
    for wanted in accepted:
        # A tag may itself be called user_name: the words as given come before the words without a prefix.
        for name in dict.fromkeys((_plain(wanted), bare(wanted))):
            found = [tag for tag in tag_keys if name and bare(tag.key) == name]
            homes = [home for home in tag_containers() if any(tag.container == home for tag in found)]
            if found:
                chosen.update(dict.fromkeys(tag for tag in found if tag.container == homes[0]))
                break
    return list(chosen)


def twins(file: RawFile, name: str, tried: Sequence[TagKey]) -> list[str]:
    """A warning for each set of different keys of a file that are one key but for its spelling."""
    spellings: dict[str, list[str]] = {}
    for tag in tried:
        spellings.setdefault(bare(tag.key), []).append(tag.key)
    return [
        f"{file.key}: the tags {' and '.join(keys)} are one name for {name}; each line takes the first that is filled."
        for keys in spellings.values()
        if len(keys) > 1
    ]


def _plain(key: str) -> str:
    return "".join(letter for letter in key.lower() if letter.isalnum())
