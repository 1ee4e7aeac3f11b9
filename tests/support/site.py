"""A dashboard that is served, and what a hostile company would have it show."""

from __future__ import annotations

import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from support.bills import instance_hour, write_export
from support.small_company import AUGUST, Company, run

HOSTILE = "<script>alert(1)</script>"
HOSTILE_TEAM = "\"><img src=x onerror=alert(2)>'; drop table mart_run_cost; --"
FIRST, SECOND = "2026-09-03T10:00:00+00:00", "2026-09-05T23:30:00+00:00"


@dataclass(frozen=True)
class Site:
    """A dashboard that is served, and the company it shows."""

    address: str
    company: Company

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """The status and the text of a page."""
        request = urllib.request.Request(self.address + path, headers=headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def hour_of_gpu(run_id: str, resource: str, team: str) -> list[dict[str, object]]:
    """A GPU run of an hour on the 10th of August, with its team and a second checkpoint half-way."""
    first, *rest = run(run_id, resource, "p5.48xlarge", 8, AUGUST, "10", "11")
    half = {"event": "checkpoint_saved", "attempt": 1, "at": f"{AUGUST}-10T10:30:00Z", "step": 50, "uri": "s3://m/50"}
    return [{**first, "team": team}, *rest[:2], {"run_id": run_id, **half}, *rest[2:]]


def deliver(company: Company, rate: str) -> None:
    """August: four hours of Trainium at `rate`, an hour of a GPU at 60.00 for the hostile run."""
    lines = [instance_hour(f"{AUGUST}-10T{10 + hour}", "i-trn", "trn1.32xlarge", rate) for hour in range(4)]
    lines.append(instance_hour(f"{AUGUST}-10T10", "i-evil", "p5.48xlarge", "60.00"))
    write_export(company.root, {AUGUST: lines}, execution=f"20260901T000000Z-{rate}")


def address_of(**parameters: str) -> str:
    """Words of an address, quoted."""
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())


def marts(company: Company) -> Path:
    """The copy of the marts that any DuckDB client opens."""
    return company.warehouse / "marts.duckdb"
