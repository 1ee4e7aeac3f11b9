"""Reserved capacity read from files and from AWS (real boto3 against a server that answers as AWS documents)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from support.aws_answers import PLAN, PLAN_ARN, Answers, aws_answers

from pipelines.base.errors import SourceError, UnreachableError
from pipelines.base.resources import accelerator_families
from pipelines.config.sources import AnswerSource
from pipelines.ingest.inventory.reservations import ANSWERS, SCHEMA, read_reservations

START, END = datetime(2026, 7, 1, 11, 30), datetime(2026, 7, 2, 11, 30)
CR = {
    "CapacityReservationId": "cr-0b10c5",
    "OwnerId": "000033334444",
    "CapacityReservationArn": "arn:aws:ec2:us-west-2:000033334444:capacity-reservation/cr-0b10c5",
    "InstanceType": "p5.48xlarge",
    "TotalInstanceCount": 2,
    "State": "active",
    "StartDate": "2026-07-01T11:30:00+00:00",
    "EndDate": "2026-07-02T11:30:00.000Z",
    "ReservationType": "capacity-block",
}


def source(folder: Path | str, **more: Any) -> AnswerSource:
    return AnswerSource(name="held", location=str(folder), **more)


def rows(*sources: AnswerSource) -> list[dict[str, Any]]:
    return read_reservations(sources, accelerator_families()).table.to_dicts()


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_an_answer_of_ec2_as_it_was_saved(tmp_path: Path) -> None:
    (row,) = rows(source(write(tmp_path / "cr.json", {"CapacityReservations": [CR]})))
    # Every value stands in the answer; the account keeps its zeros, the region is the ARN's.
    assert row == dict.fromkeys(SCHEMA) | {
        "source_name": "held",
        "reservation_id": "cr-0b10c5",
        "part_no": 1,
        "reservation_kind": "capacity_block",
        "account_id": "000033334444",
        "region_id": "us-west-2",
        "instance_type": "p5.48xlarge",
        "instance_count": 2,
        "started_at": START,
        "ended_at": END,
        "state": "active",
    }


def test_blocks_and_reservations_are_distinguished(tmp_path: Path) -> None:
    block = {
        "CapacityBlockId": "cb-1",
        "UltraserverType": "u-p6e-gb200x72",
        "AvailabilityZone": "us-east-1d",
        "CapacityReservationIds": ["cr-0b10c5", "cr-0e"],
        "StartDate": "2026-07-01T04:30:00-07:00",
        "EndDate": "2026-07-02T11:30:00Z",
        "State": "active",
    }
    write(tmp_path / "blocks.json", {"CapacityBlocks": [block]})
    write(tmp_path / "reservations.json", {"CapacityReservations": [CR]})
    known, lone = rows(source(tmp_path))
    assert (known["instance_type"], known["ultraserver_type"]) == ("p5.48xlarge", "u-p6e-gb200x72")
    assert (lone["reservation_id"], lone["region_id"], lone["started_at"]) == ("cr-0e", "us-east-1", START)


def test_an_open_reservation_has_no_end_and_milliseconds_stay(tmp_path: Path) -> None:
    open_one = {**CR, "ReservationType": None, "EndDate": None, "StartDate": None, "CreateDate": 1783251000.5}
    (row,) = rows(source(write(tmp_path / "cr.json", {"CapacityReservations": [open_one]})))
    assert (row["reservation_kind"], row["ended_at"]) == ("odcr", None)
    # 1783251000 s after 1970 is 5 July 2026 11:30 UTC (`date -u -d @1783251000`).
    assert row["started_at"] == datetime(2026, 7, 5, 11, 30, 0, 500_000)


def test_a_training_plan_has_a_part_for_each_capacity_and_one_fee(tmp_path: Path) -> None:
    capacities = [
        {"InstanceType": "ml.p5.48xlarge", "TotalInstanceCount": 4, "StartTime": 1783337400, "EndTime": 1783423800},
        {"InstanceType": "ml.p5.48xlarge", "TotalInstanceCount": 4, "EndTime": 1783337400},
    ]
    write(tmp_path / "plan.json", {**PLAN, "ReservedCapacitySummaries": capacities})
    first, second = rows(source(tmp_path))
    assert [first["reservation_id"], first["part_no"], second["part_no"]] == [PLAN_ARN, 1, 2]
    # The plan starts at 1783251000; its second capacity starts when the first one ends.
    assert first["ended_at"] == second["started_at"] == datetime(2026, 7, 6, 11, 30)
    assert (first["upfront_fee"], first["currency"], second["upfront_fee"]) == (Decimal("4800"), "USD", None)
    assert first["account_id"] == "000033334444"


def test_a_table_of_our_own_columns(tmp_path: Path) -> None:
    text = (
        "reservation_id,reservation_kind,instance_type,instance_count,started_at,ended_at,upfront_fee,currency\n"
        f"cr-0b10c5,capacity_block,p5.48xlarge,2,2026-07-01T11:30:00Z,2026-07-02T11:30:00Z,1993.344,USD\n"
        f"{PLAN_ARN},training_plan,,,2026-07-01T11:30:00Z,2026-07-02T11:30:00Z,,\n"
    )
    plan, block = rows(source(write(tmp_path / "held.csv", text)))
    assert (block["instance_count"], block["upfront_fee"]) == (2, Decimal("1993.344"))
    assert (plan["reservation_id"], plan["instance_count"], plan["ended_at"]) == (PLAN_ARN, None, END)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (f"{PLAN_ARN},training_plan,2,soon,2026-07-03T11:30:00Z", ["cr-1", f"{PLAN_ARN}-b"]),
        # It may be of any plan of the file: how many parts each has is unknown.
        (f"{PLAN_ARN},training_plan,2", ["cr-1"]),
    ],
)
def test_a_plan_with_a_malformed_part_is_left_out_whole(tmp_path: Path, line: str, kept: list[str]) -> None:
    window = "2026-07-01T11:30:00Z,2026-07-02T11:30:00Z"
    whole = f"{PLAN_ARN},training_plan,1,{window}\n{PLAN_ARN}-b,training_plan,1,{window}\ncr-1,odcr,1,{window}\n"
    text = f"reservation_id,reservation_kind,part_no,started_at,ended_at\n{whole}{line}\n"
    found = read_reservations([source(write(tmp_path / "held.csv", text))], accelerator_families())
    assert sorted(found.table["reservation_id"]) == sorted(kept)
    assert "held.csv line 5" in found.warnings[0]


def test_the_same_reported_twice_counts_once_and_the_later_state_stands(tmp_path: Path) -> None:
    write(tmp_path / "1.json", {"CapacityReservations": [{**CR, "State": "scheduled"}]})
    write(tmp_path / "2.json", {"CapacityReservations": [{**CR, "InstanceType": None}]})
    (row,) = rows(source(tmp_path))
    assert (row["state"], row["instance_type"]) == ("active", "p5.48xlarge")


def test_what_is_passed_over_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "notes.txt", "x")
    write(tmp_path / "cr.json", {"CapacityReservations": [{**CR, "EndDate": None}]})
    warnings = read_reservations([source(tmp_path)], accelerator_families()).warnings
    window, others = sorted(warnings, key=lambda warning: "skipped" in warning)
    assert "cr-0b10c5 has no window; its fee is spread over the hours on the bill" in window
    assert "notes.txt is skipped" in others


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ({"State": "actve"}, "cr-0b10c5 has the unknown state 'actve'; "),
        ({"TotalInstanceCount": 0}, "cr-0b10c5 has 0 instances; their number is read as unknown"),
        ({"InstanceType": "p5.49xlarge"}, "cr-0b10c5 has the instance type 'p5.49xlarge', which is not in "),
        ({"InstanceType": "p5.49xlarge", "ReservationType": "default"}, "has the instance type 'p5.49xlarge'"),
        ({"InstanceType": "p5", "ReservationType": "default"}, "has the instance type 'p5'"),
        # Blocks are sold of accelerators alone; anybody may reserve another machine.
        ({"InstanceType": "m5.large"}, "has the instance type 'm5.large'"),
    ],
)
def test_what_is_odd_is_read_and_reported(tmp_path: Path, odd: dict[str, Any], message: str) -> None:
    write(tmp_path / "cr.json", {"CapacityReservations": [{**CR, **odd}]})
    (warning,) = read_reservations([source(tmp_path)], accelerator_families()).warnings
    assert f"cr.json CapacityReservations number 1: {CR['CapacityReservationId']} " in warning
    assert message in warning


@pytest.mark.parametrize(
    "usual",
    [
        {},
        {"State": "payment-pending"},
        {"InstanceType": "m5.large", "ReservationType": "default"},
        {"InstanceType": "ml.p5.48xlarge"},
    ],
)
def test_what_is_usual_leaves_no_warning(tmp_path: Path, usual: dict[str, Any]) -> None:
    write(tmp_path / "cr.json", {"CapacityReservations": [{**CR, **usual}]})
    assert read_reservations([source(tmp_path)], accelerator_families()).warnings == []


def test_the_fingerprint_follows_the_files(tmp_path: Path) -> None:
    path = write(tmp_path / "cr.json", {"CapacityReservations": [CR]})
    before = ANSWERS.fingerprint(source(tmp_path))
    assert ANSWERS.fingerprint(source(tmp_path)) == before
    write(path, {"CapacityReservations": [CR, {**CR, "CapacityReservationId": "cr-0f"}]})
    assert ANSWERS.fingerprint(source(tmp_path)) != before


def test_a_file_in_a_bucket(s3_endpoint: str) -> None:
    s3 = boto3.client("s3", endpoint_url=s3_endpoint)
    s3.create_bucket(Bucket="held")
    s3.put_object(Bucket="held", Key="ml/cr.json", Body=json.dumps({"CapacityReservations": [CR]}))
    for location in ("s3://held/ml/", "s3://held/ml/cr.json"):
        (row,) = rows(source(location, endpoint_url=s3_endpoint))
        assert row["reservation_id"] == "cr-0b10c5"


@pytest.fixture
def answers(s3_endpoint: str) -> Iterator[Answers]:
    """A server that answers as AWS does; the credentials are those of the S3 one."""
    with aws_answers() as made:
        yield made


def aws(answers: Answers, *regions: str) -> AnswerSource:
    return AnswerSource(name="live", kind="aws", regions=regions or ("us-west-2",), endpoint_url=answers.url)


def test_aws_itself_is_read_page_by_page(answers: Answers) -> None:
    inventory = read_reservations([aws(answers)], accelerator_families())
    plan, odcr, block = inventory.table.to_dicts()
    assert inventory.warnings == []
    assert (block["started_at"], block["ended_at"], block["instance_count"]) == (START, END, 2)
    assert (block["ultraserver_type"], block["state"]) == ("u-p6e-gb200x72", "scheduled")
    assert (odcr["reservation_kind"], odcr["started_at"]) == ("odcr", datetime(2026, 7, 14, 10, 0, 0, 500_000))
    assert (odcr["region_id"], odcr["ended_at"]) == ("us-west-2", None)
    assert (plan["upfront_fee"], plan["started_at"]) == (Decimal("4800"), datetime(2026, 7, 5, 11, 30))
    pages = ["DescribeCapacityReservations 1", "DescribeCapacityReservations 2", "DescribeCapacityBlocks 1"]
    assert answers.calls == [*pages, "ListTrainingPlans 1", "ListTrainingPlans 2"]


def test_every_region_is_read_and_repeated_answers_count_once(answers: Answers) -> None:
    assert len(rows(aws(answers, "us-west-2", "us-east-1"))) == 3
    assert len(answers.calls) == 10


def test_the_fingerprint_follows_the_answers(answers: Answers) -> None:
    before = ANSWERS.fingerprint(aws(answers))
    assert ANSWERS.fingerprint(aws(answers)) == before
    answers.pages["ListTrainingPlans"] = [{"TrainingPlanSummaries": [{**PLAN, "Status": "Active"}]}]
    assert ANSWERS.fingerprint(aws(answers)) != before


@pytest.mark.parametrize(
    ("call", "code", "permission"),
    [
        ("DescribeCapacityReservations", "UnauthorizedOperation", "ec2:DescribeCapacityReservations"),
        ("DescribeCapacityBlocks", "UnauthorizedOperation", "ec2:DescribeCapacityBlocks"),
        ("ListTrainingPlans", "AccessDeniedException", "sagemaker:ListTrainingPlans"),
    ],
)
def test_a_missing_permission_is_named(answers: Answers, call: str, code: str, permission: str) -> None:
    answers.errors[call] = code
    with pytest.raises(SourceError, match=rf"live, us-west-2: access is denied; grant {permission}\.$") as refused:
        read_reservations([aws(answers)], accelerator_families())
    assert not isinstance(refused.value, UnreachableError)


@pytest.mark.parametrize("page", [None, "sign in", {"TrainingPlanSummaries": ["x"]}])
def test_an_answer_of_another_form(answers: Answers, page: object) -> None:
    answers.pages["ListTrainingPlans"] = [page]
    malformed = r"live, us-west-2 did not answer sagemaker:ListTrainingPlans \(its answer is malformed\); check the "
    with pytest.raises(UnreachableError, match=malformed):
        read_reservations([aws(answers)], accelerator_families())


def test_what_the_api_lacks_is_reported(answers: Answers) -> None:
    answers.errors["DescribeCapacityBlocks"] = "InvalidAction"
    inventory = read_reservations([aws(answers)], accelerator_families())
    assert inventory.table.height == 3
    assert inventory.warnings == [
        "[[reservations]] live, us-west-2: ec2:DescribeCapacityBlocks is not supported here; "
        "such capacity is not read. Name it in a file if you hold it."
    ]


def test_credentials_that_are_not_accepted(answers: Answers) -> None:
    answers.errors["DescribeCapacityReservations"] = "AuthFailure"
    with pytest.raises(SourceError, match="the credentials are not accepted; renew them"):
        read_reservations([aws(answers)], accelerator_families())
