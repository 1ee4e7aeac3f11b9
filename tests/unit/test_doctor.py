"""`doctor` on folders: each finding next to the bill that gives cause to it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.ledgers import publish_tables

from pipelines.config.settings import load_settings
from pipelines.doctor.examine import examine
from pipelines.doctor.finding import Finding, exit_code

NOW = datetime(2026, 7, 4, 12)
Lines = Mapping[str, Sequence[Mapping[str, str]]]


def hour(day: str = "2026-07-03T10", **more: str) -> dict[str, str]:
    return instance_hour(day, "i-0a", "p5.48xlarge", "55.04", **more)


def found(root: Path, months: Lines, *, runs: bool = True) -> dict[tuple[str, str], Finding]:
    """The findings on an export of these lines that nothing has been built from, by (subject, check)."""
    events = one_attempt("a", ["i-0a"], "p5.48xlarge", datetime(2026, 7, 3, 10), timedelta(hours=1))
    folder = write_events(root / "runs", events) if runs else None
    return by_check(write_config(root, billing=write_export(root, months), runs=folder))


def by_check(config: Path) -> dict[tuple[str, str], Finding]:
    return {(finding.subject, finding.check): finding for finding in examine(load_settings(config), NOW)}


def test_a_good_ledger_has_nothing_wrong(tmp_path: Path) -> None:
    findings = found(tmp_path, {"2026-07": [hour(), hour("2026-07-03T11")]})
    publish_tables(tmp_path / "trainledger.toml", ["fct_charge"])
    findings = by_check(tmp_path / "trainledger.toml")
    assert {finding.status for finding in findings.values()} <= {"ok", "warn", "not checked"}
    assert exit_code(findings.values()) == 0
    bill = {check: finding.message for (subject, check), finding in findings.items() if subject == "billing payer"}
    assert bill["kind"] == "CUR 2.0, according to its manifest."
    assert bill["months"] == "2026-07, 1 month without a gap."
    assert bill["hourly"] == "usage lines are hourly (2026-07)."
    assert bill["resource ids"] == "100% of usage lines name one."
    # From 11:00 on the 3rd to noon of the 4th.
    assert bill["newest usage"] == "2026-07-03 11:00 UTC, 25 hours ago."
    assert findings["warehouse", "publication"].message.endswith(" 1 billing month.")


@pytest.mark.parametrize(
    ("policy", "named"),
    [("", "tags name provisional runs"), ("[policy]\nprovisional_runs = false", "no cost has a run")],
)
def test_without_a_run_source_the_run_tag_names_runs(tmp_path: Path, policy: str, named: str) -> None:
    found(tmp_path, {"2026-07": [hour()]}, runs=False)
    config = tmp_path / "trainledger.toml"
    config.write_text(f"{config.read_text()}\n{policy}\n")
    assert by_check(config)["configuration", "runs"].message == f"no [[runs]] source, so no recorded run; {named}."


def test_a_daily_export_fails(tmp_path: Path) -> None:
    day = hour(
        line_item_usage_start_date="2026-07-03T00:00:00.000Z", line_item_usage_end_date="2026-07-04T00:00:00.000Z"
    )
    findings = found(tmp_path, {"2026-07": [day]})
    assert findings["billing payer", "hourly"].status == "fail"
    assert "the lines are daily" in findings["billing payer", "hourly"].message
    assert exit_code(findings.values()) == 1


def test_an_export_without_resource_ids_fails(tmp_path: Path) -> None:
    findings = found(tmp_path, {"2026-07": [hour(line_item_resource_id="")]})
    assert findings["billing payer", "resource ids"].status == "fail"
    assert exit_code(findings.values()) == 1


def test_a_month_without_usage_reports_what_it_cannot_check(tmp_path: Path) -> None:
    tax = {"line_item_line_item_type": "Tax", "line_item_usage_start_date": "2026-07-01T00:00:00.000Z"}
    findings = found(tmp_path, {"2026-07": [{**tax, "line_item_unblended_cost": "1"}]})
    for check in ("hourly", "resource ids", "newest usage"):
        assert findings["billing payer", check].status == "not checked"


def test_a_month_that_was_not_delivered_is_named(tmp_path: Path) -> None:
    lines = {"2026-04": [hour("2026-04-03T10")], "2026-07": [hour()]}
    finding = found(tmp_path, lines)["billing payer", "months"]
    assert (finding.status, "without 2026-05, 2026-06" in finding.message) == ("warn", True)


def test_a_fee_dated_into_the_future_is_no_usage(tmp_path: Path) -> None:
    # Mid-month the recurring fee of a plan is there for hours to come (facts aws-billing 2.4).
    fee = hour("2026-07-30T10", line_item_line_item_type="SavingsPlanRecurringFee", line_item_resource_id="")
    ahead = hour("2026-07-30T11")
    finding = found(tmp_path, {"2026-07": [hour(), fee, ahead]})["billing payer", "newest usage"]
    assert finding.message == "2026-07-03 10:00 UTC, 26 hours ago."


@pytest.mark.parametrize(
    ("newest", "sentence"),
    [
        ("2026-06-30", "4 days ago: no newer month is there; check that the export still runs."),
        (
            "2026-06-15",
            "19 days ago: 2026-06 lacks its last 15 days; ask AWS to deliver the month again, or wait for it.",
        ),
    ],
)
def test_old_usage_is_a_warning(tmp_path: Path, newest: str, sentence: str) -> None:
    finding = found(tmp_path, {"2026-06": [hour(f"{newest}T10")]})["billing payer", "newest usage"]
    assert (finding.status, finding.message) == ("warn", f"{newest} 10:00 UTC, {sentence}")


def test_tags_are_reported_with_the_dollars_they_cover(tmp_path: Path) -> None:
    tagged = hour(**{"resource_tags": '{"user_run_id": "a"}'})
    plain = hour("2026-07-03T11", resource_tags="")
    findings = found(tmp_path, {"2026-07": [tagged, plain]})
    # One of two hours at 55.04.
    assert findings["billing payer", "tag run_id"] == Finding(
        "billing payer",
        "tag run_id",
        "ok",
        "found as user_run_id; on 55.04 of 110.08 USD of usage, before commitments.",
    )
    assert findings["billing payer", "tag team"].status == "warn"
    assert "none of team, Team is in the bill" in findings["billing payer", "tag team"].message


def test_a_delivery_that_is_not_whole_is_a_warning(tmp_path: Path) -> None:
    export = write_export(tmp_path, {"2026-07": [hour()]})
    add_file(export, None)
    finding = by_check(write_config(tmp_path, billing=export))["billing payer", "newest delivery"]
    assert finding.status == "warn"
    assert "1 file its manifest lists are missing" in finding.message


def test_an_unread_delivery_is_judged_by_one_file_and_states_it(tmp_path: Path) -> None:
    export = write_export(tmp_path, {"2026-07": [hour()]})
    whole = next(export.rglob("*.csv.gz"))
    add_file(export, gzip.decompress(whole.read_bytes()))
    findings = by_check(write_config(tmp_path, billing=export))
    assert "seen in 1 of 2 files" in findings["billing payer", "hourly"].message
    assert not (tmp_path / "warehouse").exists(), "a question has written something"


def add_file(export: Path, text: bytes | None) -> None:
    """Name a second file in the manifest, and write it unless it is None."""
    manifest = next(export.rglob("*-Manifest.json"))
    document = json.loads(manifest.read_text())
    second = document["dataFiles"][0].replace("-00001", "-00002")
    manifest.write_text(json.dumps({**document, "dataFiles": [*document["dataFiles"], second]}))
    if text is not None:
        first = next(export.rglob("*-00001.csv.gz"))
        first.with_name(first.name.replace("-00001", "-00002")).write_bytes(gzip.compress(text))


def test_split_and_capacity_columns_show_what_the_export_was_configured_for(tmp_path: Path) -> None:
    findings = found(tmp_path, {"2026-07": [hour(split_line_item_split_cost="", resource_tags="")]})
    assert findings["billing payer", "split cost data"].message == "on."
    assert findings["billing payer", "capacity data"].message == "off; needed only to separate reserved hours."


@pytest.mark.parametrize(
    ("billing", "kind", "code", "message"),
    [
        ("nowhere", "events", 3, "nowhere cannot be listed"),
        ("runs", "events", 3, "holds no billing manifest"),
        ("export", "telepathy", 2, "kind 'telepathy' is not supported"),
        ("nowhere", "telepathy", 2, "kind 'telepathy' is not supported"),
    ],
)
def test_what_cannot_be_read_gives_the_exit_code(
    tmp_path: Path, billing: str, kind: str, code: int, message: str
) -> None:
    found(tmp_path, {"2026-07": [hour()]})
    config = write_config(tmp_path, billing=tmp_path / billing, runs=tmp_path / "runs")
    config.write_text(config.read_text().replace('kind = "events"', f'kind = "{kind}"'))
    findings = list(examine(load_settings(config), NOW))
    assert exit_code(findings) == code
    assert any(message in finding.message for finding in findings if finding.status == "fail")


def test_a_kind_that_no_reader_has_is_found_where_the_runs_are_not(tmp_path: Path) -> None:
    config = write_config(tmp_path, billing=write_export(tmp_path, {"2026-07": [hour()]}), runs=tmp_path / "nowhere")
    config.write_text(config.read_text().replace('kind = "events"', 'kind = "foo"'))
    finding = by_check(config)["runs jobs", "kind"]
    assert (finding.status, finding.exit_code) == ("fail", 2)
    assert "[[runs]] jobs: kind 'foo' is not supported; write one of " in finding.message


@pytest.mark.parametrize(
    ("policy", "status", "message"),
    [
        (None, "fail", "access.toml cannot be read (No such file or directory); [access] policy names the file of"),
        ("readers = 1", "fail", "access.toml"),
        ('[readers]\n"ana@acme.dev" = "all"\n', "ok", "access.toml names 1 reader."),
    ],
)
def test_the_access_policy_is_read_as_the_dashboard_reads_it(
    tmp_path: Path, policy: str | None, status: str, message: str
) -> None:
    config = write_config(tmp_path, billing=write_export(tmp_path, {"2026-07": [hour()]}))
    config.write_text(config.read_text() + '\n[access]\npolicy = "access.toml"\n')
    if policy is not None:
        (tmp_path / "access.toml").write_text(policy)
    findings = by_check(config)
    finding = findings["access", "policy"]
    assert finding.status == status and message in finding.message
    assert exit_code(findings.values()) == (2 if status == "fail" else 0)


def test_a_configuration_without_a_bill_is_a_mistake(tmp_path: Path) -> None:
    config = tmp_path / "trainledger.toml"
    config.write_text('[warehouse]\nlocation = "warehouse"\n')
    findings = list(examine(load_settings(config), NOW))
    assert exit_code(findings) == 2
    assert findings[0].message == "no bill is configured; add a [[billing]] source."


def test_the_page_fits_80_columns_and_json_shows_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from pipelines.cli import app

    found(tmp_path, {"2026-07": [hour()]})
    words = ["doctor", "--config", "trainledger.toml"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    page = CliRunner().invoke(app, words)
    # A path is not broken in two, wherever the test lies.
    assert [line for line in page.stdout.splitlines() if len(line) > 80 and str(tmp_path) not in line] == []
    document = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert document["exit_code"] == page.exit_code == 0
    for finding in document["findings"]:
        assert finding["check"] in page.stdout


def with_reservations(root: Path, text: str, *, location: str = "held", name: str = "held.csv") -> Path:
    """A good bill's configuration, with a file of reservations below its folder."""
    config = write_config(root, billing=write_export(root, {"2026-07": [hour()]}))
    (root / "held").mkdir(exist_ok=True)
    (root / "held" / name).write_text(text)
    config.write_text(config.read_text() + f'\n[[reservations]]\nname = "{name}"\nlocation = "{location}"\n')
    return config


