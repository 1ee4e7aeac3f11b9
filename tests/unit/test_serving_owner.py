"""Owners of Bedrock and SageMaker dollars without resource tags: rows AWS prints (standards-2026 3), and a bill."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random

from pydantic import SecretStr
from support.bills import write_config, write_events, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.config.policy import Privacy
from pipelines.warehouse.pseudonyms import Pseudonyms

USER, ROLE = "arn:aws:iam::123456789012:user/user-1", "arn:aws:sts::123456789012:assumed-role/Role-1"
# Principal, tags and cost of the rows AWS prints; the price is of a session of the role.
PRINTED = [
    (USER, {"iamPrincipal/team": "BedrockDataScience"}, "0.0693"),
    (USER, {"iamPrincipal/team": "BedrockDataScience"}, "0.2145"),
    ("arn:aws:iam::123456789012:user/user-2", {"iamPrincipal/team": "BedrockDataScience"}, "0.1980"),
    ("arn:aws:iam::123456789012:user/user-2", {"iamPrincipal/team": "BedrockDataScience"}, "0.9900"),
    (f"{ROLE}/session-123", {"iamPrincipal/project": "DocFlow"}, "0.0330"),
    (f"{ROLE}/session-123", {"iamPrincipal/project": "DocFlow"}, "0.1650"),
    ("arn:aws:sts::123456789012:assumed-role/Role-2/session-456", {"iamPrincipal/project": "ChatBackend"}, "0.0810"),
    ("arn:aws:sts::123456789012:assumed-role/Role-2/session-456", {"iamPrincipal/project": "ChatBackend"}, "0.0500"),
]
OURS = [
    # A tag of the inference profile comes before that of its caller.
    (USER, {"resourceTags/user:team": "search", "iamPrincipal/team": "BedrockDataScience"}, "0.1000"),
    ("", {}, "0.0500"),
]


def test_owners_without_resource_tags(tmp_path: Path) -> None:
    """Sum 1.8008 + 0.10 + 0.05 = 1.9508; all but 0.05 has an owner: 1.9008 / 1.9508 = 0.974369.

    BedrockDataScience, folded: 0.0693 + 0.2145 + 0.198 + 0.99 = 1.4718; Role-1: 0.198; Role-2: 0.131.
    """
    lines = [
        {
            "line_item_usage_start_date": "2026-07-10T10:00:00.000Z",
            "line_item_usage_end_date": "2026-07-10T11:00:00.000Z",
            "line_item_usage_type": "USE1-Claude4.6Sonnet-input-tokens",
            "line_item_usage_amount": "1",
            "line_item_unblended_cost": cost,
            "line_item_product_code": "AmazonBedrock",
            "line_item_operation": "InvokeModelInference",
            "pricing_unit": "1K tokens",
            "line_item_iam_principal": principal,
            "tags": json.dumps(tags) if tags else "",
        }
        for principal, tags, cost in (*PRINTED, *OURS)
    ]
    export = write_export(tmp_path, {"2026-07": lines})
    builder = lazy_warehouse(write_config(tmp_path, billing=export, runs=write_events(tmp_path / "runs", [])))
    rows = ask(
        builder,
        "select team, owner, owner_evidence, iam_principal, effective_cost_usd, month_owned_ratio "
        "from detail_serving_owner_monthly order by team nulls last, owner nulls last",
    ).rows()
    assert [(*row[:3], row[4]) for row in rows] == [
        ("bedrockdatascience", "user-1", "tag", Decimal("0.2838")),
        ("bedrockdatascience", "user-2", "tag", Decimal("1.188")),
        ("search", "user-1", "tag", Decimal("0.1")),
        (None, "Role-1", "caller", Decimal("0.198")),
        (None, "Role-2", "caller", Decimal("0.131")),
        (None, None, None, Decimal("0.05")),
    ]
    assert {row[5] for row in rows} == {Decimal("0.974369")}
    # Sessions are named after people.
    assert rows[3][3] == ROLE


BEDROCK = {
    "line_item_usage_type": "USE1-Claude4.6Sonnet-input-tokens",
    "line_item_product_code": "AmazonBedrock",
    "line_item_operation": "InvokeModelInference",
    "pricing_unit": "1K tokens",
}
SAGEMAKER = {"line_item_product_code": "AmazonSageMaker", "line_item_operation": "RunInstance"}
VISION = SAGEMAKER | {"tags": {"userAttribute/team": "vision"}}
CHAT = "arn:aws:sagemaker:us-east-1:111122223333:endpoint/chat"
PROFILE = "arn:aws:bedrock:us-east-1:111122223333:application-inference-profile/abc1"
PROJECT = "arn:aws:bedrock-mantle:us-east-1:111122223333:project/proj_1"
# Of each hundred lines so many: team and evidence of their owner, and what they have. No line has a tag of a resource.
KINDS = [
    (25, "research", "tag", BEDROCK | {"line_item_iam_principal": USER, "tags": {"iamPrincipal/team": "Research"}}),
    (10, "legal", "tag", BEDROCK | {"line_item_user_identifier": "9067-1", "tags": {"userAttribute/team": "legal"}}),
    (20, "search", "role", BEDROCK | {"line_item_iam_principal": f"{ROLE}/alice@acme.dev"}),
    (8, "search", "role", BEDROCK | {"line_item_iam_principal": f"{ROLE}/bob", "line_item_resource_id": PROFILE}),
    (5, None, "caller", BEDROCK | {"line_item_iam_principal": USER, "line_item_resource_id": PROJECT}),
    (12, "apps", "account", SAGEMAKER | {"line_item_usage_type": "Host:ml.g5.xlarge", "line_item_resource_id": CHAT}),
    (9, "apps", "account", SAGEMAKER | {"line_item_usage_type": "Notebk:ml.t3.medium"}),
    (8, "vision", "tag", VISION | {"line_item_usage_type": "Studio:ml.m5.large"}),
    (3, None, None, BEDROCK | {"line_item_usage_account_id": "999900001111"}),
]  # fmt: skip


def generated(random: Random) -> Iterator[tuple[str | None, str | None, dict[str, str]]]:
    """A month of 600 lines of 10 cents to 10 dollars: the team of each, its evidence and the line."""
    for _ in range(6):
        for count, team, evidence, line in KINDS:
            for _ in range(count):
                day, hour = random.randint(1, 31), random.randint(0, 22)
                cells = {"line_item_usage_account_id": "111122223333", "line_item_usage_amount": "1", **line}
                cells |= {
                    "line_item_usage_start_date": f"2026-07-{day:02d}T{hour:02d}:00:00.000Z",
                    "line_item_usage_end_date": f"2026-07-{day:02d}T{hour + 1:02d}:00:00.000Z",
                    "line_item_unblended_cost": str(Decimal(random.randint(10, 1000)) / 100),
                    "tags": json.dumps(line["tags"]) if "tags" in line else "",
                }
                yield team, evidence, cells


def test_owners_of_a_generated_bill(tmp_path: Path) -> None:
    """Each dollar has the team it was generated with, and 97 % of the lines have an owner."""
    lines = list(generated(Random(21)))
    expected: dict[tuple[str | None, str | None], Decimal] = defaultdict(Decimal)
    for team, evidence, cells in lines:
        expected[team, evidence] += Decimal(cells["line_item_unblended_cost"])
    config = write_config(
        tmp_path,
        billing=write_export(tmp_path, {"2026-07": [cells for _, _, cells in lines]}),
        runs=write_events(tmp_path / "runs", []),
    )
    with config.open("a") as file:
        file.write('\n[teams]\nroles = {"Role-1" = "Search"}\naccounts = {"111122223333" = "apps"}\n')
    builder = lazy_warehouse(config)
    rows = ask(
        builder,
        "select team, owner_evidence, sum(effective_cost_usd), max(month_owned_ratio), max(iam_principal) "
        "from detail_serving_owner_monthly group by team, owner_evidence",
    ).rows()
    # A caller without a team has that of its account, and is its owner.
    expected["apps", "caller"] = expected.pop((None, "caller"))
    assert {(team, evidence): cost for team, evidence, cost, *_ in rows} == expected
    owned = 1 - expected[None, None] / sum(expected.values())
    assert {ratio for *_, ratio, _ in rows} == {owned.quantize(Decimal("1e-6"))}
    assert owned >= Decimal("0.95")
    used = ask(builder, "select sum(effective_cost_usd) from detail_bedrock_usage_daily where team = 'Search'").item()
    assert used == expected["search", "role"]
    assert not [row for row in rows if "alice" in str(row) or "bob" in str(row)]


def test_a_user_who_calls_has_a_pseudonym_and_a_role_keeps_its_name() -> None:
    names = Pseudonyms(Privacy(pseudonyms=("users",), key=SecretStr("k" * 32)), ("team",))
    user, role, other = (names.value("iam_principal", one) for one in (USER, ROLE, "90677f5c-1"))
    assert user == f"arn:aws:iam::123456789012:user/{names.user('user-1')}"
    assert role == ROLE
    assert other == names.user("90677f5c-1")
    tags = names.value("Tags", json.dumps({"iamPrincipal/team": "alice", "app": "x"}))
    assert json.loads(tags) == {"iamPrincipal/team": names.user("alice"), "app": "x"}
