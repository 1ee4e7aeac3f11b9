"""MLPerf logs: the `:::MLLOG` lines of files below a folder, one run a file (facts training-runs 1.11).

They have times to the millisecond, the benchmark, epochs or blocks and evaluations, but neither instances nor owners.
Set-up before `run_start` is outside the score and on the bill, so it is part of the run here.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pipelines.base.errors import MalformedError
from pipelines.base.parse import MALFORMED, parse_json
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.records import Row, RunRecords, RunRows, Tables, open_run_store
from pipelines.ingest.schema import moment_of
from pipelines.warehouse.storage import Store

_MARK = ":::MLLOG "
_SUFFIXES = (".txt", ".log", ".out")
_STATUS = {"success": "completed", "aborted": "failed"}
# Their `epoch_num` counts tokens (facts training-runs 1.11).
_COUNTS_TOKENS = ("gpt3",)
_SCORES = ("eval_accuracy", "eval_error")
# Interval keys and the phase they are; what lies between is training.
_PHASES = {"init": "init", "eval": "eval", "staging": "restore"}


def read(source: RunSource) -> RunRecords:
    """One run per log file that has MLLOG lines; its id is the file's path."""
    store = open_run_store(source)
    rows = RunRows(source)
    files = [item.key for item in store.list() if item.key.endswith(_SUFFIXES)]
    # result_2 comes before result_10.
    for key in sorted(files, key=lambda key: [int(one) if one.isdigit() else one for one in re.split(r"(\d+)", key)]):
        rows.add(key.rpartition(".")[0], store.uri(key), _run, store, key, rows.warnings)
    return rows.records("" if files else f"{store.location} holds no log file ({', '.join(_SUFFIXES)})")


def _lines(text: str, where: str, warnings: list[str]) -> Iterable[Row]:
    whole = text.splitlines()
    for number, line in enumerate(whole, start=1):
        _, mark, body = line.partition(_MARK)
        if not mark:
            continue
        try:
            entry = parse_json(body)
            entry["at"] = moment_of(entry["time_ms"] / 1000)
            entry["metadata"] = entry.get("metadata") or {}
            entry["key"].lower()
        except MALFORMED:
            if number == len(whole):
                warnings.append(
                    f"{where}: the last line is cut short and left out; copy the log again once its run has ended."
                )
                continue
            fix = "fix or remove it"
            raise MalformedError(f"{where}, line {number} is not an MLLOG entry with key and time_ms; {fix}.") from None
        yield entry


def _run(store: Store, key: str, warnings: list[str]) -> Tables:
    where = store.uri(key)
    lines = [*_lines(store.read(key).decode("utf-8", "replace"), where, warnings)]
    if not lines:
        warnings.append(
            f"{where} has no line that starts with {_MARK.strip()}; it is skipped. Keep other files elsewhere."
        )
        return {}
    first = {entry["key"]: entry for entry in reversed(lines)}
    stop = first.get("run_stop")
    status = _STATUS.get(str(stop["metadata"].get("status"))) if stop else None
    started_at, last_at = min(e["at"] for e in lines), max(e["at"] for e in lines)
    if stop is None:
        warnings.append(
            f"{where} has no run_stop: whether the run reached its target is unknown; copy the log of the whole run."
        )

    def value(name: str) -> Any:
        return first[name]["value"] if name in first else None

    scores = [entry for entry in lines if entry["key"] in _SCORES and _is_number(entry["value"])]
    target = value("target_accuracy") or value("target_error")
    benchmark = value("submission_benchmark")
    span = {"started_at": started_at, "ended_at": last_at if stop else None, "last_seen_at": last_at}
    run = span | {
        "source_system": "mllog",
        "model": benchmark,
        "experiment": value("submission_platform"),
        "owner": value("submission_org"),
        "global_batch_samples": value("global_batch_size"),
        "dataset_samples": value("train_samples"),
        **_epoch_unit(lines, benchmark),
        "seq_len": value("max_sequence_length"),
        "purpose": "benchmark",
        "status": status,
    }
    if scores and target is not None:
        direction = _direction(scores, float(target), status)
        run |= {"target_metric": scores[0]["key"], "target_value": float(target), "target_direction": direction}
    return {
        "run": [run],
        "attempt": [span | {"end_reason": "completed" if status == "completed" else None}],
        "phase": _phases(lines),
        "epoch": _epochs(lines, benchmark),
        "evaluation": [
            {"metric": entry["key"], "value": float(entry["value"]), "step": _step(entry), "evaluated_at": entry["at"]}
            for entry in lines
            # A NaN was measured all the same: it ends a row of passes.
            if entry["key"] in _SCORES and isinstance(entry["value"], int | float)
        ],
    }


