"""The logs that training runs were read from: into a pack as they lie, and out of it to be read again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.base.address import redacted
from pipelines.base.errors import shown
from pipelines.config.settings import RunSource, Settings
from pipelines.evidence.archive import Pack
from pipelines.evidence.inputs import INPUTS
from pipelines.ingest.runs.records import open_run_store
from pipelines.ingest.runs.tracker import read_all, runs_fingerprint
from pipelines.warehouse.lake import Publication

RUNS = "runs"
# Kinds that are folders of logs; the others are queried, or are folders of checkpoints.
_LOGS = ("events", "kubernetes", "mllog", "slurm")
_PLAIN = re.compile(r"[\w@=+:,. /-]+")
Logs = dict[str, dict[str, bytes]]


def run_logs(settings: Settings, publication: Publication) -> Logs:
    """The files of each source of logs that is as it was when it was read, by source and key."""
    named = publication.inputs["runs"]
    logs: Logs = {}
    for source in settings.runs:
        if source.kind in _LOGS and source.name in named and runs_fingerprint(source) == named[source.name]:
            store = open_run_store(source)
            keys = [item.key for item in store.list()]
            if all(map(_PLAIN.fullmatch, keys)):
                logs[source.name] = {key: store.read(key) for key in keys}
    return logs


def recorded_runs(settings: Settings, publication: Publication, logs: Logs) -> list[dict[str, Any]]:
    """Every source of runs; of logs each file, null where they are no logs or have changed since they were read."""
    return [
        {
            **source.model_dump(mode="json", exclude={"profile"}),
            "location": redacted(source.location),
            "endpoint_url": redacted(source.endpoint_url),
            "state": publication.inputs["runs"].get(source.name),
            "files": _files(source, logs[source.name]) if source.name in logs else None,
        }
        for source in settings.runs
    ]


def log_members(logs: Logs) -> dict[str, bytes]:
    """The logs as members of a pack."""
    return {log_member(name, key): content for name, files in logs.items() for key, content in files.items()}


def log_member(source: str, key: str) -> str:
    """The member that holds a log of a source of runs."""
    return f"{RUNS}/{source}/{key}"


def read_again(pack: Pack, inputs: Mapping[str, Any], place: Path) -> dict[str, pl.DataFrame] | None:
    """The records of the runs by table, read from the logs in a pack; None where it does not have those of all."""
    if not inputs["runs"] or any(source["files"] is None for source in inputs["runs"]):
        return None
    sources = []
    for source in inputs["runs"]:
        folder = pack.path_below(place, source["name"])
        try:
            folder.mkdir(parents=True)
            sources.append(RunSource(**{**_settings_of(source), "location": str(folder), "endpoint_url": None}))
        except (FileExistsError, ValueError):
            raise pack.malformed(f"source {shown(source['name'])} of {INPUTS}") from None
        for file in source["files"]:
            pack.extract(log_member(source["name"], file["key"]), folder, file["key"])
    return read_all(sources).tables


def _settings_of(source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name in RunSource.model_fields}


def _files(source: RunSource, files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    store = open_run_store(source)
    return [
        {
            "key": key,
            "uri": redacted(store.uri(key)),
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        for key, content in files.items()
    ]
