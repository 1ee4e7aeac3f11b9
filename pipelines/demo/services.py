"""Bill lines of what is always on: storage, network, control planes, logs, databases, functions, a chatbot."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import timedelta

from pipelines.demo.lines import Line, Place, hours_in_month, hours_of, month_end, month_start, usage_line
from pipelines.demo.price_list import OFFERS
from pipelines.demo.scenario import Service

_ARN_SERVICES = {
    "cluster": "eks",
    "natgateway": "ec2",
    "log-group": "logs",
    "db": "rds",
    "function": "lambda",
    "application-inference-profile": "bedrock",
    "provisioned-model": "bedrock",
}


def service_lines(service: Service, month: str) -> Iterator[Line]:
    """The service's lines of a month: hourly, or daily for stored bytes, which are billed by the month."""
    offer = OFFERS[service.offer]
    place = Place(service.account, service.region, resource_id=_resource_id(service), tags=service.tags or {})
    noise = random.Random(f"{service.offer}/{service.resource}/{month}")
    for hour, _ in hours_of(month_start(month), month_end(month)):
        if service.is_daily and hour.hour:
            continue
        daytime = 0.5 - 0.5 * math.cos(hour.hour / 24 * 2 * math.pi)
        amount = service.amount * (1 + service.swing * (daytime - 0.5 + noise.uniform(-0.1, 0.1)))
        if offer.unit in ("GB-Mo", "Metrics"):
            amount *= (24 if service.is_daily else 1) / hours_in_month(hour)
        if offer.unit == "Requests":
            amount = round(amount)
        span = timedelta(days=1) if service.is_daily else timedelta(hours=1)
        yield usage_line(offer, place, hour, round(amount, 8), span=span)


def _resource_id(service: Service) -> str:
    """An ARN where the service has one; a bucket is named by itself."""
    kind = service.resource.replace(":", "/").split("/")[0]
    if kind not in _ARN_SERVICES:
        return service.resource
    return f"arn:aws:{_ARN_SERVICES[kind]}:{service.region}:{service.account.id}:{service.resource}"
