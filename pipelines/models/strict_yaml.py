"""YAML as our contracts are written: one mapping, every key of it once."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from pipelines.base.errors import UsageError


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping in a file; empty where the file is. UsageError names the file and the line that is wrong."""
    try:
        body = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path} line {mark.line + 1}" if mark else path
        raise UsageError(f"{where} is not YAML as we write it: {getattr(error, 'problem', error)}.") from None
    if body is not None and not isinstance(body, dict):
        raise UsageError(f"{path} is not a mapping; see another contract for the form.")
    return body or {}


class _Loader(yaml.CSafeLoader):
    """Refuses a key written twice, of which YAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                problem = f"the key {key.value} is written a second time"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)
