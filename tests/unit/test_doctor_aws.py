"""`doctor` against S3 and the billing services: permissions by name, definitions and tags, and no answer at all."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.aws_answers import aws_answers
from support.billing_api import BillingApi, billing_api
from support.bills import instance_hour, write_export

from pipelines.config.settings import load_settings
from pipelines.config.sources import AnswerSource
from pipelines.doctor.aws import examine_account
from pipelines.doctor.examine import examine, examine_reservations
from pipelines.doctor.finding import Finding, exit_code

NOW = datetime(2026, 7, 4, 12)
ROOT = Path(__file__).resolve().parents[2]
POLICY = json.loads((ROOT / "deploy/iam-policy.json").read_text())


@pytest.fixture
def api(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[BillingApi]:
    """The billing services; S3 is reached by its own endpoint."""
    with billing_api() as served:
        monkeypatch.setenv("AWS_ENDPOINT_URL", served.url)
        yield served


@pytest.fixture
def s3(s3_endpoint: str) -> Any:
    import boto3

    return boto3.client("s3", endpoint_url=s3_endpoint)


def deliver(s3: Any, root: Path, endpoint: str) -> Path:
    """The places of the policy in deploy/, with a bill of one hour; returns the configuration."""
    export = write_export(root, {"2026-07": [instance_hour("2026-07-03T10", "i-0a", "p5.48xlarge", "55.04")]})
    for bucket in ("acme-billing", "acme-ml", "acme-ledger"):
        s3.create_bucket(Bucket=bucket)
    for path in sorted(export.rglob("*")):
        if path.is_file():
            key = f"cur2/ml-cur2/{path.relative_to(export).as_posix()}"
            body = path.read_bytes()
            if path.name.endswith("-Manifest.json"):
                body = body.replace(b"s3://example-billing/export/", b"s3://acme-billing/cur2/ml-cur2/")
            s3.put_object(Bucket="acme-billing", Key=key, Body=body)
    s3.put_object(Bucket="acme-ml", Key="trainledger/events.jsonl", Body=b"")
    return configured(root, endpoint)


def configured(root: Path, endpoint: str) -> Path:
    """The configuration that names those places."""
    reach = f'endpoint_url = "{endpoint}"\nregion = "us-east-1"\n'
    config = root / "trainledger.toml"
    config.write_text(
        f'[warehouse]\nlocation = "s3://acme-ledger/warehouse"\n{reach}'
        f'[[billing]]\nname = "payer"\nlocation = "s3://acme-billing/cur2/ml-cur2"\n{reach}'
        f'[[runs]]\nname = "jobs"\nlocation = "s3://acme-ml/trainledger/"\n{reach}'
    )
    return config


def found(config: Path, *, ask_aws: bool = False) -> dict[tuple[str, str], Finding]:
    findings = examine(load_settings(config), NOW, ask_aws=ask_aws)
    return {(finding.subject, finding.check): finding for finding in findings}


def definition(config: Path, kind: str) -> Finding:
    """The finding on the definition of the bill, which is of this kind; S3 is not queried."""
    settings = load_settings(config)
    findings = examine_account(settings.billing[0], settings.tag_keys, kind)
    (finding,) = (finding for finding in findings if finding.check == "export definition")
    return finding


def act_as(user: str, endpoint: str, statements: list[dict], monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on every request is judged by IAM, and made by a user who may only do this."""
    import boto3

    iam = boto3.client("iam", endpoint_url=endpoint)
    iam.create_user(UserName=user)
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_user_policy(UserName=user, PolicyName="granted", PolicyDocument=policy)
    key = iam.create_access_key(UserName=user)["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    allow_without_asking(endpoint, 0)


def allow_without_asking(endpoint: str, requests: float) -> None:
    """How many requests the server answers before IAM gets a request."""
    kind = {"Content-Type": "text/plain"}
    reset = urllib.request.Request(f"{endpoint}/moto-api/reset-auth", str(requests).encode(), kind, method="POST")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(reset).close()


@pytest.fixture
def judged(s3_endpoint: str) -> Iterator[str]:
    """The S3 server, on which a test may have IAM judge requests; after it everybody may do everything again."""
    try:
        yield s3_endpoint
    finally:
        allow_without_asking(s3_endpoint, float("inf"))


def test_the_policy_of_deploy_is_enough(s3: Any, judged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = deliver(s3, tmp_path, judged)
    act_as("reader", judged, POLICY["Statement"], monkeypatch)
    findings = found(config)
    assert [finding for finding in findings.values() if finding.status == "fail"] == []
    assert findings["billing payer", "hourly"].status == "ok"
    for action in ("PutObject", "GetObject", "DeleteObject"):
        assert findings["warehouse", action].status == "ok"


# What the policy lacks, the finding that reports it, and the permission it names.
LESS = [
    ("s3:ListBucket", ("billing payer", "reachable"), "s3:ListBucket on arn:aws:s3:::acme-billing is denied"),
    ("s3:GetObject", ("billing payer", "readable"), "s3:GetObject on arn:aws:s3:::acme-billing/cur2/ml-cur2/* is den"),
    ("s3:GetObject", ("runs jobs", "readable"), "s3:GetObject on arn:aws:s3:::acme-ml/trainledger/* is denied"),
    ("s3:PutObject", ("warehouse", "writable"), "s3:PutObject on arn:aws:s3:::acme-ledger/warehouse/* is denied"),
    ("s3:DeleteObject", ("warehouse", "writable"), "s3:DeleteObject on arn:aws:s3:::acme-ledger/warehouse/* is denied"),
]


@pytest.mark.parametrize(("action", "where", "message"), LESS)
def test_a_missing_permission_is_named(
    s3: Any, judged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, where: tuple, message: str
) -> None:
    config = deliver(s3, tmp_path, judged)
    less = [
        {**statement, "Action": kept}
        for statement in POLICY["Statement"]
        if (kept := [name for name in as_list(statement["Action"]) if name != action])
    ]
    act_as("reader", judged, less, monkeypatch)
    findings = found(config)
    assert findings[where].status == "fail"
    assert findings[where].message.startswith(message)
    assert findings[where].message.endswith("add it with deploy/iam-policy.json.")
    assert exit_code(findings.values()) == 3


def as_list(words: str | list[str]) -> list[str]:
    return [words] if isinstance(words, str) else words


def test_a_bucket_that_is_not_there_or_does_not_answer_ends_soon(s3: Any, s3_endpoint: str, tmp_path: Path) -> None:
    config = deliver(s3, tmp_path, s3_endpoint)
    text = config.read_text()
    config.write_text(text.replace("acme-billing", "acme-nothing"))
    findings = found(config)
    assert "there is no such bucket" in findings["billing payer", "reachable"].message
    # Nothing listens on port 9.
    config.write_text(text.replace(s3_endpoint, "http://127.0.0.1:9"))
    started = time.monotonic()
    findings = found(config)
    assert time.monotonic() - started < 30
    assert findings["billing payer", "reachable"].message.startswith("s3://acme-billing/cur2/ml-cur2")
    assert "did not answer" in findings["warehouse", "reachable"].message
    assert exit_code(findings.values()) == 3


EXPORT = "arn:aws:bcm-data-exports:us-east-1:000011112222:export/ml-cur2-1"


def exports(bucket: str = "acme-billing", status: str = "HEALTHY", **table: str) -> dict[str, Any]:
    """Answers of the export service: another export, and on a second page ours."""
    settings = {"TIME_GRANULARITY": "HOURLY", "INCLUDE_RESOURCES": "TRUE", **table}
    healthy = {"ExportStatus": {"StatusCode": "HEALTHY"}}
    return {
        "ListExports": [
            {"Exports": [{"ExportArn": "arn:other", "ExportName": "other", **healthy}]},
            {"Exports": [{"ExportArn": EXPORT, "ExportName": "ml-cur2", **healthy}]},
        ],
        "GetExport": {
            "Export": {
                "ExportArn": EXPORT,
                "Name": "ml-cur2",
                "DataQuery": {"QueryStatement": "…", "TableConfigurations": {"COST_AND_USAGE_REPORT": settings}},
                "DestinationConfigurations": {
                    "S3Destination": {
                        "S3Bucket": bucket,
                        "S3Prefix": "cur2",
                        "S3Region": "us-east-1",
                        "S3OutputConfigurations": {},
                    }
                },
                "RefreshCadence": {"Frequency": "SYNCHRONOUS"},
            },
            "ExportStatus": {"StatusCode": status, "StatusReason": "INSUFFICIENT_PERMISSION"},
        },
    }


@pytest.mark.parametrize(
    ("answers", "status", "message"),
    [
        (exports(), "ok", "TIME_GRANULARITY HOURLY, INCLUDE_RESOURCES TRUE, INCLUDE_SPLIT_COST_ALLOCATION_DATA unset"),
        (exports(TIME_GRANULARITY="DAILY"), "warn", "TIME_GRANULARITY is not HOURLY"),
        (exports(INCLUDE_RESOURCES="FALSE"), "warn", "INCLUDE_RESOURCES is not TRUE"),
        (exports(status="UNHEALTHY"), "warn", "AWS reports it as unhealthy: INSUFFICIENT_PERMISSION"),
        (exports(bucket="elsewhere"), "not checked", "has no export called ml-cur2 into bucket acme-billing"),
        ({}, "warn", "bcm-data-exports:ListExports on * is denied: add it with deploy/iam-policy.json."),
        ({"ListExports": exports()["ListExports"]}, "warn", f"bcm-data-exports:GetExport on {EXPORT} is denied"),
        ({"ListExports": {"Exports": [{}]}}, "not checked", "its answer has no ExportName"),
        ({"ListExports": {"Exports": "sign in"}}, "not checked", "its answer is malformed"),
    ],
)
def test_the_export_is_held_against_what_the_ledger_needs(
    s3_endpoint: str, api: BillingApi, tmp_path: Path, answers: dict[str, Any], status: str, message: str
) -> None:
    api.answers = answers
    finding = definition(configured(tmp_path, s3_endpoint), "cur2")
    assert (finding.status, message in finding.message) == (status, True), finding.message


def reports(**change: Any) -> dict[str, Any]:
    """The answer about a legacy report."""
    report = {
        "ReportName": "ml-cur2",
        "S3Bucket": "acme-billing",
        "TimeUnit": "HOURLY",
        "AdditionalSchemaElements": ["RESOURCES"],
        "RefreshClosedReports": True,
        **change,
    }
    return {"DescribeReportDefinitions": {"ReportDefinitions": [report]}}


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({}, "ok", "HOURLY, RESOURCES, closed months refreshed."),
        ({"TimeUnit": "DAILY"}, "warn", "its time unit is not HOURLY"),
        ({"AdditionalSchemaElements": []}, "warn", "it does not include RESOURCES"),
        ({"RefreshClosedReports": False}, "warn", "late refunds and credits of closed months are not delivered"),
        ({"S3Bucket": "elsewhere"}, "not checked", "has no report called ml-cur2 into bucket acme-billing"),
    ],
)
def test_a_legacy_report_is_held_against_what_the_ledger_needs(
    s3_endpoint: str, api: BillingApi, tmp_path: Path, change: dict[str, Any], status: str, message: str
) -> None:
    api.answers = reports(**change)
    finding = definition(configured(tmp_path, s3_endpoint), "cur")
    assert (finding.status, message in finding.message) == (status, True), finding.message