RESERVED = "reservation_id,reservation_kind,started_at,ended_at\n"
BLOCK = "cr-1,capacity_block,2026-07-01T11:30:00Z,2026-07-02T11:30:00Z\n"


@pytest.mark.parametrize("location", ["held", "held/held.csv"])
def test_reservations_are_read_from_a_folder_or_one_file(tmp_path: Path, location: str) -> None:
    findings = by_check(with_reservations(tmp_path, RESERVED + BLOCK, location=location))
    subject = "reservations held.csv"
    assert findings[subject, "readable"] == Finding(subject, "readable", "ok", "1 reservation found.")


def test_a_commitment_that_cannot_be_read_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "plans.json").write_text('{"SavingsPlans": [{"savingsPlanArn": "none"}]}')
    export = write_export(tmp_path, {"2026-07": [hour()]})
    findings = by_check(write_config(tmp_path, billing=export, commitments=tmp_path / "plans"))
    assert findings["commitments bought", "readable"].message == "0 commitments found."


def test_a_source_of_servers_without_files_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "serving").mkdir()
    export = write_export(tmp_path, {"2026-07": [hour()]})
    config = write_config(tmp_path, billing=export, serving=tmp_path / "serving")
    assert by_check(config)["serving servers", "reachable"].status == "warn"
    (tmp_path / "serving" / "a.jsonl").write_text("{}")
    assert by_check(config)["serving servers", "reachable"].message.endswith("holds 1 file.")


