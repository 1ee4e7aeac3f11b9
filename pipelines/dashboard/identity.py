"""Who asks for a page: the reader that the reverse proxy names in a header, or the one of a token."""

import hashlib
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address

from pipelines.config.access import Access, Grants, Teams


class RefusedError(Exception):
    """A request without a known reader; `code` is the status of the answer."""

    def __init__(self, code: int, sentence: str):
        super().__init__(sentence)
        self.code = code


def teams_of_request(access: Access, address: str, named: Sequence[str], authorization: str) -> Teams:
    """The teams of the reader who sent a request from `address`; `named` are its headers of identity.

    RefusedError where no reader is identified. UsageError for a policy that cannot be read.
    """
    grants = access.grants()
    is_proxy = False
    if named:
        with suppress(ValueError):
            client = ip_address(address)
            # A socket that answers both families.
            client = getattr(client, "ipv4_mapped", None) or client
            is_proxy = any(client in network for network in access.proxies)
        if not is_proxy:
            raise RefusedError(403, f"Only the reverse proxy may send {access.header}.")
        if len(named) > 1:
            raise RefusedError(403, f"{access.header} came {len(named)} times; the proxy must replace it.")
        name = named[0].strip()
    else:
        name = _of_token(grants, authorization)
    if name not in grants.readers:
        raise RefusedError(403, "You are not in the access policy; ask the owner of this dashboard.")
    return grants.teams_of(name)


def _of_token(grants: Grants, authorization: str) -> str:
    """The reader of a token: `Bearer TOKEN`, or the password of `Basic`, which browsers ask for."""
    kind, _, value = authorization.partition(" ")
    token = value.strip()
    if kind.lower() == "basic":
        try:
            token = b64decode(token, validate=True).decode().partition(":")[2]
        except ValueError:
            token = ""
    elif kind.lower() != "bearer":
        token = ""
    # The policy has digests only, so how long the comparison takes shows nothing of a token.
    name = grants.tokens.get(hashlib.sha256(token.encode()).hexdigest()) if token else None
    if name is None:
        raise RefusedError(401, "Sign in: by the company's proxy, or with a token as the password.")
    return name
