"""MLflow runs over its REST API: `location` is the tracking server's address (facts training-runs 1.1).

A deleted run still cost money and is read too. MLflow does not know which machine it ran on unless tags say so
(`aws.resource_ids`, `aws.account_id`, `aws.region`); its start and end hide restarts, which show in the metrics.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pipelines.base.address import redacted
from pipelines.base.errors import SourceError, UnreachableError, UsageError
from pipelines.config.sources import RunSource
from pipelines.ingest.runs.clean import moment_of, telling
from pipelines.ingest.runs.metrics import History, Point, described, stays
from pipelines.ingest.runs.records import DECLARED, RunRecords, records

_STATUS = {"FINISHED": "completed", "FAILED": "failed", "KILLED": "killed"}
_REASON = {"FINISHED": "completed", "FAILED": "sw_error", "KILLED": "user_stop"}
_PAGE = 1000
_HISTORY_PAGE = 25_000
_TIMEOUT = (5, 60)
_TRIES = 4
_LONGEST_WAIT = 60


def state(source: RunSource) -> str:
    """What the server says of all runs, without their histories; a point logged changes its run's last values."""
    seal = hashlib.sha256()
    for run in _Server(source).runs():
        seal.update(json.dumps([run.get("info"), run.get("data")], sort_keys=True).encode())
    return seal.hexdigest()


def read(source: RunSource) -> RunRecords:
    """Every run of every experiment, deleted ones too, with the whole history of its metrics."""
    server = _Server(source)
    rows: dict[str, list[dict[str, Any]]] = {}
    warnings: list[str] = []
    declared: dict[str, str] = {}
    for run in server.runs():
        with telling(f"[[runs]] {source.name}: MLflow run {run['info'].get('run_id')}"):
            for table, found in _run(run, server, warnings).items():
                rows.setdefault(table, []).extend(found)
        for tag in run["data"].get("tags") or ():
            if tag["key"] == DECLARED and tag["value"]:
                declared[run["info"]["run_id"]] = tag["value"]
    # A parent is named by MLflow's own id.
    rows["run"] = [
        row | {"parent_run_id": declared.get(row["parent_run_id"], row["parent_run_id"])} for row in rows.get("run", ())
    ]
    return records(source, rows, warnings, declared.values())


class _Server:
    """The few calls needed of a tracking server, paged, with patience for a server that is busy."""

    def __init__(self, source: RunSource):
        if not source.location.startswith(("http://", "https://")):
            raise UsageError(
                f"[[runs]] {source.name}: location {redacted(source.location)} is no http address of MLflow."
            )
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util import Retry

        self._root = source.location.rstrip("/") + "/api/2.0/mlflow/"
        self._told = redacted(self._root)
        self._session = requests.Session()
        # A search is a POST that changes nothing, so it may be asked again.
        patience = Retry(
            total=_TRIES,
            backoff_factor=0.5,
            status_forcelist=(429, 500, 502, 503, 504),
            allowed_methods=None,
            # A server may name the wait, but not a day.
            retry_after_max=_LONGEST_WAIT,
        )
        self._session.mount(source.location, HTTPAdapter(max_retries=patience))

    def runs(self) -> Iterator[Mapping[str, Any]]:
        """Every run, by experiment and start."""
        listed = list(self._paged("experiments/search", "experiments", {"view_type": "ALL", "max_results": _PAGE}))
        experiments = sorted(experiment["experiment_id"] for experiment in listed)
        if not experiments:
            return
        names = {experiment["experiment_id"]: experiment.get("name") for experiment in listed}
        asked = {
            "experiment_ids": experiments,
            "run_view_type": "ALL",
            "max_results": _PAGE,
            "order_by": ["attributes.start_time ASC", "attributes.run_id ASC"],
        }
        for run in self._paged("runs/search", "runs", asked):
            yield {**run, "experiment": names.get(run["info"]["experiment_id"])}

    def history(self, run_id: str, key: str) -> Iterator[Mapping[str, Any]]:
        """Every point of one metric."""
        asked = {"run_id": run_id, "metric_key": key, "max_results": _HISTORY_PAGE}
        yield from self._paged("metrics/get-history", "metrics", asked, method="GET", token_name="next_page_token")

    def _paged(
        self, call: str, part: str, asked: dict[str, Any], method: str = "POST", token_name: str = "next_page_token"
    ) -> Iterator[Mapping[str, Any]]:
        token, met = None, set()
        while True:
            answer = self._ask(call, asked | ({"page_token": token} if token else {}), method)
            yield from answer.get(part) or ()
            token = answer.get(token_name)
            if not token:
                return
            if token in met:
                raise SourceError(f"{self._told}{call} gives the same page again and again; restart the server.")
            met.add(token)

    def _ask(self, call: str, asked: dict[str, Any], method: str) -> Mapping[str, Any]:
        import requests

        params, body = (asked, None) if method == "GET" else (None, asked)
        try:
            answer = self._whole(method, self._root + call, params, body)
        except requests.HTTPError as error:
            said = error.response.status_code if error.response is not None else "nothing"
            raise SourceError(f"{self._told}{call} answers {said}; check the address.") from None
        except requests.JSONDecodeError:
            raise SourceError(f"{self._told}{call} answers no JSON; is it an MLflow tracking server?") from None
        except requests.exceptions.RetryError:
            raise UnreachableError(
                f"{self._told}{call} stays busy or broken after {_TRIES} tries; try later."
            ) from None
        except requests.exceptions.ChunkedEncodingError:
            raise UnreachableError(f"{self._told}{call} answers half a page, again and again; try later.") from None
        except requests.RequestException as error:
            kind = type(error).__name__
            raise UnreachableError(f"{self._told}{call} does not answer ({kind}); start it or try later.") from None
        if not isinstance(answer, Mapping):
            raise SourceError(f"{self._told}{call} answers no JSON object; is it an MLflow tracking server?")
        return answer

    def _whole(self, method: str, url: str, params: Any, body: Any) -> Any:
        """An answer to its last byte; one that breaks off is asked for again, which the adapter does not do."""
        import requests

        for left in reversed(range(_TRIES)):
            try:
                response = self._session.request(method, url, params=params, json=body, timeout=_TIMEOUT)
                response.raise_for_status()
                return response.json()
            except (requests.exceptions.ChunkedEncodingError, requests.JSONDecodeError):
                if not left:
                    raise
        raise AssertionError("unreachable")


