"""Capacity on offer: Capacity Blocks and Spot placement scores, saved, queried and next to the portfolio's options."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from support.aws_answers import aws_answers
from support.lab import Lab
from support.ledgers import ask
from support.stories import build_story

from pipelines.base.errors import SourceError
from pipelines.config.sources import CapacityOfferSource
from pipelines.ingest.inventory.offers import read_offers

KNOWN = {"trn2.48xlarge": "trainium", "trn1.32xlarge": "trainium", "p5.48xlarge": "gpu"}
# A block that starts now runs to 11:30 UTC (facts standards-2026 4): 19 h 17 min for 689.59.
BLOCK = {
    "CapacityBlockOfferingId": "cb-0a1b2c",
    "InstanceType": "trn2.48xlarge",
    "AvailabilityZone": "ap-south-2a",
    "InstanceCount": 1,
    "StartDate": "2026-10-03T16:13:00.000Z",
    "EndDate": "2026-10-04T11:30:00.000Z",
    "CapacityBlockDurationHours": 19,
    "CapacityBlockDurationMinutes": 17,
    "UpfrontFee": "689.59",
    "CurrencyCode": "USD",
    "Tenancy": "default",
}
SCORES = {
    "SpotPlacementScores": [{"Region": "us-west-2", "Score": 3}, {"Region": "us-west-2", "Score": 7}],
    "InstanceTypes": ["p5.48xlarge"],
    "TargetCapacity": 2,
}


def saved(folder: Path, **answers: Any) -> CapacityOfferSource:
    folder.mkdir(exist_ok=True)
    for name, answer in answers.items():
        (folder / f"{name.replace('_', '-')}.json").write_text(json.dumps(answer))
    return CapacityOfferSource(name="seen", location=str(folder))


def test_saved_answers_of_the_newest_day_count(tmp_path: Path) -> None:
    older = {"CapacityBlockOfferings": [{**BLOCK, "UpfrontFee": "1.00"}]}
    answers = {
        "2026-10-02_blocks": older,
        "2026-10-03_blocks": {"CapacityBlockOfferings": [BLOCK]},
        "2026-10-03": SCORES,
    }
    found = read_offers([saved(tmp_path / "offers", **answers)], KNOWN)
    assert found.warnings == []
    # 689.59 / (19 + 17/60) = 35.7609.
    with Lab({}, {}, offers=found.table.to_dicts()) as lab:
        rows = lab.ask(
            "select instance_type, region_id, purchase_option, lead_days, round(price_per_hour_usd, 4), block_hours, "
            "placement_score from stg_aws__capacity_offer order by all",
            "stg_aws__capacity_offer",
        )
    assert rows == [
        ("p5.48xlarge", "us-west-2", "spot", None, None, None, 3),
        ("p5.48xlarge", "us-west-2", "spot", None, None, None, 7),
        ("trn2.48xlarge", "ap-south-2", "capacity_block", 0, Decimal("35.7609"), 19, None),
    ]


def test_a_block_that_starts_now_may_be_of_the_day_before_in_utc(tmp_path: Path) -> None:
    """At 16:13 UTC it is the next day in Sydney, after which the file is named; the block can be had at once."""
    found = read_offers([saved(tmp_path / "offers", **{"2026-10-04": {"CapacityBlockOfferings": [BLOCK]}})], KNOWN)
    with Lab({}, {}, offers=found.table.to_dicts()) as lab:
        assert lab.ask("select lead_days from stg_aws__capacity_offer", "stg_aws__capacity_offer") == [(0,)]


def test_aws_is_queried_for_each_region_and_type(monkeypatch: pytest.MonkeyPatch) -> None:
    block = (
        "<capacityBlockOfferingSet><item><instanceType>p5.48xlarge</instanceType><instanceCount>2</instanceCount>"
        "<availabilityZone>us-west-2b</availabilityZone><startDate>2099-07-03T11:30:00.000Z</startDate>"
        "<endDate>2099-07-05T11:30:00.000Z</endDate><upfrontFee>4584.96</upfrontFee><currencyCode>USD</currencyCode>"
        "</item></capacityBlockOfferingSet>"
    )
    score = "<spotPlacementScoreSet><item><region>us-west-2</region><score>4</score></item></spotPlacementScoreSet>"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with aws_answers() as aws:
        aws.pages = {"DescribeCapacityBlockOfferings": [block], "GetSpotPlacementScores": [score]}
        source = CapacityOfferSource(
            name="live", kind="aws", regions=("us-west-2",), endpoint_url=aws.url, instance_types=("p5.48xlarge",),
            instance_count=2, block_hours=48,
        )  # fmt: skip
        rows = read_offers([source], KNOWN).table.sort("purchase_option").to_dicts()
        aws.errors["GetSpotPlacementScores"] = "UnauthorizedOperation"
        with pytest.raises(
            SourceError, match=r"live, us-west-2: access is denied; grant ec2:GetSpotPlacementScores\.$"
        ):
            read_offers([source], KNOWN)
    assert aws.calls[:2] == ["DescribeCapacityBlockOfferings 1", "GetSpotPlacementScores 1"]
    assert [(row["upfront_fee"], row["started_at"], row["placement_score"], row["instance_count"]) for row in rows] == [
        (Decimal("4584.96"), datetime(2099, 7, 3, 11, 30), None, 2),
        (None, None, 4, 2),
    ]
    assert {row["recorded_date"] for row in rows} <= {datetime.now(UTC).date(), date.today()}


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("blocks", {"CapacityBlockOfferings": []}, "blocks.json is not named after the day of its answer; rename it"),
        ("2026-10-03", {"CapacityBlocks": []}, "has neither CapacityBlockOfferings"),
        (
            "2026-10-03",
            {**SCORES, "InstanceTypes": None},
            "has no InstanceTypes and TargetCapacity, which AWS's answer",
        ),
        ("2026-10-03", {**SCORES, "SpotPlacementScores": [{"Score": 11}]}, "write a whole number of points"),
        ("2026-10-03", {**SCORES, "SpotPlacementScores": [{"Score": 0}]}, "has the Score 0; AWS gives 1 to 10"),
        (
            "2026-10-03",
            {"CapacityBlockOfferings": [{**BLOCK, "UpfrontFee": None}]},
            "has no UpfrontFee; save the whole",
        ),
        ("2026-10-03", {"CapacityBlockOfferings": [{**BLOCK, "EndDate": BLOCK["StartDate"]}]}, "not after it starts"),
        (
            "2026-10-03",
            {"CapacityBlockOfferings": [{**BLOCK, "StartDate": "2026-10-01T16:13:00Z"}]},
            "2026-10-03.json has an offer of 2026-10-01; name it after the day of its answer",
        ),
    ],
)
def test_what_is_no_answer_is_left_out_by_name(tmp_path: Path, name: str, answer: Any, words: str) -> None:
    good = {"2026-10-03_good": {"CapacityBlockOfferings": [BLOCK]}}
    found = read_offers([saved(tmp_path / "offers", **{name: answer}, **good)], KNOWN)
    (warning,) = found.warnings
    assert words in warning
    assert warning.endswith("Until then it is left out.")
    assert found.table.height == 1


def test_a_damaged_newest_answer_makes_no_older_one_the_newest(tmp_path: Path) -> None:
    source = saved(tmp_path / "offers", **{"2026-10-03": {"CapacityBlockOfferings": [BLOCK]}})
    (tmp_path / "offers" / "2026-10-04.json").write_text('{"CapacityBlockOfferings": [')
    found = read_offers([source], KNOWN)
    assert found.table.is_empty()
    assert "2026-10-04.json" in found.warnings[0]


def test_no_offer_and_an_unlisted_type_are_warnings(tmp_path: Path) -> None:
    empty = saved(tmp_path / "empty", **{"2026-10-03": {"CapacityBlockOfferings": []}})
    unlisted = saved(tmp_path / "unlisted", **{"2026-10-03": {"CapacityBlockOfferings": [BLOCK]}})
    malformed = saved(tmp_path / "malformed", **{"2026-10-03": {}})
    warnings = read_offers([malformed, empty, unlisted], {}).warnings
    assert "malformed" in warnings.pop(0)
    assert [sentence.partition("; ")[0] for sentence in warnings] == [
        "[[capacity_offers]] seen contains no offer",
        "[[capacity_offers]] seen: trn2.48xlarge is not in ref_instance_type.csv, so its offers count for no workload",
    ]


def test_price_wait_and_chance_stand_next_to_each_option(tmp_path: Path) -> None:
    """The story has p5 on demand in 21 days. A block of two days for 2 p5 at 4584.96 is 47.76 an hour, 8 days ahead."""
    story = copytree(Path(__file__).parents[1] / "golden/wins_ties_and_losses", tmp_path / "story")
    zone = {"InstanceType": "p5.48xlarge", "AvailabilityZone": "us-west-2b", "InstanceCount": 2}
    window = {"StartDate": "2026-08-02T11:30:00Z", "EndDate": "2026-08-04T11:30:00Z"}
    block = {**BLOCK, **zone, **window, "UpfrontFee": "4584.96"}
    source = saved(tmp_path / "offers", **{"2026-07-25": {"CapacityBlockOfferings": [block], **SCORES}})
    with (story / "decisions.toml").open("a") as config:
        config.write(f'\n[[capacity_offers]]\nname = "seen"\nlocation = "{source.location}"\n')
    builder = build_story(story, tmp_path, {"mart_portfolio"})
    columns = ("offer", "offer_price_per_hour_usd", "lead_days", "placement_score")
    (row,) = ask(
        builder,
        f"select {', '.join(f'{side}_{name}' for side in ('baseline', 'candidate') for name in columns)} "
        "from mart_portfolio where workload_id like 'win%'",
    ).rows()
    assert row[:4] == ("p5.48xlarge capacity block in us-west-2", Decimal("47.76"), 8, 7)
    assert row[4:] == ("trn1.32xlarge capacity block in us-west-2", Decimal("9.532"), 3, None)
