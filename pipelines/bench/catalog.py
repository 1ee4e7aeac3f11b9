"""What a large company buys: some 150 usage types, and the kinds of bill line each of them appears as."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from pipelines.bench.runs import ACCELERATED
from pipelines.demo.export import bill_constants, table
from pipelines.demo.lines import Line, Place, charge_line, month_end, month_start, usage_line
from pipelines.demo.price_list import OFFERS, Offer, box
from pipelines.demo.scenario import Account

REGIONS = ("us-west-2", "us-east-1")
PLAN_RATIO, RESERVED_RATIO = 0.72, 0.6
RESERVED_ARN = "arn:aws:ec2:us-west-2:100000000000:reserved-instances/8e1f2c34-bench"
_SIZES = (
    ("large", 0.096),
    ("xlarge", 0.192),
    ("2xlarge", 0.384),
    ("4xlarge", 0.768),
    ("8xlarge", 1.536),
    ("12xlarge", 2.304),
)
_FAMILIES = ("m5", "m6i", "m7g", "c6i", "c7g", "r6i", "r7g")
# Product code, family, usage type, unit and price of the long tail.
_TAIL = (
    ("AWSLambda", "Serverless", "Request", "Requests", 2e-7),
    ("AWSQueueService", "API Request", "Requests-RBP", "Requests", 4e-7),
    ("AmazonSNS", "API Request", "DeliveryAttempts-HTTP", "Notifications", 6e-7),
    ("awskms", "API Request", "KMS-Requests", "Requests", 3e-6),
    ("AmazonDynamoDB", "PayPerRequest Throughput", "ReadRequestUnits", "ReadRequestUnits", 2.5e-7),
    ("AmazonDynamoDB", "PayPerRequest Throughput", "WriteRequestUnits", "WriteRequestUnits", 1.25e-6),
    ("AmazonECR", "EC2 Container Registry", "TimedStorage-ByteHrs", "GB-Mo", 0.1),
    ("AWSSecretsManager", "Secret", "AWSSecretsManager-Secrets", "Secrets", 0.4),
    ("AmazonElastiCache", "Cache Instance", "NodeUsage:cache.r6g.large", "Hrs", 0.206),
    ("AmazonEFS", "Storage", "TimedStorage-ByteHrs", "GB-Mo", 0.3),
    ("AmazonFSx", "Storage", "Lustre-Storage-ByteHrs", "GB-Mo", 0.145),
    ("AmazonS3", "API Request", "Requests-Tier2", "Requests", 4e-7),
    ("AWSDataTransfer", "Data Transfer", "DataTransfer-Out-Bytes", "GB", 0.09),
    ("AmazonVPC", "VpcEndpoint", "VpcEndpoint-Hours", "Hrs", 0.01),
    ("AWSELB", "Load Balancer-Application", "LoadBalancerUsage", "Hrs", 0.0225),
    ("AmazonCloudWatch", "API Request", "CW:Requests", "Requests", 1e-5),
)


def general_offers() -> list[tuple[Offer, str]]:
    """Everything but accelerators, as (offer, region)."""
    any_box = box("m6i.large", "us-west-2")
    compute = [
        replace(any_box, usage_type=f"BoxUsage:{family}.{size}", instance_type=f"{family}.{size}", usd=usd)
        for family in _FAMILIES
        for size, usd in _SIZES
    ]
    tail = [Offer(code, code, family, usage, "Operation", unit, usd) for code, family, usage, unit, usd in _TAIL]
    standing = [offer for name, offer in OFFERS.items() if name != "pod"]
    return [(offer, region) for region in REGIONS for offer in (*compute, *standing, *tail)]


class Templates:
    """Every kind of line once, as a small table of all columns; a bill takes rows of it by number.

    `rate`, `list_rate` and `commitment_rate` are USD a unit and `is_hourly` whether the unit is an hour,
    all indexed by row.
    """

    def __init__(self, payer: Account, plan_arn: str, month: str) -> None:
        self._payer, self._arn = payer, plan_arn
        self._start, self._end = month_start(month), month_end(month)
        self._lines: list[Line] = []
        self._commitment: list[float] = []
        self.services: list[int] = []
        self.boxes: list[int] = []
        self.covered: dict[int, int] = {}
        self.negation: dict[int, int] = {}
        self.reserved: dict[int, int] = {}
        self.accelerated: dict[tuple[str, str, str], int] = {}
        for offer, region in general_offers():
            row = self._usage(offer, region)
            if offer.usage_type.startswith("BoxUsage:"):
                self.boxes.append(row)
                self._cover(row)
                self.reserved[row] = self._add(self._discounted(row), RESERVED_RATIO * offer.usd)
            else:
                self.services.append(row)
        for name in ACCELERATED:
            for region in REGIONS:
                row = self._usage(box(name, region), region)
                self._cover(row)
                self.accelerated[name, region, "on_demand"] = row
                self.accelerated[name, region, "spot"] = self._add(self._spot(name, region))
        self.plan_fee = self._fee(
            "SavingsPlanRecurringFee", "ComputeSavingsPlans", savings_plan_savings_plan_a_r_n=plan_arn
        )
        self.reservation_fee = self._fee("RIFee", "AmazonEC2", reservation_reservation_a_r_n=RESERVED_ARN)
        self.rate = self._numbers("line_item_unblended_cost")
        self.list_rate = self._numbers("pricing_public_on_demand_cost")
        self.commitment_rate = np.array(self._commitment)
        self.is_hourly = np.array([line.get("pricing_unit") == "Hrs" for line in self._lines])
        self.table: pa.Table = table(self._lines, bill_constants(payer, month) | {"bill_invoice_id": "1960000001"})

    def _add(self, line: Line, commitment_rate: float = 0.0) -> int:
        self._lines.append(line)
        self._commitment.append(commitment_rate)
        return len(self._lines) - 1

    def _numbers(self, column: str) -> np.ndarray:
        return np.array([line.get(column) or 0.0 for line in self._lines])

    def _usage(self, offer: Offer, region: str) -> int:
        return self._add(usage_line(offer, Place(self._payer, region), self._start, 1.0))

    def _cover(self, row: int) -> None:
        """The Savings Plan forms of a usage line: the covered line and its negation."""
        covered = self._lines[row] | {
            "line_item_line_item_type": "SavingsPlanCoveredUsage",
            "pricing_term": "SavingsPlan",
            "savings_plan_savings_plan_a_r_n": self._arn,
            "savings_plan_offering_type": "ComputeSavingsPlans",
        }
        list_usd = float(self._lines[row]["line_item_unblended_cost"])
        self.covered[row] = self._add(covered, PLAN_RATIO * list_usd)
        self.negation[self.covered[row]] = self._add(covered | {"line_item_line_item_type": "SavingsPlanNegation"})

    def _discounted(self, row: int) -> Line:
        return self._lines[row] | {
            "line_item_line_item_type": "DiscountedUsage",
            "line_item_unblended_cost": 0.0,
            "line_item_unblended_rate": "0.0000000000",
            "pricing_term": "Reserved",
            "reservation_reservation_a_r_n": RESERVED_ARN,
        }

    def _spot(self, name: str, region: str) -> Line:
        offer = box(name, region, "SpotUsage")
        line = usage_line(offer, Place(self._payer, region), self._start, 1.0, rate=round(offer.usd * 0.46, 6))
        return line | {
            "pricing_term": "Spot",
            "pricing_public_on_demand_cost": 0.0,
            "product_instance_type": "",
            "product": {"product_name": offer.product_name},
        }

    def _fee(self, kind: str, product_code: str, **columns: str) -> int:
        return self._add(charge_line(kind, self._payer, product_code, self._start, self._end, 0.0, kind) | columns)
