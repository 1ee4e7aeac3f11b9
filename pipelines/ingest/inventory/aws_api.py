"""AWS asked itself: a client that is patient, and what goes wrong with a call in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipelines.base.aws import aws_session
from pipelines.base.errors import SourceError, UnreachableError, UsageError
from pipelines.config.sources import S3Options

_DENIED = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException")
_STALE = ("AuthFailure", "ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId",
          "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException")  # fmt: skip


def client_of(source: S3Options, where: str, service: str, region: str | None) -> Any:
    """A boto3 client for the source that `where` names. UsageError for a profile or region that does not exist."""
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    patience = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=10, read_timeout=60)
    try:
        session = aws_session(source.profile, region)
        return session.client(service, endpoint_url=source.endpoint_url, config=patience)
    except (BotoCoreError, ValueError) as error:
        mend = "check profile, regions and endpoint_url"
        raise UsageError(f"{where}: {_sentence(error)}; {mend}.") from None


@contextmanager
def asking(where: str, permission: str) -> Iterator[None]:
    """What AWS refuses is a SourceError naming the permission or the mend; what may work later is UnreachableError."""
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    try:
        yield
    except ClientError as error:
        code = code_of(error)
        if code in _DENIED:
            raise SourceError(f"{where}: access is denied; grant {permission}.") from error
        if code in _STALE:
            raise SourceError(f"{where}: the credentials are not accepted; renew them or check `profile`.") from error
        raise UnreachableError(f"{where}: {permission} answered {code}; try again later.") from error
    except NoCredentialsError as error:
        raise SourceError(f"{where}: no AWS credentials found; set up a profile or an instance role.") from error
    except BotoCoreError as error:
        mend = "check the network, `regions` and `endpoint_url`"
        raise UnreachableError(f"{where} did not answer {permission} ({_sentence(error)}); {mend}.") from error


def code_of(error: Any) -> str:
    """AWS's name for what went wrong, of a botocore ClientError."""
    return error.response.get("Error", {}).get("Code", "")


def _sentence(error: Exception) -> str:
    return str(error).rstrip(".").splitlines()[0]