def test_a_line_of_events_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    """Of runs an event without a time, of servers the first ten of 12 lines that are no JSON."""
    for folder in ("runs", "serving"):
        (tmp_path / folder).mkdir()
    (tmp_path / "runs" / "a.jsonl").write_text('{"event": "run_started", "run_id": "a", "at": "today"}\n')
    (tmp_path / "serving" / "a.jsonl").write_text("none\n" * 12)
    export = write_export(tmp_path, {"2026-07": [hour()]})
    config = write_config(tmp_path, billing=export, runs=tmp_path / "runs", serving=tmp_path / "serving")
    found = [one for one in examine(load_settings(config), NOW) if one.check == "warning"]
    assert [one.status for one in found] == ["warn"] * 12
    assert "Run 'a' is set aside" in found[0].message and 'a.jsonl line 1 has `at` "today"' in found[0].message
    assert all("it is not JSON; write it whole." in one.message for one in found[1:11])
    assert found[11].message == "2 more warnings; a build lists all of them."


def test_registrations_are_read_as_a_build_reads_them(tmp_path: Path) -> None:
    config = with_reservations(tmp_path, RESERVED + BLOCK)
    folder = tmp_path / "registered"
    folder.mkdir()
    config.write_text(f'{config.read_text()}\n[proof]\nregistrations = "{folder}"\n')
    assert by_check(config)["proof", "readable"].message == f"{folder} holds 0 registrations."
    (folder / "july.toml").write_text('[[registration]]\nname = "july"\n')
    finding = by_check(config)["proof", "readable"]
    assert (finding.status, finding.exit_code) == ("fail", 3)
    assert "key 'workload_id': it is missing" in finding.message


