"""A server on loopback that answers EC2 and SageMaker calls as AWS documents them, a page at a time.

The moto in use has neither DescribeCapacityReservations nor DescribeCapacityBlocks nor ListTrainingPlans.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

PLAN_ARN = "arn:aws:sagemaker:us-west-2:000033334444:training-plan/july-plan"
_EC2 = '<?xml version="1.0" encoding="UTF-8"?><{0}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">{1}</{0}Response>'
_EC2_ERROR = (
    "<Response><Errors><Error><Code>{0}</Code><Message>no</Message></Error></Errors><RequestID>r</RequestID></Response>"
)

RESERVATION = """<item><capacityReservationId>cr-0b10c5</capacityReservationId><ownerId>000033334444</ownerId>
<capacityReservationArn>arn:aws:ec2:us-west-2:000033334444:capacity-reservation/cr-0b10c5</capacityReservationArn>
<instanceType>p5.48xlarge</instanceType><instancePlatform>Linux/UNIX</instancePlatform>
<availabilityZone>us-west-2b</availabilityZone><tenancy>default</tenancy><totalInstanceCount>2</totalInstanceCount>
<availableInstanceCount>2</availableInstanceCount><state>scheduled</state><startDate>2026-07-01T11:30:00.000Z</startDate>
<endDate>2026-07-02T11:30:00.000Z</endDate><endDateType>limited</endDateType><createDate>2026-06-20T09:04:11.000Z</createDate>
<reservationType>capacity-block</reservationType><capacityBlockId>cb-0b10c5</capacityBlockId></item>"""
OPEN_RESERVATION = """<item><capacityReservationId>cr-0a1b2c</capacityReservationId><ownerId>000033334444</ownerId>
<instanceType>trn1.32xlarge</instanceType><availabilityZone>us-west-2a</availabilityZone>
<totalInstanceCount>1</totalInstanceCount><state>active</state><createDate>2026-07-14T10:00:00.500Z</createDate>
<endDateType>unlimited</endDateType></item>"""
BLOCK = """<item><capacityBlockId>cb-0b10c5</capacityBlockId><ultraserverType>u-p6e-gb200x72</ultraserverType>
<availabilityZone>us-west-2b</availabilityZone><capacityReservationIdSet><item>cr-0b10c5</item></capacityReservationIdSet>
<startDate>2026-07-01T11:30:00.000Z</startDate><endDate>2026-07-02T11:30:00.000Z</endDate><state>scheduled</state></item>"""
PLAN: dict[str, Any] = {
    "TrainingPlanArn": PLAN_ARN,
    "TrainingPlanName": "july-plan",
    "Status": "Scheduled",
    "StartTime": 1783251000.0,
    "EndTime": 1783337400.0,
    "UpfrontFee": "4800.00",
    "CurrencyCode": "USD",
    "ReservedCapacitySummaries": [{"InstanceType": "ml.trn1.32xlarge", "TotalInstanceCount": 2, "Status": "Scheduled"}],
}


def reservations_page(*items: str, more: str = "") -> str:
    token = f"<nextToken>{more}</nextToken>" if more else ""
    return f"<capacityReservationSet>{''.join(items)}</capacityReservationSet>{token}"


def blocks_page(*items: str) -> str:
    return f"<capacityBlockSet>{''.join(items)}</capacityBlockSet>"


@dataclass
class Answers:
    """What each call answers: its pages in order, or the code of an error. `calls` are the calls as they came."""

    url: str = ""
    pages: dict[str, list[Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)


@contextmanager
def aws_answers() -> Iterator[Answers]:
    answers = Answers(
        pages={
            "DescribeCapacityReservations": [
                reservations_page(RESERVATION, more="p2"),
                reservations_page(OPEN_RESERVATION),
            ],
            "DescribeCapacityBlocks": [blocks_page(BLOCK)],
            "ListTrainingPlans": [{"TrainingPlanSummaries": [], "NextToken": "p2"}, {"TrainingPlanSummaries": [PLAN]}],
        }
    )

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            target = self.headers.get("X-Amz-Target")
            # Savings Plans are requested by path, SageMaker by a header, EC2 by a form.
            is_json = bool(target) or self.path != "/"
            form = json.loads(body or "{}") if is_json else {name: value[0] for name, value in parse_qs(body).items()}
            call = target.partition(".")[2] if target else self.path.strip("/") or form["Action"]
            page = int((form.get("NextToken") or form.get("nextToken") or "p1")[1:]) - 1
            answers.calls.append(f"{call} {page + 1}")
            error = answers.errors.get(call)
            if is_json:
                text = json.dumps({"__type": error, "message": "no"} if error else answers.pages[call][page])
            else:
                text = _EC2_ERROR.format(error) if error else _EC2.format(call, answers.pages[call][page])
            self.send_response(400 if error else 200)
            self.send_header("Content-Type", "application/x-amz-json-1.1" if is_json else "text/xml")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    answers.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield answers
    finally:
        server.shutdown()
        server.server_close()
