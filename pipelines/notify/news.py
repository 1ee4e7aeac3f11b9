"""The notifications of a publication: closed months, failed checks, anomalies and budgets, each under a unique key."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from pipelines.base.resources import monthly_reports
from pipelines.config.access import Teams
from pipelines.config.notify import Notify, Topic
from pipelines.engine import Engine
from pipelines.models.warnings import sentence
from pipelines.present.formats import cents, month, percent
from pipelines.warehouse.publication import Publication


@dataclass(frozen=True)
class News:
    """One notification; `report` is the kind of the PDF that a mail attaches, and the closed month (YYYY-MM)."""

    key: str
    topic: Topic
    line: str
    report: tuple[str, str] | None = None


@dataclass(frozen=True)
class Notice:
    """One message: all news of a topic, or one report."""

    news: tuple[News, ...]
    subject: str

    @property
    def text(self) -> str:
        """The body, one line per notification."""
        return "\n".join(one.line for one in self.news)


# Older months are not reported when notifications are switched on.
_MONTHS = 2
_SUBJECTS: dict[Topic, tuple[str, str]] = {
    "check": ("A warning", "{} warnings"),
    "anomaly": ("A cost is far from its history", "{} costs are far from their history"),
    "budget": ("A budget reached a threshold", "{} budgets reached a threshold"),
    "failure": ("A build failed", "{} builds failed"),
}


# Topics about one team; closed months, checks and builds are about the whole company.
_OF_TEAMS: tuple[Topic, ...] = ("anomaly", "budget")


def news_of(published: Publication, marts: Engine, notify: Notify, teams: Teams = None) -> list[News]:
    """The news of a publication about the topics of `about`, in the order they are sent.

    A reader of `teams` receives the topics about one team; `marts` then has only the rows of these teams.
    """
    about = [topic for topic in notify.about if teams is None or topic in _OF_TEAMS]
    months = published.billing_months[-_MONTHS:]
    topics = {
        "report": ("detail_billing_month", lambda: _reports(marts, months, notify.reports)),
        "check": ("", lambda: _checks(published)),
        "anomaly": ("detail_cost_anomaly", lambda: _anomalies(marts, months[0])),
        "budget": ("detail_budget_monthly", lambda: _budgets(marts, months[0])),
    }
    # An older version published without some of the marts.
    has = {"", *(key.rpartition("/")[2] for key in published.tables)}
    return [one for topic, (mart, find) in topics.items() if topic in about and mart in has for one in find()]


def notices_of(news: Iterable[News]) -> list[Notice]:
    """The news as messages."""
    by_message: dict[tuple[str, ...], list[News]] = defaultdict(list)
    for one in news:
        by_message[(one.topic, one.key) if one.report else (one.topic,)].append(one)
    return [Notice(tuple(group), _subject(group)) for group in by_message.values()]


def _subject(news: Sequence[News]) -> str:
    kind = news[0].report
    if kind:
        title, closed = kind[0].replace("_", " "), month(kind[1])
        if kind[0] in monthly_reports():
            return f"trainledger: {title} of {closed}"
        return f"trainledger: {closed} is closed, {title} of all months"
    one, many = _SUBJECTS[news[0].topic]
    return f"trainledger: {one if len(news) == 1 else many.format(len(news))}"


def _reports(marts: Engine, months: Sequence[str], kinds: Sequence[str]) -> Iterator[News]:
    """One for each month that AWS has closed: every charge of it is on an invoice."""
    monthly = monthly_reports()
    for period in months:
        first = date.fromisoformat(f"{period}-01")
        invoices = "select distinct status from mart_invoice_reconciliation_monthly where billing_month = date "
        states = {row["status"] for row in marts.rows(f"{invoices} '{first}'")}
        if not states or "open" in states:
            continue
        costs = "; ".join(
            f"{_amount(row['effective'], row['currency'])} effective cost, including "
            f"{_amount(row['run'], row['currency'])} in runs and {_amount(row['idle'], row['currency'])} idle; "
            f"{cents(row['billed'], row['currency'])} billed"
            f"{'; effective is partial, some use has no cost on the bill' if row['is_partial'] else ''}"
            for row in marts.rows(
                "select billing_currency as currency, "
                "max(billed_cost_usd) filter (where dimension = 'total') as billed, "
                "max(effective_cost_usd) filter (where dimension = 'total') as effective, "
                "bool_or(is_cost_partial) filter (where dimension = 'total') as is_partial, "
                "max(effective_cost_usd) filter (where dimension = 'bucket' and dimension_value = 'run') as run, "
                "max(effective_cost_usd) filter (where dimension = 'bucket' and dimension_value = 'idle') as idle "
                f"from mart_cost_summary_monthly where billing_month = date '{first}' group by 1 order by 1",
            )
        )
        lacks = "".join(
            f"; without {cents(row['missing'], row['currency'])} of commitment fees whose use the bill does not show"
            for row in marts.rows(
                "select distinct currency, month_unallocated_fee_usd as missing from detail_billing_month "
                f"where billing_month = date '{first}' and month_unallocated_fee_usd > 0 order by 1",
            )
        )
        line = f"{month(period)} is closed: {costs}{lacks}."
        for kind in kinds:
            covers = "" if kind in monthly else f" The {kind.replace('_', ' ')} report covers all delivered months."
            yield News(f"report/{kind}/{period}", "report", line + covers, (kind, period))


def _amount(usd: Decimal | None, currency: str) -> str:
    return "an unknown amount" if usd is None else cents(usd, currency)


def _checks(published: Publication) -> Iterator[News]:
    """One for each failed check; it is sent again when the number of failing rows changes."""
    for check in published.checks:
        if not check["passed"]:
            key = f"check/{check['table']}/{check['check']}/{check['period']}/{check['unexpected_count']}"
            yield News(key, "check", sentence(check))


def _anomalies(marts: Engine, since: str) -> Iterator[News]:
    sql = (
        "select anomaly_kind, subject, observed_date, billing_currency, excess_cost_usd, anomaly_reason "
        f"from detail_cost_anomaly where observed_date >= date '{since}-01' "
        "order by abs(excess_cost_usd) desc, anomaly_kind, subject, observed_date"
    )
    for row in marts.rows(sql):
        yield News(
            f"anomaly/{row['anomaly_kind']}/{row['subject']}/{row['observed_date']}/{row['billing_currency']}",
            "anomaly",
            f"{row['anomaly_kind'].replace('_', ' ')} {row['subject']}, {row['observed_date']}: "
            f"{row['anomaly_reason']}; {abs(row['excess_cost_usd']):,.2f} {row['billing_currency']} of effective cost "
            f"{'more' if row['excess_cost_usd'] >= 0 else 'less'} than expected.",
        )


def _budgets(marts: Engine, since: str) -> Iterator[News]:
    sql = (
        "select billing_month, team, billing_currency, budget_usd, spent_cost_usd, is_cost_partial, "
        "budget_spent_ratio, passed_threshold_ratio, seen_day_count, month_day_count from detail_budget_monthly "
        f"where passed_threshold_ratio is not null and billing_month >= date '{since}-01' "
        "order by billing_month, team, billing_currency"
    )
    for row in marts.rows(sql):
        currency, is_partial = row["billing_currency"], row["is_cost_partial"]
        key = (row["team"], row["billing_month"], currency, row["budget_usd"], row["passed_threshold_ratio"])
        yield News(
            "budget/" + "/".join(map(str, key)),
            "budget",
            f"{row['team']} spent {'at least ' if is_partial else ''}{cents(row['spent_cost_usd'], currency)} of "
            f"{cents(row['budget_usd'], currency)} for {month(row['billing_month'])}, effective"
            f"{'' if is_partial else ', ' + percent(row['budget_spent_ratio'])}: past "
            f"{percent(row['passed_threshold_ratio'])}, on day {row['seen_day_count']} of {row['month_day_count']}"
            f"{'; a part of its cost is unknown' if is_partial else ''}.",
        )
