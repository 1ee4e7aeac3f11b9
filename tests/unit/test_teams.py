"""Whose a dollar is: spellings of a team, accounts of a team, and units of an organization as of the day."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from support.bills import instance_hour, write_config, write_events, write_export
from support.ledgers import ask, lazy_warehouse

from pipelines.base.errors import UsageError
from pipelines.config.settings import load_settings
from pipelines.config.teams import Teams

UNITS = [
    {"Id": "ou-ab12-1", "Name": "Research", "ParentId": "r-ab12"},
    {"Id": "ou-ab12-2", "Name": "Models", "ParentId": "ou-ab12-1"},
    {"Id": "ou-ab12-3", "Name": "Platform", "ParentId": "r-ab12"},
]
ACCOUNT = "000033334444"


def answer(folder: Path, day: str, parent: object) -> None:
    """What AWS Organizations answered on a day, when the account was in the unit `parent`."""
    folder.mkdir(exist_ok=True)
    content = {"OrganizationalUnits": UNITS, "Accounts": [{"Id": ACCOUNT, "ParentId": parent}]}
    (folder / f"{day}.json").write_text(json.dumps(content))


def settings(root: Path, teams: str) -> Teams:
    write_config(root, billing=root / "export", runs=root / "events")
    with (root / "trainledger.toml").open("a") as config:
        config.write(f"\n[teams]\n{teams}\n")
    return load_settings(root / "trainledger.toml").teams


def test_an_account_is_its_units_teams_as_of_the_day(tmp_path: Path) -> None:
    # A day without its signs comes last by name.
    answer(tmp_path / "organization", "20260701", "ou-ab12-2")
    answer(tmp_path / "organization", "2026-07-15", "ou-ab12-3")
    answer(tmp_path / "organization", "2026-08-01", "r-ab12")
    teams = settings(tmp_path, 'organization = "organization"\nunits = {"Research" = "vision", "ou-ab12-3" = "infra"}')
    # Models has no team of its own, Research above it has; the root has none.
    assert teams.record() == [
        [ACCOUNT, "0001-01-01", "2026-07-14", "vision"],
        [ACCOUNT, "2026-07-15", "2026-07-31", "infra"],
    ]
    assert Teams.recorded(teams.record()).assigned == teams.assigned


def test_days_in_a_row_of_one_team_are_one_row(tmp_path: Path) -> None:
    """1,000 accounts with an answer a day were 20,000 rows after 20 days, for which 2 GB did not suffice."""
    for day, unit in enumerate((1, 1, 1, 3, 1, 1), start=1):
        answer(tmp_path / "organization", f"2026-07-{day:02d}", f"ou-ab12-{unit}")
    teams = settings(tmp_path, 'organization = "organization"\nunits = {"Research" = "vision", "ou-ab12-3" = "infra"}')
    assert teams.record() == [
        [ACCOUNT, "0001-01-01", "2026-07-03", "vision"],
        [ACCOUNT, "2026-07-04", "2026-07-04", "infra"],
        [ACCOUNT, "2026-07-05", "9999-12-31", "vision"],
    ]


def test_the_nearest_unit_counts_and_an_account_of_its_own_wins(tmp_path: Path) -> None:
    answer(tmp_path / "organization", "2026-07-01", "ou-ab12-2")
    units = 'organization = "organization"\nunits = {"Research" = "vision", "Research/Models" = "nlp"}'
    assert [one.team for one in settings(tmp_path, units).assigned] == ["nlp"]
    own = f'{units}\naccounts = {{"{ACCOUNT}" = "platform"}}'
    assert settings(tmp_path, own).record() == [[ACCOUNT, "0001-01-01", "9999-12-31", "platform"]]


def test_units_that_are_above_each_other_end_the_search(tmp_path: Path) -> None:
    """AWS has no such units, and an answer changed by hand may."""
    answer(tmp_path / "organization", "2026-07-01", "ou-ab12-4")
    file = tmp_path / "organization" / "2026-07-01.json"
    content = json.loads(file.read_text())
    content["OrganizationalUnits"] += [
        {"Id": "ou-ab12-4", "Name": "A", "ParentId": "ou-ab12-5"},
        {"Id": "ou-ab12-5", "Name": "B", "ParentId": "ou-ab12-4"},
    ]
    file.write_text(json.dumps(content))
    assert settings(tmp_path, 'organization = "organization"\nunits = {"Research" = "vision"}').assigned == ()


@pytest.mark.parametrize(
    ("teams", "message"),
    [
        ('units = {"Research" = "vision"}', "needs both units and organization"),
        (
            f'accounts = {{"{ACCOUNT}" = "  "}}',
            "key 'teams.accounts.000033334444': write text without control characters",
        ),
        ('organization = "organization"\nunits = {"Reserch" = "vision"}', "has the unit Reserch"),
        ('organization = "nowhere"\nunits = {"Research" = "vision"}', "has no answer of AWS Organizations"),
        ('organization = "broken"\nunits = {"Research" = "vision"}', "lacks OrganizationalUnits and Accounts"),
        ('organization = "numbers"\nunits = {"Research" = "vision"}', "each with Id, Name and ParentId"),
        ('organization = "undated"\nunits = {"Research" = "vision"}', "is not named after a day"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, teams: str, message: str) -> None:
    answer(tmp_path / "organization", "2026-07-01", "ou-ab12-2")
    answer(tmp_path / "undated", "today", "ou-ab12-2")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "2026-07-01.json").write_text('{"Roots": []}')
    answer(tmp_path / "numbers", "2026-07-01", {"Id": "ou-ab12-2"})
    with pytest.raises(UsageError, match=message) as refused:
        settings(tmp_path, teams)
    assert "\n" not in str(refused.value)


def test_recorded_answers_are_read(shared_data: Path, tmp_path: Path) -> None:
    recorded = shared_data / "billing" / "organizations" / "org_example.json"
    (tmp_path / "organization").mkdir()
    (tmp_path / "organization" / "2026-07-01.json").write_bytes(recorded.read_bytes())
    teams = settings(tmp_path, 'organization = "organization"\nunits = {"Platform" = "infra", "Research" = "science"}')
    # By ParentId in the file: two accounts in Platform, one in Research/Models, one at the root.
    assert [(one.holder, one.team) for one in teams.assigned] == [
        ("200000000011", "infra"),
        ("200000000012", "infra"),
        ("200000000013", "science"),
    ]


COSTS = "select usage_date, team, effective_cost_usd from fct_ledger order by 1, 2"


def ledger(root: Path, extra: str) -> list[tuple[str, str | None, Decimal]]:
    """Hours of $2 on four days: tagged `Vision`, tagged ` vision `, and two without a tag."""
    tags = {"05": '{"user_team": "Vision"}', "06": '{"user_team": " vision "}', "07": None, "20": None}
    write_export(
        root,
        {
            "2026-07": [
                instance_hour(f"2026-07-{day}T10", "i-0a", "g5.xlarge", "2", **({"tags": tag} if tag else {}))
                for day, tag in tags.items()
            ]
        },
    )
    write_events(root / "events", [])
    write_config(root, billing=root / "export", runs=root / "events")
    with (root / "trainledger.toml").open("a") as config:
        config.write(extra)
    rows = ask(lazy_warehouse(root / "trainledger.toml"), COSTS).rows()
    return [(f"{day:%d}", team, cost) for day, team, cost in rows]


def test_two_spellings_are_one_team_and_untagged_cost_is_the_accounts(tmp_path: Path) -> None:
    answer(tmp_path / "organization", "2026-07-01", "ou-ab12-2")
    answer(tmp_path / "organization", "2026-07-15", "ou-ab12-3")
    teams = '\n[teams]\norganization = "organization"\nunits = {"Research" = "Vision", "Platform" = "infra"}\n'
    days = [("05", "vision"), ("06", "vision"), ("07", "vision"), ("20", "infra")]
    assert ledger(tmp_path, teams) == [(day, team, Decimal(2)) for day, team in days]


def test_spellings_are_several_teams_where_configured(tmp_path: Path) -> None:
    days = [("05", "Vision"), ("06", " vision "), ("07", None), ("20", None)]
    expected = [(day, team, Decimal(2)) for day, team in days]
    assert ledger(tmp_path, '\n[policy]\nteam_spelling = "exact"\n') == expected


def test_a_tag_names_the_team_of_what_is_no_accelerator_too(tmp_path: Path) -> None:
    """A tagged hour of m5.large at $2 is its tag's, an untagged one at $3 its account's: neither is of a run."""
    hours = {"10": ("2", {"tags": '{"user_team": "Vision"}'}), "11": ("3", {})}
    lines = [
        instance_hour(f"2026-07-05T{hour}", "i-0b", "m5.large", rate, **tag) for hour, (rate, tag) in hours.items()
    ]
    write_export(tmp_path, {"2026-07": lines})
    config = write_config(tmp_path, billing=tmp_path / "export")
    config.write_text(f'{config.read_text()}\n[teams]\naccounts = {{"{ACCOUNT}" = "platform"}}\n')
    rows = ask(lazy_warehouse(config), "select bucket, team, effective_cost_usd from fct_ledger order by 2").rows()
    assert rows == [("other", "platform", Decimal(3)), ("other", "vision", Decimal(2))]
