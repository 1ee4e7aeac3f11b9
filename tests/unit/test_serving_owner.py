"""Owners of Bedrock dollars without resource tags: the eight rows AWS prints (standards-2026 3), and two of ours."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

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


def test_a_user_who_calls_has_a_pseudonym_and_a_role_keeps_its_name() -> None:
    names = Pseudonyms(Privacy(pseudonyms=("users",), key=SecretStr("k" * 32)), ("team",))
    user, role, other = (names.value("iam_principal", one) for one in (USER, ROLE, "90677f5c-1"))
    assert user == f"arn:aws:iam::123456789012:user/{names.user('user-1')}"
    assert role == ROLE
    assert other == names.user("90677f5c-1")
    tags = names.value("Tags", json.dumps({"iamPrincipal/team": "alice", "app": "x"}))
    assert json.loads(tags) == {"iamPrincipal/team": names.user("alice"), "app": "x"}
