"""Services that answer nonsense over the network: read, or refused in one sentence with the exit code of its fault."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.aws_answers import aws_answers
from support.bills import instance_hour, write_export
from support.campaign import Campaign
from support.damaged_answers import damaged_answers
from support.inputs import inputs
from support.outcomes import is_one_sentence, outcome
from support.s3_company import deliver, settings
from support.small_company import found

pytestmark = pytest.mark.slow

PER_SERVICE = 40
TEN = 1782900000000
AWS = 'kind = "aws"\nregions = ["us-west-2"]\n'
ENTRIES = {
    "reservations": f'[[reservations]]\nname = "mine"\n{AWS}',
    "commitments": f'[[commitments]]\nname = "mine"\n{AWS}',
    "invoices": f'[[invoices]]\nname = "mine"\n{AWS}accounts = ["000011112222"]\n'
    'first_month = "2026-07"\nlast_month = "2026-07"\n',
    "capacity_offers": f'[[capacity_offers]]\nname = "mine"\n{AWS}instance_types = ["p5.48xlarge"]\n'
    "instance_count = 2\nblock_hours = 48\n",
    "cloudwatch": '[[serving]]\nname = "mine"\nkind = "cloudwatch"\nregions = ["us-east-1"]\n'
    f'first_month = "{datetime.now(UTC):%Y-%m}"\n',
    "sagemaker": '[[runs]]\nname = "mine"\nkind = "sagemaker"\nlocation = "sagemaker://us-west-2"\n',
}
OFFER = (
    "<capacityBlockOfferingSet><item><instanceType>p5.48xlarge</instanceType><instanceCount>2</instanceCount>"
    "<availabilityZone>us-west-2b</availabilityZone><startDate>2099-07-03T11:30:00.000Z</startDate>"
    "<endDate>2099-07-05T11:30:00.000Z</endDate><upfrontFee>4584.96</upfrontFee><currencyCode>USD</currencyCode>"
    "</item></capacityBlockOfferingSet>"
)
SCORE = "<spotPlacementScoreSet><item><region>us-west-2</region><score>4</score></item></spotPlacementScoreSet>"
RESERVED = (
    "<reservedInstancesSet><item><reservedInstancesId>1a2b3c</reservedInstancesId><instanceType>p4d.24xlarge"
    "</instanceType><start>2026-01-01T00:00:00.000Z</start><duration>31536000</duration><fixedPrice>0.0</fixedPrice>"
    "<instanceCount>2</instanceCount><state>active</state><currencyCode>USD</currencyCode>"
    "<offeringType>No Upfront</offeringType><recurringCharges><item><frequency>Hourly</frequency>"
    "<amount>3.0</amount></item></recurringCharges></item></reservedInstancesSet>"
)


@contextmanager
def mlflow() -> Iterator[str]:
    """A tracking server with one run of three points, as MLflow 3.17 answers."""
    tags = {"aws.resource_ids": "i-1", "aws.account_id": "000033334444", "aws.region": "us-west-2"}
    info = {"run_id": "a" * 32, "run_uuid": "a" * 32, "experiment_id": "1", "status": "FINISHED",
            "start_time": TEN, "end_time": TEN + 7_200_000, "lifecycle_stage": "active"}  # fmt: skip
    points = [{"key": "loss", "value": 3 - n, "timestamp": TEN + n * 1_800_000, "step": n * 100} for n in range(3)]
    data = {
        "metrics": points[-1:],
        "params": [{"key": "model", "value": "llama"}],
        "tags": [{"key": key, "value": value} for key, value in tags.items()],
    }
    pages: dict[str, Any] = {
        "experiments/search": {"experiments": [{"experiment_id": "1", "name": "finetunes"}]},
        "runs/search": {"runs": [{"info": info, "data": data}]},
        "metrics/get-history": {"metrics": points},
    }

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = json.dumps(pages[self.path.partition("mlflow/")[2].partition("?")[0]]).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _serve

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def answering(stack: ExitStack) -> str:
    """AWS, as far as moto lacks it."""
    aws = stack.enter_context(aws_answers())
    files = inputs()
    aws.pages |= {
        "DescribeSavingsPlans": [json.loads(files["commitments"].files["sp.json"])],
        "DescribeReservedInstances": [RESERVED],
        "ListInvoiceSummaries": [json.loads(files["invoices"].files["a.json"])],
        "DescribeCapacityBlockOfferings": [OFFER],
        "GetSpotPlacementScores": [SCORE],
    }
    return aws.url


def used(moto: str) -> None:
    """Bedrock called twice, and a training job, in moto."""
    import boto3

    dimensions = [{"Name": "ModelId", "Value": "amazon.nova-lite-v1:0"}]
    data = [
        {"MetricName": name, "Dimensions": dimensions, "Value": value, "Timestamp": datetime.now(UTC)}
        for name, value in (("InputTokenCount", 42), ("Invocations", 2))
    ]
    cloudwatch = boto3.client("cloudwatch", endpoint_url=moto, region_name="us-east-1")
    cloudwatch.put_metric_data(Namespace="AWS/Bedrock", MetricData=data)
    boto3.client("sagemaker", endpoint_url=moto, region_name="us-west-2").create_training_job(
        TrainingJobName="tune-7",
        AlgorithmSpecification={"TrainingImage": "image", "TrainingInputMode": "File"},
        RoleArn="arn:aws:iam::123456789012:role/training",
        OutputDataConfig={"S3OutputPath": "s3://models/tune-7"},
        ResourceConfig={"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 1, "VolumeSizeInGB": 10},
        StoppingCondition={"MaxRuntimeInSeconds": 3600},
        Tags=[{"Key": "model", "Value": "llama"}],
    )


@pytest.mark.parametrize("service", [*ENTRIES, "mlflow", "s3"])
def test_damaged_answers_are_read_or_refused(
    service: str, s3: Any, s3_endpoint: str, tmp_path: Path, campaign: Campaign
) -> None:
    """One answer is damaged, or all from one on."""
    config = tmp_path / "trainledger.toml"
    with ExitStack() as stack:
        if service == "mlflow":
            upstream = stack.enter_context(mlflow())
        elif service in ("cloudwatch", "sagemaker", "s3"):
            used(s3_endpoint)
            upstream = s3_endpoint
        else:
            upstream = answering(stack)
        damage = stack.enter_context(damaged_answers(upstream))
        if service == "s3":
            company = found(tmp_path / "company")
            deliver(company, s3)
            settings(company, damage.url)
            text = company.config.read_text()
            config.write_text(text.replace('location = "s3://example-billing/ledger"', 'location = "warehouse"', 1))
        else:
            export = write_export(
                tmp_path, {"2026-07": [instance_hour("2026-07-01T10", "i-1", "p5.48xlarge", "55.04")]}
            )
            reach = f'endpoint_url = "{damage.url}"\n'
            entry = ENTRIES.get(service, "") + reach
            if service == "mlflow":
                entry = f'[[runs]]\nname = "mine"\nkind = "mlflow"\nlocation = "{damage.url}"\n'
            config.write_text(
                f'[warehouse]\nlocation = "warehouse"\n\n[[billing]]\nname = "payer"\nlocation = "{export}"\n\n{entry}'
            )
        damage.begin()
        assert outcome(config) == (0, "")
        count = damage.count
        for case in campaign.cases(PER_SERVICE):
            for place in (tmp_path / "warehouse", tmp_path / "home" / ".cache"):
                shutil.rmtree(place, ignore_errors=True)
            first = case.chance.randrange(count)
            damage.begin(case.chance, first, first if case.chance.random() < 0.5 else 1 << 30)
            with case:
                code, sentence = outcome(config)
                assert damage.struck
                assert code == 0 or (code in (1, 2, 3) and is_one_sentence(sentence)), sentence
                case.ended("read" if code == 0 else f"exit {code}")
