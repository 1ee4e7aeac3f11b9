"""Reserved capacity declared wrongly is left out with a sentence of file, entry and fix; a wrong source stops."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.aws_answers import aws_answers
from support.spoiled import Ledger

from pipelines.base.resources import accelerator_families
from pipelines.config.sources import AnswerSource
from pipelines.ingest.inventory.reservations import read_reservations

BLOCK = {
    "CapacityReservationId": "cr-1",
    "ReservationType": "capacity-block",
    "StartDate": "2026-07-01T11:30:00Z",
    "EndDate": "2026-07-02T11:30:00Z",
}
ROW = "reservation_id,reservation_kind,started_at,ended_at\n"


def hold(root: Path, content: object, name: str = "held.json") -> None:
    """Write one more file of reservations."""
    (root / "held").mkdir(exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    (root / "held" / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def left_out(root: Path) -> str:
    """The sentence that leaves these out; a good one is read. The last test has a build print one."""
    hold(root, blocks(CapacityReservationId="cr-9"), "other.json")
    found = read_reservations([AnswerSource(name="held", location=str(root / "held"))], accelerator_families())
    (sentence,) = found.warnings
    assert sentence.endswith(". Until then it is left out.")
    assert found.table["reservation_id"].to_list() == ["cr-9"]
    return sentence


def configure(ledger: Ledger, keys: str) -> None:
    ledger.config.write_text(ledger.config.read_text() + f'\n[[reservations]]\nname = "held"\n{keys}\n')


def blocks(**fields: Any) -> dict[str, Any]:
    return {"CapacityReservations": [{**BLOCK, **fields}]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{oops", r"is not JSON \(.*\); save the answer of AWS"),
        ("[" * 100_000, r"is nested more than 100 levels deep; save"),
        (b"\xff\xfe", r"is not UTF-8 text; save it again"),
        ([BLOCK], r"is not a JSON object; save an answer with CapacityReservations"),
        ({"Reservations": []}, r"has none of CapacityReservations, .*; save the answer of one of those calls"),
        ({"CapacityReservations": {"Id": 1}}, r"CapacityReservations is not a list; save the whole answer"),
        ({"CapacityReservations": ["cr-1"]}, r"number 1 is not a JSON object"),
        (blocks(CapacityReservationId="block"), r"number 1 has the id 'block'; write cr-…"),
        (blocks(ReservationType="lease"), r"has ReservationType 'lease'; default and capacity-block are supported"),
        (blocks(StartDate="yesterday"), r"has StartDate 'yesterday'; write a time as RFC 3339"),
        (blocks(StartDate="2026-07-01T11:30:00"), r"has StartDate '2026-07-01T11:30:00'; .* with its zone"),
        (blocks(EndDate=1e300), r"has EndDate '1e\+300'; write a time"),
        (blocks(TotalInstanceCount=-2), r"has TotalInstanceCount '-2'; write a whole number of instances"),
        (
            blocks(EndDate="2026-07-01T11:00:00Z"),
            r"cr-1 ends at 2026-07-01 11:00:00, not after it starts at .*fix the times",
        ),
        (blocks(EndDate="9999-12-31T00:00:00Z"), r"cr-1 runs from .* longer than any that is sold; fix the times"),
        ({"TrainingPlanArn": "july-plan"}, r"has the id 'july-plan'; write the ARN of a training plan"),
    ],
)
def test_an_answer_that_is_none(tmp_path: Path, content: object, message: str) -> None:
    hold(tmp_path, content)
    assert re.search(rf"held/held\.json.* {message}", left_out(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            r"held\.csv has no columns reservation_id, reservation_kind, started_at, ended_at; the first line must",
        ),
        (ROW.replace(",ended_at", ""), r"held\.csv has no column ended_at; the first line must name them"),
        ("id," + ROW, r"has the column 'id'; it may have reservation_id"),
        (
            ROW + "cr-1,block,,\n",
            r"line 2 has reservation_kind 'block'; write one of odcr, capacity_block, training_plan",
        ),
        (ROW + "cr-1,capacity_block,2026-07-01T11:30:00Z\n", r"line 2 has not as many cells as the first line"),
        (ROW + "cr-1,odcr,soon,\n", r"line 2 has started_at 'soon'; write a time as RFC 3339 with its zone"),
    ],
)
def test_a_table_that_is_none(tmp_path: Path, text: str, message: str) -> None:
    hold(tmp_path, text, "held.csv")
    assert re.search(message, left_out(tmp_path))


def test_one_reservation_with_two_windows(tmp_path: Path) -> None:
    hold(tmp_path, blocks())
    hold(tmp_path, blocks(EndDate="2026-07-03T11:30:00Z"), "newer.json")
    error = left_out(tmp_path)
    assert "cr-1 runs 2026-07-01 11:30:00 to 2026-07-02 11:30:00 in " in error
    assert "newer.json CapacityReservations number 1; keep the right one." in error


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            blocks(InstanceType="p5.48xlarge"),
            blocks(InstanceType="p4d.24xlarge"),
            r"cr-1 has the instance_type p5\.48xlarge in .*held\.json CapacityReservations number 1 and p4d\.24xlarge "
            r"in .*newer\.json CapacityReservations number 1; keep the right one\.",
        ),
        (
            blocks(),
            blocks(ReservationType="default"),
            r"cr-1 has the reservation_kind capacity_block in .*held\.json .* and odcr in .*newer\.json",
        ),
    ],
)
def test_one_reservation_declared_in_two_ways(tmp_path: Path, first: object, second: object, message: str) -> None:
    hold(tmp_path, first)
    hold(tmp_path, second, "newer.json")
    assert re.search(message, left_out(tmp_path))


def test_a_plan_with_a_part_that_ends_before_it_starts(tmp_path: Path) -> None:
    """The part that is left would bear the fee of the whole plan."""
    plan = "arn:aws:sagemaker:us-west-2:000033334444:training-plan/p,training_plan"
    parts = f"{plan},2026-07-01T00:00:00Z,2026-07-02T00:00:00Z,1\n{plan},2026-07-03T00:00:00Z,2026-07-02T00:00:00Z,2\n"
    hold(tmp_path, ROW.replace("ended_at", "ended_at,part_no") + parts, "held.csv")
    assert re.search(r"line 3: arn:.*/p ends at 2026-07-02 00:00:00, not after it starts", left_out(tmp_path))


def test_a_source_without_a_reservation_is_named_after_a_malformed_one(tmp_path: Path) -> None:
    hold(tmp_path, "{oops")
    (tmp_path / "none").mkdir()
    sources = [AnswerSource(name=name, location=str(tmp_path / name)) for name in ("held", "none")]
    malformed, empty = read_reservations(sources, {}).warnings
    assert ("held.json is not JSON" in malformed, "none contains no reservation" in empty) == (True, True)


def test_one_page_of_an_answer(tmp_path: Path) -> None:
    hold(tmp_path, {**blocks(), "NextToken": "eyJ"})
    assert re.search(r"held/held\.json has a NextToken, so more pages belong to it; save them all", left_out(tmp_path))


def test_a_file_that_is_gone(ledger: Ledger) -> None:
    configure(ledger, 'location = "held/cr.json"')
    (ledger.root / "held").mkdir()
    assert re.search(r"held/cr\.json does not exist; check `location` of \[\[reservations\]\] held", ledger.refused(3))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("", r"\[\[reservations\]\] held: kind 'file' needs a location, and kind 'aws' has none"),
        ('kind = "aws"\nlocation = "held"', r"kind 'file' needs a location, and kind 'aws' has none"),
        ('kind = "ec2"', r"\[\[reservations\]\] held: key 'kind': write 'file' or 'aws'"),
        ('kind = "aws"\nregion_names = ["us-east-1"]', r"held: unknown key 'region_names'; remove it"),
        ('kind = "aws"\nprofile = "absent"', r"held: The config profile \(absent\) could not be found; check profile"),
    ],
)
def test_a_source_configured_wrongly(ledger: Ledger, s3_endpoint: str, keys: str, message: str) -> None:
    configure(ledger, keys)
    assert re.search(message, ledger.refused(2))


def test_aws_denies_access(ledger: Ledger, s3_endpoint: str) -> None:
    with aws_answers() as answers:
        answers.errors["ListTrainingPlans"] = "AccessDeniedException"
        configure(ledger, f'kind = "aws"\nregions = ["us-west-2"]\nendpoint_url = "{answers.url}"')
        error = ledger.refused(3)
    assert error == "[[reservations]] held, us-west-2: access is denied; grant sagemaker:ListTrainingPlans."


def test_aws_does_not_answer(ledger: Ledger, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    configure(ledger, 'kind = "aws"\nregions = ["us-west-2"]\nendpoint_url = "http://127.0.0.1:9"')
    assert "us-west-2 did not answer ec2:DescribeCapacityReservations" in ledger.refused(3)


def test_a_malformed_file_does_not_stop_a_build(ledger: Ledger) -> None:
    hold(ledger.root, "{oops")
    configure(ledger, 'location = "held"')
    result = ledger.run("build")
    assert result.code == 0, result.err
    assert "held.json is not JSON" in result.err
    answer = ledger.run("query", "select run_id, cast(effective_cost_usd as varchar) from mart_run_cost", "--csv")
    assert answer.out.splitlines()[1:] == ["good,110.0800000000"]
