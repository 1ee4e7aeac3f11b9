"""MLPerf logs: the `:::MLLOG` lines of files below a folder, one run a file (facts training-runs 1.11).

They tell times to the millisecond, the benchmark, epochs or blocks and evaluations. They do not tell which machine was
billed, nor who ran it; set-up before `run_start` is outside the score and on the bill, so it is in the run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pipelines.base.errors import SourceError
from pipelines.base.parse import parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.clean import MALFORMED, moment_of, telling
from pipelines.ingest.runs.records import RunRecords, listed_state, open_run_store, records

state = listed_state

_MARK = ":::MLLOG "
_SUFFIXES = (".txt", ".log", ".out")
_STATUS = {"success": "completed", "aborted": "failed"}
# Their `epoch_num` counts tokens (facts training-runs 1.11).
_COUNTS_TOKENS = ("gpt3",)
_SCORES = {"eval_accuracy": "eval_accuracy", "eval_error": "eval_error"}
# Interval keys and the phase they are; what lies between is training.
_PHASES = {"init": "init", "eval": "eval", "staging": "restore"}


def read(source: RunSource) -> RunRecords:
    """One run per log file that has MLLOG lines; its id is the file's path."""
    store = open_run_store(source)
    rows: dict[str, list[dict[str, Any]]] = {}
    warnings: list[str] = []
    files = [item.key for item in store.list() if item.key.endswith(_SUFFIXES)]
    for key in sorted(files, key=_natural):
        lines = list(_lines(store.read(key).decode("utf-8", "replace"), store.uri(key), warnings))
        if not lines:
            warnings.append(f"{store.uri(key)} has no line that starts with {_MARK.strip()}; it is passed over.")
            continue
        with telling(store.uri(key)):
            for table, found in _run(key, lines, warnings, store.uri(key)).items():
                rows.setdefault(table, []).extend(found)
    if not files:
        warnings.append(f"{store.location} holds no log file ({', '.join(_SUFFIXES)}): no run is recorded there yet.")
    return records(source, rows, warnings)


