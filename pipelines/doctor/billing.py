"""Checks of a billing export: reachable, complete, set up as the ledger needs it, and tagged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from pipelines.base.errors import counted
from pipelines.config.sources import BillingSource
from pipelines.doctor.finding import Finding, Subject, until_stopped
from pipelines.ingest.billing.delivery import Delivery, RawDelivery, load
from pipelines.ingest.billing.exports import ingest, list_deliveries
from pipelines.ingest.billing.options import CAPACITY, NET, SPLIT, Seen, TagUse, see
from pipelines.warehouse.stores import open_store

KINDS = {"cur": "legacy CUR", "cur2": "CUR 2.0", "focus": "FOCUS"}
# A delivery that no build has read is judged by one file, of at most this size.
_SAMPLE_MIB = 32
# AWS delivers at least daily, and the newest hours come a day or two late (facts aws-billing 1 and 6).
_LATE = timedelta(days=2)


class BillExam:
    """The checks of one export. `kind` is known once its deliveries are."""

    def __init__(self, source: BillingSource, tags: Mapping[str, Sequence[str]], raw_root: Path, now: datetime):
        self.kind: str | None = None
        self._source = source
        self._subject = Subject(f"billing {source.name}")
        self._tags = tags
        self._raw_root = raw_root
        self._now = now

    @until_stopped
    def findings(self) -> Iterator[Finding]:
        source, subject = self._source, self._subject
        with subject.trying("reachable", "s3:ListBucket", source.location):
            count = len(open_store(source.location, **source.reach, hurried=True).list())
        yield subject.ok("reachable", f"{source.location} holds {counted(count, 'file')}.")
        with TemporaryDirectory(prefix="trainledger-") as scratch:
            with subject.trying("readable", "s3:GetObject", source.location):
                # With an empty cache every manifest is read, which tests the permission to read.
                deliveries = list_deliveries(source, Path(scratch))
            self.kind = deliveries[-1].kind
            shown_by = "its columns" if source.files else "its manifest"
            origin = shown_by if source.kind == "auto" else "its [[billing]] entry"
            yield subject.ok("kind", f"{KINDS[self.kind]}, according to {origin}.")
            yield self._months([delivery.billing_period for delivery in deliveries])
            yield self._newest(deliveries[-1])
            yield from self._content(deliveries[-1], Path(scratch))

    def _months(self, months: list[str]) -> Finding:
        first, last = (date.fromisoformat(f"{month}-01") for month in (months[0], months[-1]))
        every = pl.date_range(first, last, "1mo", eager=True).dt.strftime("%Y-%m")
        gaps = [month for month in every if month not in months]
        span = months[0] if len(months) == 1 else f"{months[0]} to {months[-1]}"
        if gaps:
            fix = "AWS does not deliver past months by itself; ask AWS support for them"
            return self._subject.warn("months", f"{span} without {', '.join(gaps)}: {fix}.")
        return self._subject.ok("months", f"{span}, {counted(len(months), 'month')} without a gap.")

    def _newest(self, newest: Delivery) -> Finding:
        check, summary = "newest delivery", f"{newest.billing_period}, {newest.delivery_id}"
        if newest.missing:
            missing = f"{counted(len(newest.missing), 'file')} its manifest lists are missing"
            return self._subject.warn(check, f"{summary}: {missing}, first {newest.missing[0]}; wait for it to finish.")
        size = sum(item.size for item in newest.objects) / 1e6
        summary += f", {counted(len(newest.objects), 'file')}, {size:,.1f} MB"
        if not newest.objects:
            return self._subject.warn(check, f"{summary}: its manifest lists no file.")
        written = max(item.modified_at for item in newest.objects)
        age = self._now - written.astimezone(UTC).replace(tzinfo=None)
        summary += f", written {written:%Y-%m-%d %H:%M} UTC"
        if age > _LATE:
            return self._subject.warn(check, f"{summary}, {age.days} days ago: a running export delivers every day.")
        return self._subject.ok(check, f"{summary}.")

    def _content(self, newest: Delivery, scratch: Path) -> Iterator[Finding]:
        with self._subject.trying("readable", "s3:GetObject", self._source.location):
            raw = load(newest.folder(self._raw_root)) or sample(newest, self._source, scratch)
        if raw and raw.focus_versions:
            declared = f" Metadata: {newest.focus_version}." if newest.focus_version else ""
            versions = " and ".join(sorted(raw.focus_versions))
            yield self._subject.ok("version", f"FOCUS {versions}, by its columns.{declared}")
        if raw is None:
            why = f"no file of {newest.billing_period} is under {_SAMPLE_MIB} MiB"
            yield self._subject.unchecked("options", f"{why}; run `trainledger build`, which reads it whole.")
            return
        seen = see(raw, self._tags, self._now)
        part = "" if len(raw.files) == len(newest.objects) else f", seen in 1 of {len(newest.objects)} files"
        yield from self._usage(seen, newest.billing_period, part)
        if newest.kind != "focus":
            # Its lines do not show the options of the export.
            yield from self._options(seen)
        yield from (self._tagged(seen, use, part) for use in seen.tags)

    def _options(self, seen: Seen) -> Iterator[Finding]:
        for option, use in ((SPLIT, "to split an instance among pods"), (CAPACITY, "to separate reserved hours")):
            if option in seen.columns:
                yield self._subject.ok(option, "on.")
            elif self.kind == "cur":
                why = "a legacy report leaves out columns without data, so off or unused"
                yield self._subject.unchecked(option, f"{why}.")
            else:
                yield self._subject.ok(option, f"off; needed only {use}.")
        net = "present but empty" if NET in seen.columns else "absent"
        without = f"{net}: discounts, if any, are separate lines."
        yield self._subject.ok(NET, "filled: effective cost is after discounts." if seen.has_net else without)

    def _usage(self, seen: Seen, month: str, part: str) -> Iterator[Finding]:
        subject, newest = self._subject, seen.newest_usage_at
        if seen.granularity is None:
            for check in ("hourly", "resource ids", "newest usage"):
                yield subject.unchecked(check, f"no usage line to check ({month}{part}).")
            return
        if seen.granularity == "hourly":
            yield subject.ok("hourly", f"usage lines are hourly ({month}{part}).")
        else:
            fix = "runs need hourly lines; set the export's time granularity to HOURLY"
            yield subject.fail("hourly", f"the lines are {seen.granularity} ({month}{part}): {fix}.")
        if seen.resource_count:
            yield subject.ok("resource ids", f"{seen.resource_count / seen.used_count:.0%} of usage lines name one.")
        else:
            fix = "runs are joined by resource id; include resource ids in the export"
            yield subject.fail("resource ids", f"no line names a resource: {fix}.")
        if newest is None:
            yield subject.unchecked("newest usage", "no usage line to check.")
            return
        if part:
            # The other files may contain newer usage.
            fix = "run `trainledger build`, which reads them all"
            yield subject.unchecked("newest usage", f"{newest:%Y-%m-%d %H:%M} UTC or later{part}; {fix}.")
            return
        age = self._now - newest
        hours = int(age.total_seconds() // 3600)
        ago = counted(hours, "hour") if hours < 48 else f"{age.days} days"
        found = f"{newest:%Y-%m-%d %H:%M} UTC, {ago} ago"
        following = (date.fromisoformat(f"{month}-01") + timedelta(days=31)).replace(day=1)
        lacking = min(following, self._now.date()) - newest.date()
        if age <= _LATE:
            yield subject.ok("newest usage", f"{found}.")
        elif lacking > _LATE:
            fix = "ask AWS to deliver the month again, or wait for it"
            yield subject.warn("newest usage", f"{found}: {month} lacks its last {lacking.days - 1} days; {fix}.")
        else:
            yield subject.warn("newest usage", f"{found}: no newer month is there; check that the export still runs.")

    def _tagged(self, seen: Seen, use: TagUse, part: str) -> Finding:
        check, wanted = f"tag {use.name}", ", ".join(self._tags.get(use.name, ()))
        if not use.keys:
            fix = "activate it as a cost allocation tag, or add its key under [tags]"
            return self._subject.warn(check, f"none of {wanted} is in the bill{part}: {fix}.")
        covered = ", ".join(
            f"{amount:,.2f} of {seen.used_cost[currency]:,.2f} {currency} of usage, before commitments"
            for currency, amount in use.covered.items()
        )
        is_covered = any(use.covered.values())
        found = f"found as {', '.join(use.keys)}; on {covered}{part}"
        return self._subject.judged(check, f"{found}{'' if is_covered else ': no line has it'}.", is_ok=is_covered)


def sample(newest: Delivery, source: BillingSource, scratch: Path) -> RawDelivery | None:
    """One file of a delivery that is not in the raw store: the largest within the size limit."""
    fitting = [item for item in newest.objects if item.size <= _SAMPLE_MIB << 20]
    if not fitting:
        return None
    one = replace(newest, objects=(max(fitting, key=lambda item: item.size),), missing=())
    return ingest(one, source, scratch)
