"""Clients of AWS, and the errors of their calls in one sentence."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from pipelines.base.errors import SourceError, UnreachableError, UsageError

# Error codes of AWS and compatible stores for a missing permission.
DENIED = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "403")
_STALE = ("AuthFailure", "ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId",
          "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException", "InvalidAccessKeyId",
          "InvalidToken")  # fmt: skip
# The user and password of an address.
_USER = re.compile(r"(?<=://)[^/\s\"]+@")
_CLOCK = ("RequestTimeTooSkewed", "RequestInTheFuture")


def aws_session(profile: str | None = None, region: str | None = None) -> Any:
    """A boto3 session with credentials of its own. BotoCoreError for a profile that does not exist."""
    import boto3
    from botocore.session import Session

    core = Session(profile=profile)
    # Each session would parse the megabytes of JSON that describe a service again.
    core.register_component("data_loader", _loader(core.get_config_variable("data_path")))
    core.register_component("response_parser_factory", _parsers())
    return boto3.Session(region_name=region, botocore_session=core)


@cache
def _loader(data_path: str | None) -> Any:
    from botocore.loaders import create_loader

    return create_loader(data_path)


@cache
def _parsers() -> Any:
    """botocore's parsers of answers. What they raise for an answer of another form than AWS's is a BotoCoreError."""
    from botocore.exceptions import BotoCoreError
    from botocore.parsers import ResponseParserFactory

    class Malformed(BotoCoreError):
        fmt = "its answer is malformed"

    class Parsers(ResponseParserFactory):
        def create_parser(self, protocol_name: str) -> Any:
            parser = super().create_parser(protocol_name)
            parse = parser.parse

            def parsed(response: Any, shape: Any) -> Any:
                try:
                    found = parse(response, shape)
                    found.keys()
                # They check nothing, so a text in place of a list may raise anything.
                except Exception as error:
                    raise Malformed from error
                return found

            parser.parse = parsed
            return parser

    return Parsers()


def connect(
    service: str,
    where: str,
    *,
    endpoint_url: str | None,
    region: str | None,
    profile: str | None,
    hurried: bool = False,
    **config: Any,
) -> tuple[Any, Any]:
    """A boto3 session and a client of it for what `where` names; a `hurried` one soon gives up.

    Raises UsageError for a profile, region or endpoint that does not exist.
    """
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    retries = {"mode": "standard", "max_attempts": 1 if hurried else 5}
    connect_timeout, read_timeout = (3, 20) if hurried else (10, 60)
    settings = Config(retries=retries, connect_timeout=connect_timeout, read_timeout=read_timeout, **config)  # pyright: ignore[reportArgumentType]
    try:
        session = aws_session(profile, region)
        return session, session.client(service, endpoint_url=endpoint_url, config=settings)  # pyright: ignore[reportCallIssue, reportArgumentType]
    except (BotoCoreError, ValueError) as error:
        raise UsageError(f"{where}: {sentence_of(error)}; check profile, region and endpoint_url.") from None


@contextmanager
def requesting(where: str, permission: str) -> Iterator[None]:
    """Turn AWS's errors into SourceError with the permission or the fix; UnreachableError if a later try may work."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (ClientError, BotoCoreError, KeyError, TypeError) as error:
        raise error_of(error, where, permission) from error


def entries_of(client: Any, call: str, name: str, where: str, permission: str, **request: Any) -> list[Any]:
    """The entries `name` of all pages of a call, with the errors of `requesting`."""
    with requesting(where, permission):
        return [entry for page in client.get_paginator(call).paginate(**request) for entry in page.get(name, ())]


def error_of(error: Exception, where: str, permission: str, fixes: Mapping[str, str] | None = None) -> SourceError:
    """The error to raise for one of AWS, with the permission or the fix (`fixes` has more of them, by AWS's name).

    UnreachableError if a later try may work.
    """
    from botocore.exceptions import ClientError, NoCredentialsError

    code = code_of(error)
    if isinstance(error, NoCredentialsError):
        return SourceError(f"{where}: no AWS credentials found; set up a profile or an instance role.")
    if not isinstance(error, ClientError):
        fix = "check the network, the region and `endpoint_url`"
        return UnreachableError(f"{where} did not answer {permission} ({sentence_of(error)}); {fix}.")
    if code in DENIED:
        return SourceError(f"{where}: access is denied; grant {permission}.")
    if code in _STALE:
        return SourceError(f"{where}: the credentials are not accepted; renew them or check `profile`.")
    if code in _CLOCK:
        return SourceError(f"{where}: the clock of this machine differs from that of AWS; set it.")
    if fixes and code in fixes:
        return SourceError(f"{where}: {fixes[code]}.")
    return UnreachableError(f"{where}: {permission} answered {code}; try again later or check the permissions.")


def code_of(error: BaseException | None) -> str:
    """AWS's name for an error; empty where no answer came."""
    # Of a connection that broke, the answer is None.
    return (getattr(error, "response", None) or {}).get("Error", {}).get("Code", "")


def sentence_of(error: Exception) -> str:
    """The first line of an error's message, without credentials; of one of reading an answer, what is wrong with it."""
    if isinstance(error, KeyError | TypeError):
        return f"its answer has no {error.args[0]}" if isinstance(error, KeyError) else "its answer is malformed"
    return _USER.sub("", str(error).rstrip(".").splitlines()[0])
