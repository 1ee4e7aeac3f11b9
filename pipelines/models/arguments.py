"""Arguments of models: the month they are built for, the policy, the as-of moment, the deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date

from pipelines.base.sql import quoted
from pipelines.config.policy import Policy
from pipelines.ingest.billing.delivery import Delivery

# billing_period, started_at, ended_at of the month being built.
THIS_MONTH = "this_month"
# savings_plan_unused, identity_tolerance_usd, target_passes, shared_cost, assumed_eligible.
POLICY = "policy"
# as_of_at; null where it is not set. Apart from the policy, because it moves daily and few tables depend on it.
AS_OF = "as_of"
# source_name, billing_period, delivery_id of every delivery that is read now, also of one without a line.
DELIVERIES = "aws_delivery"
ARGUMENTS = (THIS_MONTH, POLICY, AS_OF)


def argument_select(name: str, period: str | None, policy: Policy) -> str:
    """The SELECT of the one row of an argument; part of the fingerprint of the tables made from it."""
    if name == POLICY:
        return (
            f"select '{policy.savings_plan_unused}' as savings_plan_unused, "
            f"cast('{policy.identity_tolerance_usd}' as decimal(20, 10)) as identity_tolerance_usd, "
            f"cast({policy.target_passes} as bigint) as target_passes, "
            f"'{policy.shared_cost}' as shared_cost, "
            f"'{' '.join(policy.assumed_eligible)}' as assumed_eligible"
        )
    if name == AS_OF:
        moment = f"'{policy.as_of.astimezone(UTC):%Y-%m-%d %H:%M:%S}'" if policy.as_of else "null"
        return f"select cast({moment} as timestamp) as as_of_at"
    if period is None:
        raise ValueError(f"a model that reads {THIS_MONTH} must be replaced by month")
    first = date.fromisoformat(f"{period}-01")
    after = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    return (
        f"select '{period}' as billing_period, timestamp '{first} 00:00:00' as started_at, "
        f"timestamp '{after} 00:00:00' as ended_at"
    )


def delivery_select(deliveries: Sequence[Delivery]) -> str:
    """The SELECT of DELIVERIES; part of the fingerprint of the tables made from it."""
    rows = [", ".join(map(quoted, (one.source, one.billing_period, one.delivery_id))) for one in deliveries]
    values = " union all ".join(f"select {row}" for row in rows) or "select '', '', '' where 1 = 0"
    return f"select * from ({values}) as delivery (source_name, billing_period, delivery_id)"
