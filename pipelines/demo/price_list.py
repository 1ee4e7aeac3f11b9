"""What things cost: On-Demand list prices of 2026 for the instances, plausible ones for everything else."""

from __future__ import annotations

from dataclasses import dataclass, field

REGION_PREFIX = {"us-west-2": "USW2-", "us-east-1": ""}


@dataclass(frozen=True)
class InstanceType:
    """Hardware and list price in USD an hour. `savings_plan_ratio`: plan rate ÷ list price, illustrative; None where
    the account that runs it shares no discounts."""

    name: str
    vcpu: int
    memory_gib: int
    accelerators: int
    usd: float
    savings_plan_ratio: float | None
    regional_usd: dict[str, float] = field(default_factory=dict)

    def usd_in(self, region: str) -> float:
        """List price in USD an hour; regions differ in the sixth decimal."""
        return self.regional_usd.get(region, self.usd)

    @property
    def gpu(self) -> int:
        """GPUs as the bill counts them: it has no key for chips of AWS."""
        return 0 if self.name.startswith(("trn", "inf")) else self.accelerators

    @property
    def family(self) -> str:
        return "GPU instance" if self.gpu else "Machine learning" if self.accelerators else "General purpose"


INSTANCE_TYPES = {
    kind.name: kind
    for kind in (
        InstanceType("p5.48xlarge", 192, 2048, 8, 55.04, 0.72),
        InstanceType("p4d.24xlarge", 96, 1152, 8, 21.957642, 0.70, {"us-west-2": 21.95764}),
        InstanceType("g6e.48xlarge", 192, 1536, 8, 30.13118, 0.74),
        InstanceType("g6e.12xlarge", 48, 384, 4, 10.49264, 0.74),
        InstanceType("g6e.xlarge", 4, 32, 1, 1.861, None),
        InstanceType("inf2.xlarge", 4, 16, 1, 0.7582, None),
        InstanceType("g5.12xlarge", 48, 192, 4, 5.672, 0.75),
        InstanceType("g6.xlarge", 4, 16, 1, 0.8048, 0.75),
        InstanceType("trn1.32xlarge", 128, 512, 16, 21.50, 0.74),
        InstanceType("trn1.2xlarge", 8, 32, 1, 1.34375, 0.74),
        InstanceType("m6i.large", 2, 8, 0, 0.096, 0.73),
        InstanceType("c6i.4xlarge", 16, 32, 0, 0.68, 0.73),
    )
}


@dataclass(frozen=True)
class Offer:
    """One entry of the price list; `usage_type` without its region prefix."""

    product_code: str
    product_name: str
    family: str
    usage_type: str
    operation: str
    unit: str
    usd: float
    servicecode: str = ""
    instance_type: str = ""
    savings_plan_ratio: float | None = None


_EC2 = ("AmazonEC2", "Amazon Elastic Compute Cloud")
_S3 = ("AmazonS3", "Amazon Simple Storage Service")
_EKS = ("AmazonEKS", "Amazon Elastic Container Service for Kubernetes")
_CLOUDWATCH = ("AmazonCloudWatch", "AmazonCloudWatch")
_RDS = ("AmazonRDS", "Amazon Relational Database Service")
_LAMBDA = ("AWSLambda", "AWS Lambda")
_BEDROCK = ("AmazonBedrock", "Amazon Bedrock", "Amazon Bedrock")
_TOKENS = ("InvokeModelInference", "1K tokens")

