"""The configuration of an older version with the present names of its keys; comments and order stay."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.base.errors import UsageError
from pipelines.base.parse import ParseError, parse_toml
from pipelines.config.file import read_config
from pipelines.config.mistakes import RENAMED_KEYS, current_keys


@dataclass(frozen=True)
class RenamedConfig:
    """The text and content of a configuration with present names, and what was renamed, a phrase each."""

    text: str
    content: dict[str, Any]
    changes: tuple[str, ...]


def renamed_config(path: Path) -> RenamedConfig:
    """The configuration at `path` with every old key renamed; UsageError where that would change anything else."""
    _, content = read_config(path)
    text = path.read_text(encoding="utf-8")
    found = sorted(set(_old_keys(content)))
    for old in found:
        # A key stands before its value, or in the heading of its table.
        text = re.sub(rf"(?<![\w'\"-]){old}(?=\s*=|[\].])", RENAMED_KEYS[old], text)
    wanted = current_keys(content)
    try:
        renamed = parse_toml(text.encode())
    except ParseError:
        renamed = None
    if renamed != wanted:
        names = ", ".join(f"{old!r} to {RENAMED_KEYS[old]!r}" for old in found)
        raise UsageError(f"{path}: its keys cannot be renamed without changing values; rename by hand: {names}.")
    return RenamedConfig(text, wanted, tuple(f"key {old!r} is now {RENAMED_KEYS[old]!r}" for old in found))


def _old_keys(content: Any) -> Iterator[str]:
    if isinstance(content, Mapping):
        yield from (key for key in content if key in RENAMED_KEYS)
        content = list(content.values())
    if isinstance(content, list):
        for one in content:
            yield from _old_keys(one)
