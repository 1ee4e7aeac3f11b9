"""The templates of deploy/ are what AWS accepts, and what the code asks for."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import yaml

from pipelines.doctor.finding import ACTIONS
from pipelines.ingest.billing.columns import REVIEWED
from pipelines.ingest.billing.options import ADDED

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
TEMPLATE = (DEPLOY / "billing-export.yml").read_text(encoding="utf-8")


class _Cfn(yaml.SafeLoader):
    """Reads !Ref, !Sub and !GetAtt as the text behind them."""


_Cfn.add_multi_constructor("!", lambda loader, _, node: loader.construct_scalar(node))
EXPORT = yaml.load(TEMPLATE, Loader=_Cfn)["Resources"]["Export"]["Properties"]["Export"]


def test_the_container_copies_what_is_here() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    sources = [name for line in re.findall(r"^COPY (?!--)(.+)$", text, re.MULTILINE) for name in line.split()[:-1]]
    assert "pipelines" in sources and all((DEPLOY.parent / name).exists() for name in sources)


def test_cloudformation_accepts_the_template() -> None:
    from cfnlint.api import ManualArgs, lint

    found = lint(TEMPLATE, config=ManualArgs(regions=["us-east-1"]))
    assert [f"line {match.linenumber}: {match.rule.id} {match.message}" for match in found] == []


def test_the_export_selects_every_column_we_read() -> None:
    selected = columns()
    assert len(selected) == len(set(selected))
    with REVIEWED.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["raw_table"] == "aws_cur_line_item"]
    missing = []
    for row in rows:
        # A column may also come under another name, or in a map.
        names = [row["column_name"], *(alias.partition("[")[0] for alias in row["aliases"].split("|"))]
        if not set(names) & set(selected):
            missing.append(row["column_name"])
    assert missing == []
    # Tells a CUR 2.0 export from the others (facts aws-billing 1).
    assert "bill_payer_account_name" in selected
    for start in ADDED.values():
        assert any(name.startswith(start) for name in selected), start


def columns() -> list[str]:
    found = re.fullmatch(r"SELECT (.+) FROM COST_AND_USAGE_REPORT", EXPORT["DataQuery"]["QueryStatement"])
    assert found
    return [name.strip() for name in found[1].split(",")]


def test_the_export_is_set_up_as_the_doctor_wants_it() -> None:
    from pipelines.doctor.aws import NEEDED

    settings = EXPORT["DataQuery"]["TableConfigurations"]["COST_AND_USAGE_REPORT"]
    assert NEEDED.items() <= settings.items()
    # AWS takes the values as text (facts aws-billing 1.2).
    assert all(isinstance(value, str) for value in settings.values())


def test_the_policy_grants_what_the_doctor_may_miss_and_no_more() -> None:
    granted: set[str] = set()
    for statement in json.loads((DEPLOY / "iam-policy.json").read_text(encoding="utf-8"))["Statement"]:
        actions = statement["Action"]
        granted |= {actions} if isinstance(actions, str) else set(actions)
    # A large file that is given up half-way is taken back.
    assert granted == {*ACTIONS, "s3:AbortMultipartUpload"}
    assert not any("*" in action for action in granted)