OFFERS = {
    "volume": Offer(*_EC2, "Storage", "EBS:VolumeUsage.gp3", "CreateVolume-Gp3", "GB-Mo", 0.08),
    "volume_iops": Offer(*_EC2, "System Operation", "EBS:VolumeP-IOPS.gp3", "CreateVolume-Gp3", "IOPS-Mo", 0.005),
    "cross_zone": Offer(
        *_EC2, "Data Transfer", "DataTransfer-Regional-Bytes", "InterZone-In", "GB", 0.01, "AWSDataTransfer"
    ),
    "nat_hours": Offer(*_EC2, "NAT Gateway", "NatGateway-Hours", "NatGateway", "Hrs", 0.045),
    "nat_bytes": Offer(*_EC2, "NAT Gateway", "NatGateway-Bytes", "NatGateway", "GB", 0.045),
    "bucket": Offer(*_S3, "Storage", "TimedStorage-ByteHrs", "StandardStorage", "GB-Mo", 0.023),
    "bucket_puts": Offer(*_S3, "API Request", "Requests-Tier1", "PutObject", "Requests", 0.000005),
    "cluster": Offer(*_EKS, "Compute", "AmazonEKS-Hours:perCluster", "CreateOperation", "Hours", 0.10),
    "pod": Offer(*_EKS, "Compute", "EKS-EC2-Hours", "EKSPod-EC2", "hours", 0.0),
    "logs": Offer(*_CLOUDWATCH, "Data Payload", "DataProcessing-Bytes", "PutLogEvents", "GB", 0.50),
    "metrics": Offer(*_CLOUDWATCH, "Metric", "CW:MetricMonitorUsage", "MetricStorage", "Metrics", 0.30),
    "database": Offer(
        *_RDS,
        "Database Instance",
        "InstanceUsage:db.r6g.xl",
        "CreateDBInstance:0014",
        "Hrs",
        0.45,
        instance_type="db.r6g.xlarge",
    ),
    "function_seconds": Offer(
        *_LAMBDA,
        "Serverless",
        "Lambda-GB-Second",
        "Invoke",
        "Lambda-GB-Second",
        0.0000166667,
        savings_plan_ratio=0.83,
    ),
    "function_calls": Offer(*_LAMBDA, "Serverless", "Request", "Invoke", "Requests", 0.0000002),
    # Claude Haiku 4.5, regional; Qwen3 32B in batches; a unit of a committed Llama 2 70B.
    "chat_input": Offer(*_BEDROCK, "Claude4.5Haiku-input-tokens", *_TOKENS, 0.0011),
    "chat_output": Offer(*_BEDROCK, "Claude4.5Haiku-output-tokens", *_TOKENS, 0.0055),
    "chat_cache_read": Offer(*_BEDROCK, "Claude4.5Haiku-cache-read-input-token-count", *_TOKENS, 0.00011),
    "digest_input": Offer(*_BEDROCK, "Qwen3-32B-input-tokens-batch", *_TOKENS, 0.000075),
    "digest_output": Offer(*_BEDROCK, "Qwen3-32B-output-tokens-batch", *_TOKENS, 0.0003),
    "model_unit": Offer(
        *_BEDROCK,
        "Llama2-70B-ProvisionedThroughput-6MonthsCommit-ModelUnits",
        "InvokeModelInference",
        "hour",
        13.08,
    ),
}


def box(instance_type: str, region: str, usage: str = "BoxUsage", operation: str = "RunInstances") -> Offer:
    """An instance type as an offer: BoxUsage, SpotUsage, UnusedBox, Reservation or CapacityBlockFee."""
    kind = INSTANCE_TYPES[instance_type]
    is_free = usage == "Reservation" or operation.endswith(":CB")
    return Offer(
        *_EC2,
        family="Compute Instance",
        usage_type=f"{usage}:{instance_type}",
        operation=operation,
        unit="Hrs",
        usd=0.0 if is_free else kind.usd_in(region),
        instance_type=instance_type,
        savings_plan_ratio=None if is_free or usage == "SpotUsage" else kind.savings_plan_ratio,
    )


def product_attributes(offer: Offer, region: str) -> dict[str, str]:
    """The `product` map of a line: keys are present only when they have a value."""
    attributes = {"product_name": offer.product_name, "region": region}
    kind = INSTANCE_TYPES.get(offer.instance_type)
    if kind is None:
        return attributes
    usage = offer.usage_type.split(":")[0]
    attributes |= {
        "vcpu": str(kind.vcpu),
        "memory": f"{kind.memory_gib} GiB",
        "instance_type_family": offer.instance_type.split(".")[0],
        "operating_system": "Linux",
        "tenancy": "Shared",
        "pre_installed_sw": "NA",
        "capacitystatus": {
            "UnusedBox": "UnusedCapacityReservation",
            "Reservation": "AllocatedCapacityReservation",
        }.get(usage, "Used"),
        "marketoption": "CapacityBlock" if offer.operation.endswith(":CB") else "OnDemand",
    }
    return attributes | ({"gpu": str(kind.gpu)} if kind.gpu else {})
