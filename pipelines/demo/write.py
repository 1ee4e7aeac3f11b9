"""Writes the input of the demo: the company's bucket, run events and configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipelines.demo import company, decisions, runs_nlp, runs_small, runs_vision
from pipelines.demo.bucket import EXPORT_NAME, PREFIX, export_files
from pipelines.demo.capacity import answer_of_ec2
from pipelines.demo.events import event_files
from pipelines.demo.export import write_if_changed
from pipelines.demo.serving import serving_files
from pipelines.demo.timeline import play

RUNS = (*runs_nlp.RUNS, *runs_vision.RUNS, *runs_small.RUNS)

_CONFIG = f"""\
# The demo of trainledger. Everything it reads lies next to this file; everything it writes goes to warehouse/.
[warehouse]
location = "warehouse"

[[billing]]
name = "larkfield"
location = "bucket/{PREFIX}/{EXPORT_NAME}"

[[runs]]
name = "jobs"
kind = "events"
location = "events"

[[serving]]
name = "servers"
kind = "events"
location = "serving"
ttft_target_seconds = 2.0

[[reservations]]
name = "blocks"
location = "reservations.json"

[tags]
run_id = ["run_id", "RunId"]
owner = ["owner"]
team = ["team"]
{decisions.CONFIG}"""


@dataclass(frozen=True)
class DemoData:
    """Where the demo's input lies, and how many of its files had to be written (0: all was there already)."""

    config: Path
    export: Path
    events: Path
    months: tuple[str, ...]
    run_count: int
    files_written: int


def write_demo(out: Path, restated: bool = True) -> DemoData:
    """Write the demo's input below `out`, the same bytes every time; files already right stay untouched.

    `restated=False` leaves July as AWS first delivered it; a later call with True adds the second delivery.
    """
    timelines = [play(run) for run in RUNS]
    stays = [stay for played in timelines for stay in played.stays]
    export, events, config = out / "bucket" / PREFIX / EXPORT_NAME, out / "events", out / "trainledger.toml"
    content = {events / path: data for path, data in event_files(timelines).items()}
    content |= {out / "serving" / path: data for path, data in serving_files().items()}
    content |= {export / path: data for path, data in export_files(stays, restated)}
    content[out / "reservations.json"] = answer_of_ec2(company.RESERVATIONS)
    content[out / "registrations" / "comparisons.toml"] = decisions.REGISTRATION.encode()
    content[out / "baselines" / "llama8b-1.toml"] = decisions.BASELINE.encode()
    content[config] = _CONFIG.encode()
    written = sum(write_if_changed(path, data) for path, data in content.items())
    return DemoData(config, export, events, company.MONTHS, len(RUNS), written)
