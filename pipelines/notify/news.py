"""The notifications of a publication: closed months, failed checks, anomalies and budgets, each under a unique key."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import yaml

from pipelines.base import resources
from pipelines.base.console import printable
from pipelines.base.groups import grouped
from pipelines.base.resources import monthly_reports
from pipelines.config.access import Teams
from pipelines.config.notify import Notify, Topic
from pipelines.engine import Engine
from pipelines.models.warnings import sentence
from pipelines.present.formats import month
from pipelines.present.text import templates
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
        # A line is one notification, whatever a run or a team is called.
        return "\n".join(printable(one.line) for one in self.news)


LONGEST = 30_000
"""The characters of a message, its subject included, that Slack shows."""
# Older months are not reported when notifications are switched on.
_MONTHS = 2
_SUBJECTS: dict[Topic, tuple[str, str]] = {
    "check": ("A warning", "{} warnings"),
    "anomaly": ("A cost is far from its history", "{} costs are far from their history"),
    "budget": ("A budget reached a threshold", "{} budgets reached a threshold"),
    "failure": ("A build failed", "{} builds failed"),
}


# The queries of a report that its headline rests on; of the others the notice has what the month cost.
_HEADLINES = {
    "showback": ("showback",),
    "savings": ("saved",),
    "commitments": ("families", "held", "fees_missing"),
    "serving": ("served",),
}
# What sets a notice of a topic apart from the others.
_ANOMALY_KEY = ("anomaly_kind", "subject", "observed_date", "billing_currency")
_BUDGET_KEY = ("team", "billing_month", "billing_currency", "budget_usd", "passed_threshold_ratio")
# Topics about one team; closed months, checks and builds are about the whole company.
_OF_TEAMS: tuple[Topic, ...] = ("anomaly", "budget")


def news_of(published: Publication, marts: Engine, notify: Notify, teams: Teams = None) -> list[News]:
    """The news of a publication about the topics of `about`, in the order they are sent.

    A reader of `teams` receives the topics about one team; `marts` then has only the rows of these teams.
    """
    about = [topic for topic in notify.about if teams is None or topic in _OF_TEAMS]
    months = published.billing_months[-_MONTHS:]
    topics = {
        "report": ("detail_billing_month", lambda: _reports(published, marts, months, notify.reports)),
        "check": ("", lambda: _checks(published)),
        "anomaly": ("detail_cost_anomaly", lambda: _of_rows(marts, "anomaly", months[0], _ANOMALY_KEY)),
        "budget": ("detail_budget_monthly", lambda: _of_rows(marts, "budget", months[0], _BUDGET_KEY)),
    }
    # An older version published without some of the marts.
    has = {"", *(key.rpartition("/")[2] for key in published.tables)}
    return [one for topic, (mart, find) in topics.items() if topic in about and mart in has for one in find()]


def notices_of(news: Iterable[News]) -> list[Notice]:
    """The messages; a topic has several where Slack would cut one, and what it cuts off would count as sent."""
    by_message = grouped(news, lambda one: (one.topic, one.key if one.report else None))
    return [Notice(tuple(part), _subject(part)) for group in by_message.values() for part in _parts(group)]


def _parts(news: Sequence[News]) -> Iterator[list[News]]:
    part: list[News] = []
    for one in news:
        longer = Notice((*part, one), _subject([*part, one]))
        if part and len(f"{longer.subject}\n{longer.text}") > LONGEST:
            yield part
            part = []
        part.append(one)
    yield part


def _subject(news: Sequence[News]) -> str:
    kind = news[0].report
    if kind:
        title, closed = kind[0].replace("_", " "), month(kind[1])
        if kind[0] in monthly_reports():
            return f"trainledger: {title} of {closed}"
        return f"trainledger: {closed} is closed, {title} of all months"
    one, many = _SUBJECTS[news[0].topic]
    return f"trainledger: {one if len(news) == 1 else many.format(len(news))}"


def _reports(published: Publication, marts: Engine, months: Sequence[str], kinds: Sequence[str]) -> Iterator[News]:
    """One for each month that AWS has closed: every charge of it is on an invoice."""
    monthly = monthly_reports()
    for period in months:
        states = {row["status"] for row in _rows(marts, "invoice", period)}
        if not states or "open" in states:
            continue
        costs = _rows(marts, "cost", period)
        closed = _line("closed", period, costs, _rows(marts, "fee", period))
        for kind in kinds:
            rows = _headline_rows(published, marts, kind, period)
            line = closed if rows is None else _line(kind, period, costs, rows, states)
            covers = "" if kind in monthly else f" The {kind.replace('_', ' ')} report covers all delivered months."
            yield News(f"report/{kind}/{period}", "report", line + covers, (kind, period))


def _headline_rows(
    published: Publication, marts: Engine, kind: str, period: str
) -> dict[str, list[dict[str, Any]]] | None:
    """What a report shows first of a month; None for a kind without a figure of its own, or where a mart is missing."""
    if kind not in _HEADLINES:
        return None
    # The libraries for charts are slow to import.
    from pipelines.present.render import PLAN, answers, plan_of, queries_of

    first = date.fromisoformat(f"{period}-01")
    written = queries_of(plan_of(kind)["queries"])
    queries = {name: written[name].replace(resources.MONTH, f"date '{first}'") for name in _HEADLINES[kind]}
    found, missing = answers(resources.DASHBOARDS / kind / PLAN, queries, marts.query, published)
    # A report of all months has the month in each row.
    rows = {name: [row for row in rows if row.get("billing_month", first) == first] for name, rows in found.items()}
    return None if missing else rows


def _checks(published: Publication) -> Iterator[News]:
    """One for each failed check; it is sent again when the number of failing rows changes."""
    for check in published.checks:
        if not check["passed"]:
            key = f"check/{check['table']}/{check['check']}/{check['period']}/{check['unexpected_count']}"
            yield News(key, "check", sentence(check))


def _of_rows(marts: Engine, topic: Topic, since: str, key: Sequence[str]) -> Iterator[News]:
    """One for each row of a topic; what its columns `key` hold is sent once."""
    for row in _rows(marts, topic, since):
        yield News("/".join([topic, *(str(row[name]) for name in key)]), topic, _line(topic, row))


def _rows(marts: Engine, name: str, month: str) -> list[dict[str, Any]]:
    sql = yaml.safe_load((resources.DASHBOARDS / "news.yml").read_text(encoding="utf-8"))[name]
    return marts.rows(re.sub(r"{month}|{since}", f"date '{month}-01'", sql))


def _line(macro: str, *about: Any) -> str:
    return getattr(templates().get_template("news.txt.j2").module, macro)(*about)