def _moment(ms: Any) -> datetime | None:
    return moment_of(int(ms) / 1000) if ms else None


def _points(run: Mapping[str, Any], server: _Server) -> Iterator[Point]:
    for metric in run["data"].get("metrics") or ():
        # Machine counters say nothing of progress, and are the most of a history.
        if not metric["key"].startswith("system/"):
            for point in server.history(run["info"]["run_id"], metric["key"]):
                at = _moment(point["timestamp"])
                if at is not None:
                    yield at, int(point.get("step") or 0), {metric["key"]: float(point["value"])}


def _run(run: Mapping[str, Any], server: _Server, warnings: list[str]) -> dict[str, list[dict[str, Any]]]:
    info, data = run["info"], run["data"]
    tags = {tag["key"]: tag["value"] for tag in data.get("tags") or ()}
    said = {param["key"]: param["value"] for param in data.get("params") or ()} | tags
    run_id = tags.get(DECLARED) or info["run_id"]
    started_at, ended_at = _moment(info.get("start_time")), _moment(info.get("end_time"))
    history = History(list(_points(run, server)))
    status = info.get("status")
    if started_at is None:
        warnings.append(f"MLflow run {run_id} has no start_time and is left out.")
        return {}
    last_at = max(at for at in (started_at, ended_at, history.last_at) if at)
    attempts = history.attempts(started_at, ended_at)
    if ended_at is None and status == "RUNNING":
        warnings.append(
            f"MLflow run {run_id} never ended: it runs, or was killed; its end is inferred from its metrics."
        )
    facts, resources = described(said, run_id, warnings)
    return {
        "run": [
            facts
            | {
                "run_id": run_id,
                "source_system": "mlflow",
                "owner": facts["owner"] or tags.get("mlflow.user") or info.get("user_id") or None,
                "experiment": facts["experiment"] or run["experiment"],
                "parent_run_id": tags.get("parent_run_id") or tags.get("mlflow.parentRunId"),
                # MLflow nests the trials of a sweep.
                "purpose": facts["purpose"] or ("sweep_trial" if tags.get("mlflow.parentRunId") else None),
                "status": _STATUS.get(str(status)),
                "started_at": started_at,
                "ended_at": ended_at,
                "last_seen_at": last_at,
            }
        ],
        "attempt": [
            {"run_id": run_id, **attempt}
            | ({"end_reason": _REASON.get(str(status))} if attempt["attempt_no"] == len(attempts) else {})
            for attempt in attempts
        ],
        "resource": stays(run_id, attempts, resources),
        "epoch": [{"run_id": run_id, **epoch} for epoch in history.epochs(attempts)],
        "evaluation": [{"run_id": run_id, **score} for score in history.evaluations(attempts)],
    }
