"""A good ledger, and the command line at work on a copy of it that a test has spoiled."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import main
from support.bills import instance_hour, write_config, write_events, write_export
from support.ledgers import build_warehouse, catalog_of, publish_tables

MONTH = "2026-07"
# Six hours of one GPU node, of which one run uses the first two.
HOURS = [instance_hour(f"{MONTH}-01T{hour:02d}", "i-1", "p5.48xlarge", "55.04") for hour in range(6)]
COST_OF_THE_RUN = "110.0800000000"


def run_events(run_id: str = "good", **joined: Any) -> list[dict[str, Any]]:
    """A run of two hours on the node; `joined` overrides fields of its resource_joined."""
    common = {"run_id": run_id, "attempt": 1, "resource": "i-1"}
    return [
        {"event": "run_started", "run_id": run_id, "at": f"{MONTH}-01T00:00:00Z", "model": "m", "dataset": "d"},
        {"event": "attempt_started", "run_id": run_id, "attempt": 1, "at": f"{MONTH}-01T00:00:00Z"},
        {
            "event": "resource_joined",
            **common,
            "at": f"{MONTH}-01T00:00:00Z",
            "instance_type": "p5.48xlarge",
            "account_id": "000033334444",
            **joined,
        },
        {"event": "resource_left", **common, "at": f"{MONTH}-01T02:00:00Z"},
        {
            "event": "attempt_ended",
            "run_id": run_id,
            "attempt": 1,
            "at": f"{MONTH}-01T02:00:00Z",
            "reason": "completed",
        },
        {"event": "run_ended", "run_id": run_id, "at": f"{MONTH}-01T02:00:00Z", "status": "completed"},
    ]


def write_ledger(root: Path, tables: Collection[str] = ()) -> Path:
    """Write and publish the good ledger below `root`, of it these tables or every one; returns `root`."""
    write_export(root, {MONTH: HOURS})
    write_events(root / "runs", run_events())
    config = write_config(root, billing="export", runs="runs")
    if tables:
        publish_tables(config, tables)
    else:
        build_warehouse(config)
    return root


def write_lines(path: Path, lines: Sequence[dict[str, Any] | str | bytes]) -> Path:
    """Write lines, events among them as JSON; returns `path`."""
    texts = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
    path.write_bytes(b"".join((text.encode() if isinstance(text, str) else text) + b"\n" for text in texts))
    return path


@dataclass(frozen=True)
class CommandResult:
    """The output of a command and its exit code."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """Its one sentence of error."""
        assert "Traceback" not in self.err + self.out
        (line,) = (line for line in self.err.splitlines() if line.startswith("Error: "))
        assert self.err.endswith(f"{line}\n"), "the error is not the last output"
        assert line.endswith("."), line
        return line.removeprefix("Error: ")


@dataclass(frozen=True)
class Ledger:
    """A folder with an export of one month, run events, a configuration and a warehouse once published."""

    root: Path
    untouched: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    @property
    def config(self) -> Path:
        return self.root / "trainledger.toml"

    @property
    def manifest(self) -> Path:
        return self.root / f"export/metadata/BILLING_PERIOD={MONTH}/export-Manifest.json"

    @property
    def bill(self) -> Path:
        return next((self.root / "export/data").rglob("export-00001.csv.gz"))

    @property
    def events(self) -> Path:
        return self.root / "runs/events.jsonl"

    def builds(self, *tables: str) -> Ledger:
        """Let `build` make and publish just these tables and what they rest on; the figures that it prints last
        would need more."""
        self.monkeypatch.setattr("pipelines.models.build.load_catalog", lambda: catalog_of(tables))
        self.monkeypatch.setattr("pipelines.present.text.show_key_figures", lambda engine, console: None)
        return self

    def checks(self) -> list[dict[str, Any]]:
        """The checks of the newest publication, after a build that ends well."""
        result = self.run("build")
        assert result.code == 0, result.err
        newest = max((self.root / "warehouse/publications").glob("*.json"))
        return json.loads(newest.read_text())["checks"]

    def restate(self, *lines: dict[str, str]) -> None:
        """Deliver the month again with these lines."""
        write_export(self.root, {MONTH: lines}, execution="20260802T000000Z-second")

    def respoil(self, content: bytes) -> None:
        """Deliver the month's file again with this content."""
        self.bill.write_bytes(content)
        manifest = json.loads(self.manifest.read_text())
        self.manifest.write_text(json.dumps({**manifest, "executionId": "second"}))

    def record(self, *events: dict[str, Any] | str | bytes) -> Path:
        """Write these lines to one more event file."""
        return write_lines(self.root / "runs/more.jsonl", events)

    def run(self, *arguments: str, config: Path | None = None) -> CommandResult:
        """Run a command in this process."""
        self.capsys.readouterr()
        place = str(config or self.config)
        self.monkeypatch.setattr(sys, "argv", ["trainledger", *arguments, "--config", place])
        code: Any = 0
        try:
            main()
        except SystemExit as left:
            code = left.code or 0
        captured = self.capsys.readouterr()
        return CommandResult(code, captured.out, captured.err)

    def configure(self, old: str, new: str) -> None:
        """Put `new` in the place of `old` in the configuration."""
        text = self.config.read_text()
        assert text.count(old) == 1
        self.config.write_text(text.replace(old, new))

    def refused(self, code: int) -> str:
        """Build: it exits with `code` and one sentence, and the last good publication still answers."""
        result = self.run("build")
        assert result.code == code, result.err
        self.still_answers()
        return result.error

    def still_answers(self) -> None:
        """Nothing but the first publication is there, and it is whole."""
        sql = "select run_id, cast(effective_cost_usd as varchar) from mart_run_cost"
        answer = self.run("query", sql, "--csv", config=self.untouched)
        assert answer.out.splitlines()[1:] == [f"good,{COST_OF_THE_RUN}"], answer.err
        assert [path.name for path in (self.root / "warehouse/publications").glob("*.json")] == ["000001.json"]