def _natural(key: str) -> list[int | str]:
    """result_2 comes before result_10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", key)]


def _lines(text: str, where: str, warnings: list[str]) -> Iterable[dict[str, Any]]:
    whole = text.splitlines()
    for number, line in enumerate(whole, start=1):
        _, mark, told = line.partition(_MARK)
        if not mark:
            continue
        try:
            entry = parse_json(told)
            entry["at"] = moment_of(entry["time_ms"] / 1000)
            entry["metadata"] = entry.get("metadata") or {}
            entry["key"].lower()
        except MALFORMED:
            if number == len(whole):
                warnings.append(f"{where}: the last line is cut short and left out.")
                continue
            raise SourceError(
                f"{where}, line {number} is no MLLOG entry with key and time_ms; mend or remove it."
            ) from None
        yield entry


def _run(key: str, lines: list[dict[str, Any]], warnings: list[str], where: str) -> dict[str, list[dict[str, Any]]]:
    run_id = key.rpartition(".")[0]
    told = {entry["key"]: entry for entry in reversed(lines)}
    stop = told.get("run_stop")
    status = _STATUS.get(str(stop["metadata"].get("status"))) if stop else None
    started_at, last_at = min(e["at"] for e in lines), max(e["at"] for e in lines)
    if stop is None:
        warnings.append(f"{where} has no run_stop: whether the run reached its target is unknown.")

    def value(name: str) -> Any:
        return told[name]["value"] if name in told else None

    scores = [entry for entry in lines if entry["key"] in _SCORES and _is_number(entry["value"])]
    metric = scores[0]["key"] if scores else None
    target = value("target_accuracy") or value("target_error")
    attempt = {"run_id": run_id, "attempt_no": 1}
    return {
        "run": [
            {
                "run_id": run_id,
                "source_system": "mllog",
                "model": value("submission_benchmark"),
                "experiment": value("submission_platform"),
                "owner": value("submission_org"),
                "global_batch_samples": value("global_batch_size"),
                "dataset_samples": value("train_samples"),
                **_epoch_unit(lines, value("submission_benchmark")),
                "seq_len": value("max_sequence_length"),
                "purpose": "benchmark",
                "target_metric": metric if target is not None else None,
                "target_value": float(target) if metric and target is not None else None,
                "target_direction": _direction(scores, float(target), status)
                if metric and target is not None
                else None,
                "status": status,
                "started_at": started_at,
                "ended_at": last_at if stop else None,
                "last_seen_at": last_at,
            }
        ],
        "attempt": [
            attempt
            | {
                "started_at": started_at,
                "ended_at": last_at if stop else None,
                "end_reason": "completed" if status == "completed" else None,
                "last_seen_at": last_at,
            }
        ],
        "phase": [attempt | phase for phase in _phases(lines)],
        "epoch": [attempt | epoch for epoch in _epochs(lines, value("submission_benchmark"))],
        "evaluation": [
            attempt
            | {
                "metric": _SCORES[entry["key"]],
                "value": float(entry["value"]),
                "step": _step(entry),
                "evaluated_at": entry["at"],
            }
            for entry in lines
            # A value that is no number was measured all the same: it ends a row of passes.
            if entry["key"] in _SCORES and isinstance(entry["value"], int | float)
        ],
    }


def _direction(scores: list[dict[str, Any]], target: float, status: str | None) -> str:
    """`eval_accuracy` may hold a loss (llama2_70b_lora): what a run that says success came to is on the good side."""
    is_above = float(scores[-1]["value"]) >= target
    if status is None:
        return "min" if scores[-1]["key"] == "eval_error" else "max"
    return "max" if is_above == (status == "completed") else "min"


def _phases(lines: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    open_at: dict[str, datetime] = {}
    trains_from = next((entry["at"] for entry in lines if entry["key"] == "run_start"), None)
    for entry in lines:
        name, _, edge = entry["key"].rpartition("_")
        phase = _PHASES.get(name)
        if phase is None and entry["key"] != "run_stop":
            continue
        if edge == "start":
            open_at[name] = entry["at"]
            if trains_from is not None and name == "eval":
                yield {"phase": "train", "started_at": trains_from, "ended_at": entry["at"]}
                trains_from = None
        elif name in open_at:
            yield {"phase": phase, "started_at": open_at.pop(name), "ended_at": entry["at"]}
            trains_from = entry["at"] if name == "eval" else trains_from
        if entry["key"] == "run_stop" and trains_from is not None and entry["at"] > trains_from:
            yield {"phase": "train", "started_at": trains_from, "ended_at": entry["at"]}
            trains_from = None


def _epoch_unit(lines: list[dict[str, Any]], benchmark: Any) -> dict[str, Any]:
    """Whether its epochs are passes over the data, or blocks: of tokens in gpt3, else of samples."""
    if any(entry["key"] == "epoch_stop" for entry in lines) or all(entry["key"] != "block_stop" for entry in lines):
        return {}
    sizes = (entry["metadata"].get("epoch_count") for entry in lines if entry["key"] == "block_start")
    if benchmark in _COUNTS_TOKENS:
        return {
            "epoch_unit": "token_block",
            "epoch_unit_size": next((size for size in sizes if _is_number(size)), None),
        }
    return {"epoch_unit": "sample_block"}


def _tokens(stop: dict[str, Any], start: dict[str, Any] | None) -> float | None:
    """Tokens at the end of a gpt3 block: where `epoch_num` says so, else its start and its length."""
    if _is_number(stop["metadata"].get("epoch_num")):
        return stop["metadata"]["epoch_num"]
    begun = start["metadata"] if start else {}
    place, size = begun.get("first_epoch_num"), begun.get("epoch_count")
    return float(place + size) if isinstance(place, int | float) and isinstance(size, int | float) else None


def _epochs(lines: list[dict[str, Any]], benchmark: Any) -> Iterable[dict[str, Any]]:
    """Epochs where the log has them, else its blocks, numbered from 1 in the order they ended."""
    for unit in ("epoch", "block"):
        stops = [entry for entry in lines if entry["key"] == f"{unit}_stop"]
        if not stops:
            continue
        starts = [entry for entry in lines if entry["key"] == f"{unit}_start"]
        # Starts and stops may interleave: they belong together by their place in the run, else by their order.
        by_place = {_place(entry): entry for entry in starts}
        for number, entry in enumerate(stops, start=1):
            in_turn = starts[number - 1] if number <= len(starts) else None
            start = by_place.get(_place(entry), in_turn) if _place(entry) else in_turn
            yield {
                "epoch_index": number,
                "started_at": start["at"] if start else None,
                "completed_at": entry["at"],
                "step": entry["metadata"].get("step_num"),
                "samples_seen": entry["metadata"].get("samples_count"),
                "tokens_seen": _tokens(entry, start) if benchmark in _COUNTS_TOKENS else None,
            }
        return


def _place(entry: dict[str, Any]) -> Any:
    return entry["metadata"].get("epoch_num") or entry["metadata"].get("first_epoch_num")


def _step(entry: dict[str, Any]) -> int | None:
    step = entry["metadata"].get("step_num")
    return step if isinstance(step, int) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
