"""A finding of the doctor: one sentence per check, and its exit code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pipelines.base.errors import SourceError, TrainledgerError, UsageError

Status = Literal["ok", "warn", "fail", "not checked"]
# Error codes of AWS and compatible stores for a missing permission.
_DENIALS = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403")
POLICY = "deploy/iam-policy.json"
# Every action a check may find denied; the policy of deploy/ grants exactly these.
ACTIONS = (
    "s3:ListBucket",
    "s3:GetObject",
    "s3:PutObject",
    "s3:DeleteObject",
    "ce:ListCostAllocationTags",
    "bcm-data-exports:ListExports",
    "bcm-data-exports:GetExport",
    "cur:DescribeReportDefinitions",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeCapacityBlocks",
    "ec2:DescribeReservedInstances",
    "savingsplans:DescribeSavingsPlans",
)


@dataclass(frozen=True)
class Finding:
    """The result of one check on one subject. `exit_code` is the exit code of the command if it fails."""

    subject: str
    check: str
    status: Status
    message: str
    exit_code: int = 0


def exit_code(findings: Iterable[Finding]) -> int:
    """2 for a mistake in the configuration, else 3 for a source that cannot be read, else 1 for another failure."""
    codes = {finding.exit_code for finding in findings if finding.status == "fail"}
    return next((code for code in (2, 3, 1) if code in codes), 0)


def failed(subject: str, check: str, error: TrainledgerError, permission: tuple[str, str] | None = None) -> Finding:
    """A check that ended in an error; a missing permission is named as (action, resource)."""
    message = str(error)
    if permission and is_denied(error.__cause__):
        message = denied(*permission)
    code = error.exit_code if isinstance(error, SourceError | UsageError) else 1
    return Finding(subject, check, "fail", message, code)


def is_denied(error: BaseException | None) -> bool:
    """Whether AWS denied a permission."""
    return code_of(error) in _DENIALS


def code_of(error: BaseException | None) -> str:
    """The error code of AWS; empty when it did not answer."""
    return getattr(error, "response", {}).get("Error", {}).get("Code", "")


def denied(action: str, resource: str) -> str:
    """The message for a missing permission."""
    assert action in ACTIONS, f"{action} is not among the actions that {POLICY} grants"
    return f"{action} on {resource} is denied: add it with {POLICY}."


def bucket_arn(location: str) -> str:
    """The bucket of an s3:// location."""
    return f"arn:aws:s3:::{location.removeprefix('s3://').partition('/')[0]}"


def object_arn(location: str) -> str:
    """Everything below an s3:// location."""
    return f"arn:aws:s3:::{location.removeprefix('s3://').rstrip('/')}/*"
