"""A finding of the doctor: one sentence per check, and its exit code."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partialmethod, wraps
from typing import Literal, ParamSpec

from pipelines.base.address import bucket_and_prefix
from pipelines.base.aws import DENIED, code_of
from pipelines.base.errors import SourceError, TrainledgerError, UsageError

P = ParamSpec("P")
Status = Literal["ok", "warn", "fail", "not checked"]
POLICY = "deploy/iam-policy.json"
# Every action a check may find denied; the policy of deploy/ grants exactly these.
ACTIONS = (
    "s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "ce:ListCostAllocationTags",
    "bcm-data-exports:ListExports", "bcm-data-exports:GetExport", "cur:DescribeReportDefinitions",
    "ec2:DescribeCapacityReservations", "ec2:DescribeCapacityBlocks", "ec2:DescribeReservedInstances",
    "ec2:DescribeCapacityBlockOfferings", "ec2:GetSpotPlacementScores",
    "savingsplans:DescribeSavingsPlans", "sagemaker:ListTrainingPlans", "invoicing:ListInvoiceSummaries",
    "cloudwatch:ListMetrics", "cloudwatch:GetMetricData",
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """The result of one check on one subject. `exit_code` is the exit code of the command if it fails."""

    subject: str
    check: str
    status: Status
    message: str
    exit_code: int = 0


class Stop(Exception):
    def __init__(self, finding: Finding):
        self.finding = finding


@dataclass(frozen=True)
class Subject:
    """What is examined, by its name in every finding."""

    name: str

    def _found(self, status: Status, check: str, message: str) -> Finding:
        return Finding(self.name, check, status, message)

    ok, warn = partialmethod(_found, "ok"), partialmethod(_found, "warn")
    unchecked = partialmethod(_found, "not checked")

    def judged(self, check: str, message: str, *, is_ok: bool) -> Finding:
        return self.ok(check, message) if is_ok else self.warn(check, message)

    def fail(self, check: str, message: str, exit_code: int = 1) -> Finding:
        return Finding(self.name, check, "fail", message, exit_code)

    @contextmanager
    def trying(self, check: str, action: str = "", location: str = "") -> Iterator[None]:
        """Stop with a failed check where a step raises; a missing permission is named by S3 action and location."""
        try:
            yield
        except TrainledgerError as error:
            message = str(error)
            if action and is_denied(error):
                bucket, prefix = bucket_and_prefix(location)
                below = f"{bucket}/{prefix}/*" if prefix else f"{bucket}/*"
                message = denied(action, f"arn:aws:s3:::{bucket if action == 's3:ListBucket' else below}")
            code = error.exit_code if isinstance(error, SourceError | UsageError) else 1
            raise Stop(self.fail(check, message, code)) from error


def until_stopped(examine: Callable[P, Iterator[Finding]]) -> Callable[P, Iterator[Finding]]:
    """The findings of an examination up to and with the one that stops it."""

    @wraps(examine)
    def findings(*args: P.args, **kwargs: P.kwargs) -> Iterator[Finding]:
        try:
            yield from examine(*args, **kwargs)
        except Stop as stop:
            yield stop.finding

    return findings


def exit_code(findings: Iterable[Finding]) -> int:
    """2 for a mistake in the configuration, else 3 for a source that cannot be read, else 1 for another failure."""
    codes = {finding.exit_code for finding in findings if finding.status == "fail"}
    return next((code for code in (2, 3, 1) if code in codes), 0)


def is_denied(error: TrainledgerError) -> bool:
    return isinstance(error.__cause__, Exception) and code_of(error.__cause__) in DENIED


def denied(action: str, resource: str) -> str:
    assert action in ACTIONS, f"{action} is not among the actions that {POLICY} grants"
    return f"{action} on {resource} is denied: add it with {POLICY}."