def test_reservations_a_build_would_leave_out_are_a_warning(tmp_path: Path) -> None:
    findings = by_check(with_reservations(tmp_path, "reservation_id,started_at\ncr-1,soon\n"))
    finding = findings["reservations held.csv", "warning"]
    assert (finding.status, "has no columns reservation_kind, ended_at;" in finding.message) == ("warn", True)


def test_an_uncertain_reservation_is_a_warning(tmp_path: Path) -> None:
    findings = by_check(with_reservations(tmp_path, RESERVED + "cr-1,capacity_block,,\n"))
    finding = findings["reservations held.csv", "warning"]
    assert (finding.status, "cr-1 has no window" in finding.message) == ("warn", True)


def test_reservations_of_two_sources_that_disagree_are_a_warning(tmp_path: Path) -> None:
    config = with_reservations(tmp_path, RESERVED + BLOCK, location="held/held.csv")
    (tmp_path / "held/other.csv").write_text(RESERVED + BLOCK.replace("07-02T", "07-03T"))
    text = config.read_text()
    config.write_text(text + '\n[[reservations]]\nname = "other"\nlocation = "held/other.csv"\n')
    finding = by_check(config)["reservations", "agree"]
    assert (finding.status, "cr-1 runs " in finding.message) == ("warn", True)


def test_a_legacy_report_and_focus_are_called_alike(tmp_path: Path) -> None:
    from pipelines.doctor.billing import KINDS

    # As README.md calls them.
    assert list(KINDS.values()) == ["legacy CUR", "CUR 2.0", "FOCUS"]
    assert all(kind in (Path(__file__).parents[2] / "README.md").read_text() for kind in KINDS.values())