def test_the_definition_is_that_of_the_kind_of_the_bill(
    s3: Any, s3_endpoint: str, api: BillingApi, tmp_path: Path
) -> None:
    config = deliver(s3, tmp_path, s3_endpoint)
    api.answers = exports() | reports()
    of_export = found(config, ask_aws=True)["billing payer", "export definition"]
    assert of_export.status == "ok" and of_export.message.startswith("TIME_GRANULARITY HOURLY, INCLUDE_RESOURCES TRUE")
    config.write_text(config.read_text().replace('name = "payer"', 'name = "payer"\nkind = "cur"'))
    of_report = found(config, ask_aws=True)["billing payer", "export definition"]
    assert (of_report.status, of_report.message) == ("ok", "HOURLY, RESOURCES, closed months refreshed.")


def test_tags_are_reported_by_their_activation(s3: Any, s3_endpoint: str, api: BillingApi, tmp_path: Path) -> None:
    config = deliver(s3, tmp_path, s3_endpoint)
    known = [{"TagKey": "run-id", "Type": "UserDefined", "Status": "Active"}]
    later = [{"TagKey": "Owner", "Type": "UserDefined", "Status": "Inactive"}]
    later += [{"TagKey": "user:iamPrincipal/cost-center", "Type": "UserDefined", "Status": "Active"}]
    api.answers = {"ListCostAllocationTags": [{"CostAllocationTags": known}, {"CostAllocationTags": later}]}
    findings = found(config, ask_aws=True)
    by_tag = {name: findings["billing payer", f"activated {name}"] for name in ("run_id", "owner", "team")}
    assert (by_tag["run_id"].status, by_tag["run_id"].message) == ("ok", "run-id.")
    assert (by_tag["owner"].status, by_tag["owner"].message.startswith("Owner is not active")) == ("warn", True)
    assert (by_tag["team"].status, by_tag["team"].message.startswith("AWS lists none of team, Team")) == ("warn", True)
    callers = findings["billing payer", "activated tags of callers"]
    assert (callers.status, callers.message) == ("ok", "user:iamPrincipal/cost-center.")
    api.answers = {}
    denied = found(config, ask_aws=True)["billing payer", "tags activated"]
    assert denied.message == "ce:ListCostAllocationTags on * is denied: add it with deploy/iam-policy.json."


