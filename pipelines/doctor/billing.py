"""Checks of a billing export: reachable, complete, set up as the ledger needs it, and tagged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.base.errors import TrainledgerError
from pipelines.config.settings import BillingSource
from pipelines.doctor.finding import Finding, bucket_arn, failed, object_arn
from pipelines.ingest.billing.delivery import load
from pipelines.ingest.billing.exports import Delivery, RawDelivery, ingest, list_deliveries
from pipelines.ingest.billing.options import CAPACITY, NET, SPLIT, Seen, TagUse, see
from pipelines.warehouse.stores import open_store

KINDS = {"cur": "legacy CUR", "cur2": "CUR 2.0", "focus": "FOCUS"}
# The lines of a FOCUS export do not show the options of the export.
_WITH_OPTIONS = ("cur", "cur2")
# A delivery that no build has read is judged by one file, of at most this size.
_SAMPLE_MIB = 32
# AWS delivers at least daily, and the newest hours come a day or two late (facts aws-billing 1 and 6).
_LATE = timedelta(days=2)


class BillExam:
    """The checks of one export. `kind` is known once its deliveries are."""

    def __init__(self, source: BillingSource, tags: Mapping[str, Sequence[str]], raw_root: Path, now: datetime):
        self.source = source
        self.subject = f"billing {source.name}"
        self.kind: str | None = None
        self._tags = tags
        self._raw_root = raw_root
        self._now = now

    def findings(self) -> Iterator[Finding]:
        """Every check, until one leaves nothing to examine."""
        location = self.source.location
        try:
            reach = self.source
            store = open_store(
                location, endpoint_url=reach.endpoint_url, region=reach.region, profile=reach.profile, hurried=True
            )
            count = len(store.list())
        except TrainledgerError as error:
            yield failed(self.subject, "reachable", error, ("s3:ListBucket", bucket_arn(location)))
            return
        yield self._ok("reachable", f"{location} holds {_many(count, 'file')}.")
        with TemporaryDirectory(prefix="trainledger-") as scratch:
            try:
                # With an empty cache every manifest is read, which tests the permission to read.
                deliveries = list_deliveries(self.source, Path(scratch))
            except TrainledgerError as error:
                yield failed(self.subject, "readable", error, ("s3:GetObject", object_arn(location)))
                return
            self.kind = deliveries[-1].kind
            origin = "its manifest" if self.source.kind == "auto" else "its [[billing]] entry"
            yield self._ok("kind", f"{KINDS[self.kind]}, according to {origin}.")
            yield from self._delivered(deliveries)
            yield from self._content(deliveries[-1], Path(scratch))

    def _delivered(self, deliveries: Sequence[Delivery]) -> Iterator[Finding]:
        months = [delivery.billing_period for delivery in deliveries]
        gaps = [month for month in _between(months[0], months[-1]) if month not in months]
        span = months[0] if len(months) == 1 else f"{months[0]} to {months[-1]}"
        if gaps:
            fix = "AWS does not deliver past months by itself; ask AWS support for them"
            yield self._warn("months", f"{span} without {', '.join(gaps)}: {fix}.")
        else:
            yield self._ok("months", f"{span}, {_many(len(months), 'month')} without a gap.")
        newest = deliveries[-1]
        if newest.missing:
            yield self._warn(
                "newest delivery",
                f"{newest.billing_period}, {newest.delivery_id}: {_many(len(newest.missing), 'file')} its manifest "
                f"lists are missing, first {newest.missing[0]}; wait for it to finish.",
            )
            return
        written = max((item.modified_at for item in newest.objects), default=None)
        size = sum(item.size for item in newest.objects) / 1e6
        summary = f"{newest.billing_period}, {newest.delivery_id}, {_many(len(newest.objects), 'file')}, {size:,.1f} MB"
        if written is None:
            yield self._warn("newest delivery", f"{summary}: its manifest lists no file.")
            return
        age = self._now - written.astimezone(UTC).replace(tzinfo=None)
        summary += f", written {written:%Y-%m-%d %H:%M} UTC"
        if age > _LATE:
            yield self._warn("newest delivery", f"{summary}, {age.days} days ago: a running export delivers every day.")
        else:
            yield self._ok("newest delivery", f"{summary}.")

    def _content(self, newest: Delivery, scratch: Path) -> Iterator[Finding]:
        try:
            raw = load(newest.folder(self._raw_root)) or self._sample(newest, scratch)
        except TrainledgerError as error:
            yield failed(self.subject, "readable", error, ("s3:GetObject", object_arn(self.source.location)))
            return
        if newest.kind not in _WITH_OPTIONS:
            kinds = " and ".join(KINDS[kind] for kind in _WITH_OPTIONS)
            yield self._unchecked("options", f"only the lines of {kinds} show them.")
            return
        if raw is None:
            fix = "run `trainledger build`, which reads it whole"
            yield self._unchecked("options", f"no file of {newest.billing_period} is under {_SAMPLE_MIB} MiB; {fix}.")
            return
        seen = see(raw, self._tags, self._now)
        part = "" if len(raw.files) == len(newest.objects) else f", seen in 1 of {len(newest.objects)} files"
        yield self._granularity(seen, f" ({newest.billing_period}{part})")
        yield self._resources(seen)
        yield from self._optional(seen)
        yield self._fresh(seen, part)
        yield from (self._tagged(seen, use, part) for use in seen.tags)

    def _sample(self, newest: Delivery, scratch: Path) -> RawDelivery | None:
        """One file of a delivery that is not in the raw store: the largest within the size limit."""
        fitting = [item for item in newest.objects if item.size <= _SAMPLE_MIB << 20]
        if not fitting:
            return None
        one = replace(newest, objects=(max(fitting, key=lambda item: item.size),), missing=())
        return ingest(one, self.source, scratch)

    def _granularity(self, seen: Seen, where: str) -> Finding:
        if seen.granularity is None:
            return self._unchecked("hourly", f"no usage line to check{where}.")
        if seen.granularity != "hourly":
            fix = "runs need hourly lines; set the export's time granularity to HOURLY"
            return Finding(self.subject, "hourly", "fail", f"the lines are {seen.granularity}{where}: {fix}.", 1)
        return self._ok("hourly", f"usage lines are hourly{where}.")

    def _resources(self, seen: Seen) -> Finding:
        if not seen.used_count:
            return self._unchecked("resource ids", "no usage line to check.")
        if not seen.resource_count:
            fix = "runs are joined by resource id; include resource ids in the export"
            return Finding(self.subject, "resource ids", "fail", f"no line names a resource: {fix}.", 1)
        return self._ok("resource ids", f"{seen.resource_count / seen.used_count:.0%} of usage lines name one.")

    def _optional(self, seen: Seen) -> Iterator[Finding]:
        for option, use in ((SPLIT, "to split an instance among pods"), (CAPACITY, "to separate reserved hours")):
            if option in seen.columns:
                yield self._ok(option, "on.")
            elif self.kind == "cur":
                yield self._unchecked(option, "a legacy report leaves out columns without data, so off or unused.")
            else:
                yield self._ok(option, f"off; needed only {use}.")
        if seen.has_net:
            yield self._ok(NET, "filled: effective cost is after discounts.")
        else:
            how = "there but empty" if NET in seen.columns else "absent"
            yield self._ok(NET, f"{how}: discounts, if any, are separate lines.")

    def _fresh(self, seen: Seen, part: str) -> Finding:
        if seen.newest_usage_at is None:
            return self._unchecked("newest usage", "no usage line to check.")
        age = self._now - seen.newest_usage_at
        if part:
            # The other files may contain newer usage.
            fix = "run `trainledger build`, which reads them all"
            return self._unchecked("newest usage", f"{seen.newest_usage_at:%Y-%m-%d %H:%M} UTC or later{part}; {fix}.")
        summary = f"{seen.newest_usage_at:%Y-%m-%d %H:%M} UTC, {_age(age)} ago"
        return self._warn("newest usage", f"{summary}.") if age > _LATE else self._ok("newest usage", f"{summary}.")

    def _tagged(self, seen: Seen, use: TagUse, part: str) -> Finding:
        check, wanted = f"tag {use.name}", ", ".join(self._tags.get(use.name, ()))
        if not use.keys:
            fix = "activate it as a cost allocation tag, or add its key under [tags]"
            return self._warn(check, f"none of {wanted} is in the bill{part}: {fix}.")
        summary = f"found as {', '.join(use.keys)}; on " + ", ".join(
            f"{amount:,.2f} of {seen.used_cost[currency]:,.2f} {currency} of usage, before commitments"
            for currency, amount in use.covered.items()
        )
        summary += part
        is_covered = any(amount != Decimal(0) for amount in use.covered.values())
        return self._ok(check, f"{summary}.") if is_covered else self._warn(check, f"{summary}: no line carries it.")

    def _ok(self, check: str, message: str) -> Finding:
        return Finding(self.subject, check, "ok", message)

    def _warn(self, check: str, message: str) -> Finding:
        return Finding(self.subject, check, "warn", message)

    def _unchecked(self, check: str, message: str) -> Finding:
        return Finding(self.subject, check, "not checked", message)


def _between(first: str, last: str) -> list[str]:
    day, months = date.fromisoformat(f"{first}-01"), []
    while f"{day:%Y-%m}" <= last:
        months.append(f"{day:%Y-%m}")
        day = (day + timedelta(days=31)).replace(day=1)
    return months


def _age(age: timedelta) -> str:
    hours = int(age.total_seconds() // 3600)
    return _many(hours, "hour") if hours < 48 else f"{age.days} days"


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