def _direction(scores: list[Row], target: float, status: str | None) -> str:
    """`eval_accuracy` may hold a loss (llama2_70b_lora): the last score of a successful run meets the target."""
    is_above = float(scores[-1]["value"]) >= target
    if status is None:
        return "min" if scores[-1]["key"] == "eval_error" else "max"
    return "max" if is_above == (status == "completed") else "min"


def _phases(lines: list[Row]) -> Iterable[Row]:
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


def _epoch_unit(lines: list[Row], benchmark: Any) -> Row:
    """Whether its epochs are passes over the data, or blocks: of tokens in gpt3, else of samples."""
    if any(entry["key"] == "epoch_stop" for entry in lines) or all(entry["key"] != "block_stop" for entry in lines):
        return {}
    sizes = (entry["metadata"].get("epoch_count") for entry in lines if entry["key"] == "block_start")
    if benchmark in _COUNTS_TOKENS:
        size = next((size for size in sizes if _is_number(size)), None)
        return {"epoch_unit": "token_block", "epoch_unit_size": size}
    return {"epoch_unit": "sample_block"}


def _tokens(stop: Row, start: Row | None) -> float | None:
    """Tokens at the end of a gpt3 block: its `epoch_num`, else its start and its length."""
    if _is_number(stop["metadata"].get("epoch_num")):
        return stop["metadata"]["epoch_num"]
    begun = start["metadata"] if start else {}
    start_at, size = begun.get("first_epoch_num"), begun.get("epoch_count")
    return float(start_at + size) if isinstance(start_at, int | float) and isinstance(size, int | float) else None


def _epochs(lines: list[Row], benchmark: Any) -> Iterable[Row]:
    """Epochs where the log has them, else its blocks, numbered from 1 in the order they ended."""
    for unit in ("epoch", "block"):
        stops = [entry for entry in lines if entry["key"] == f"{unit}_stop"]
        if not stops:
            continue
        starts = [entry for entry in lines if entry["key"] == f"{unit}_start"]
        # Starts and stops may interleave: they are paired by their position in the run, else by their order.
        by_position = {_position(entry): entry for entry in starts}
        # Each rank may log it, and so does a restart: a position counts once, with its last record.
        last = {(at := _position(entry), None if at else number): entry for number, entry in enumerate(stops)}
        for number, entry in enumerate(last.values(), start=1):
            in_turn = starts[number - 1] if number <= len(starts) else None
            start = by_position.get(_position(entry), in_turn) if _position(entry) else in_turn
            yield {
                "epoch_index": number,
                "started_at": start["at"] if start else None,
                "completed_at": entry["at"],
                "step": entry["metadata"].get("step_num"),
                "samples_seen": entry["metadata"].get("samples_count"),
                "tokens_seen": _tokens(entry, start) if benchmark in _COUNTS_TOKENS else None,
            }
        return


def _position(entry: Row) -> Any:
    return entry["metadata"].get("epoch_num") or entry["metadata"].get("first_epoch_num")


def _step(entry: Row) -> int | None:
    step = entry["metadata"].get("step_num")
    return step if isinstance(step, int) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