def test_aws_is_not_called_about_another_store_unless_configured(
    s3: Any, s3_endpoint: str, api: BillingApi, tmp_path: Path
) -> None:
    config = deliver(s3, tmp_path, s3_endpoint)
    findings = found(config)
    assert api.calls == []
    for check in ("export definition", "tags activated"):
        assert findings["billing payer", check].status == "not checked"
        assert findings["billing payer", check].message.startswith("because endpoint_url points to another store")


def test_reserved_capacity_names_the_missing_permission(s3_endpoint: str) -> None:
    with aws_answers() as answers:
        source = AnswerSource(name="aws", kind="aws", regions=("us-west-2",), endpoint_url=answers.url)
        (read,) = examine_reservations([source], {"p5.48xlarge": "gpu", "trn1.32xlarge": "trainium"})
        assert answers.calls.count("DescribeCapacityBlocks 1") == 1
        answers.errors["DescribeCapacityBlocks"] = "UnauthorizedOperation"
        (denied,) = examine_reservations([source], {})
    assert read == Finding("reservations aws", "readable", "ok", "3 reservations found.")
    message = "[[reservations]] aws, us-west-2: access is denied; grant ec2:DescribeCapacityBlocks."
    assert denied == Finding("reservations aws", "readable", "fail", message, 3)


def test_an_unknown_answer_is_reported_and_not_guessed(
    s3: Any, s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = deliver(s3, tmp_path, s3_endpoint)
    # The S3 server knows nothing of exports.
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    findings = found(config, ask_aws=True)
    for check in ("export definition", "tags activated"):
        assert findings["billing payer", check].status == "not checked"
