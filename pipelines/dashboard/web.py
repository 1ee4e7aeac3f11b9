"""The pages over HTTP, and whose request it is; the only module that imports the web framework."""

import hashlib
import logging
from base64 import b64decode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from pipelines.base.errors import TrainledgerError, UsageError
from pipelines.config.access import Access, Grants, Teams
from pipelines.config.notify import is_loopback
from pipelines.dashboard.pages import KNOWN, csv_rows, mistake, render
from pipelines.dashboard.query import NotFoundError, WithheldError
from pipelines.dashboard.reader import Reader, text_of

# Nothing is fetched from anywhere else, nothing runs that is not a file of ours, and no other page shows this one.
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_FILES = {"app.css": "text/css", "app.js": "text/javascript"}
_LOG = logging.getLogger(__name__)


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


def application(reader: Reader, hosts: tuple[str, ...] = (), access: Access | None = None) -> Starlette:
    """The pages over one warehouse, answered under the names of loopback and under `hosts`.

    A page elsewhere that points a name of its own at this machine is not answered. With `access` each request is of a
    reader and shows its teams.
    """

    async def identified(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        request.state.teams = None
        if access:
            address = request.client.host if request.client else ""
            named = request.headers.getlist(access.header)
            authorization = request.headers.get("authorization", "")
            try:
                request.state.teams = teams_of_request(access, address, named, authorization)
            except RefusedError as error:
                _LOG.warning("Refused %r from %s: %s", request.url.path, address, error)
                return _refusal(str(error), error.code)
            except UsageError as error:
                _LOG.error("%s", error)
                return _refusal("The access policy cannot be read; the terminal of the server shows why.", 503)
        return await answer(request)

    def page(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            teams = request.state.teams
            if name == "overview" and teams is not None:
                return RedirectResponse(f"/teams?{request.url.query}", headers=_HEADERS)
            return await run_in_threadpool(_answered, reader, name, dict(request.query_params), teams)

        return answer

    def file(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return Response(text_of(name), media_type=_FILES[name], headers=_HEADERS)

        return answer

    async def refused(request: Request, error: Exception) -> Response:
        code = error.status_code if isinstance(error, HTTPException) else 500
        sentence = f"There is no page {request.url.path}." if code == 404 else "Pages are only read, with GET."
        return await run_in_threadpool(_mistaken, reader, sentence, code, {}, request.state.teams)

    routes = [Route("/" if name == "overview" else f"/{name}", page(name), methods=["GET"]) for name in KNOWN]
    routes += [Route(f"/{name}", file(name), methods=["GET"]) for name in _FILES]
    routes.append(Route("/csv", page("csv"), methods=["GET"]))
    routes.append(Route("/favicon.ico", lambda request: Response(status_code=204, headers=_HEADERS), methods=["GET"]))
    allowed = ["127.0.0.1", "localhost", "[::1]", *hosts]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=allowed),
            Middleware(GZipMiddleware),
            Middleware(BaseHTTPMiddleware, dispatch=identified),
        ],
        exception_handlers={HTTPException: refused},
    )


def serve(reader: Reader, host: str, port: int, ready: Callable[[str], None], access: Access | None = None) -> None:
    """Answer until interrupted; `ready` receives the address once the server listens. OSError when it is taken."""
    import socket

    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
        shown = f"[{host}]" if ":" in host else host
        hosts = access.hosts if access else () if is_loopback(host) else ("*",)
        config = uvicorn.Config(
            application(reader, hosts, access),
            # Else a header, X-Forwarded-For, could state the address of the proxy.
            proxy_headers=False,
            log_level="warning",
            access_log=False,
            server_header=False,
        )
        ready(f"http://{shown}:{listener.getsockname()[1]}/")
        uvicorn.Server(config).run([listener])


def _refusal(sentence: str, code: int) -> Response:
    headers = {"www-authenticate": 'Basic realm="trainledger", charset="UTF-8"'} if code == 401 else {}
    return PlainTextResponse(sentence, code, headers={**_HEADERS, **headers})


def _answered(reader: Reader, name: str, request: dict[str, str], teams: Teams) -> Response:
    try:
        if name == "csv":
            file, text = csv_rows(reader, request, teams)
            headers = {**_HEADERS, "content-disposition": f'attachment; filename="{file}"'}
            return Response(text, media_type="text/csv", headers=headers)
        return HTMLResponse(render(reader, name, request, teams), headers=_HEADERS)
    except TrainledgerError as error:
        codes = {NotFoundError: 404, WithheldError: 403}
        code = codes.get(type(error), 400 if isinstance(error, UsageError) else 500)
        if code < 500 or teams is None:
            return _mistaken(reader, str(error), code, request, teams)
        failure = error
    except Exception as error:
        failure = error
    _LOG.error("/%s: %s: %s", name, type(failure).__name__, failure)
    sentence = f"The page could not be made ({type(failure).__name__}); the terminal of the server shows the error."
    return _mistaken(reader, sentence, 500, request, teams)


def _mistaken(reader: Reader, sentence: str, code: int, request: dict[str, Any], teams: Teams) -> Response:
    try:
        return HTMLResponse(mistake(reader, sentence, code, request, teams), code, headers=_HEADERS)
    except Exception:
        _LOG.exception("The page of a mistake could not be made.")
        return PlainTextResponse(sentence, code, headers=_HEADERS)
