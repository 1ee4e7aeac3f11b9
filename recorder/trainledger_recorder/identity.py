"""The instance as the bill names it: from SageMaker's environment, else from the metadata service (IMDSv2)."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from urllib.parse import urlsplit

IMDS = "http://169.254.169.254"
_TTL = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
_MARKETS = {"on-demand": "on_demand", "spot": "spot", "capacity-block": "capacity_block", "scheduled": "on_demand"}


class NoIdentity(Exception):
    """The instance could not be identified; the message states why and how to fix it."""


def identity(environment: Mapping[str, str], imds: str = IMDS, timeout: float = 1.0) -> dict[str, object]:
    """Fields of a `resource_joined` event. Raises NoIdentity where unknown; takes a few `timeout`s at most."""
    if arn := environment.get("TRAINING_JOB_ARN"):
        _, _, _, region, account, _ = arn.split(":", 5)
        return {"resource": arn, "account_id": account, "region": region, "evidence": "api"}
    service = _Metadata(imds, timeout)
    document = json.loads(service.get("/latest/dynamic/instance-identity/document"))
    fields = {
        "resource": document["instanceId"],
        "instance_type": document["instanceType"],
        "account_id": document["accountId"],
        "region": document["region"],
        "evidence": "imds",
    }
    market = _MARKETS.get(service.get("/latest/meta-data/instance-life-cycle", "").strip())
    return {**fields, "market": market} if market else fields


def interruption(imds: str = IMDS, timeout: float = 1.0) -> bool:
    """Whether AWS has announced the interruption of this Spot instance (two minutes' notice)."""
    return bool(_Metadata(imds, timeout).get("/latest/meta-data/spot/instance-action", ""))


class _Metadata:
    def __init__(self, address: str, timeout: float):
        url = urlsplit(address)
        self._address, self._timeout = (url.hostname or "", url.port or 80), timeout
        status, body = self._request("PUT", "/latest/api/token", _TTL)
        if status != 200:
            raise NoIdentity(f"the metadata service refuses a token ({status}); enable it for this instance")
        self._token = {"X-aws-ec2-metadata-token": body}

    def get(self, path: str, absent: str | None = None) -> str:
        status, body = self._request("GET", path, self._token)
        if status == 200:
            return body
        if status == 404 and absent is not None:
            return absent
        raise NoIdentity(f"the metadata service returned {status} for {path}")

    def _request(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        connection = http.client.HTTPConnection(*self._address, timeout=self._timeout)
        try:
            connection.request(method, path, headers=dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read(65536).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise NoIdentity(
                f"the metadata service does not answer ({type(error).__name__}); this is normal outside EC2, "
                "in a container set the instance's hop limit to 2"
            ) from None
        finally:
            connection.close()
