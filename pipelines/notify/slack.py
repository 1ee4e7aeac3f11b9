"""A message to Slack by an incoming webhook. Its address is a secret: no log and no error contains it."""

from __future__ import annotations

import json
import time
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pipelines.base.errors import SourceError, UnreachableError, UsageError
from pipelines.config.notify import SlackChannel

TRIES = 3
_TIMEOUT = 30
_PAUSE = 1.0
# Slack cuts longer texts.
_LONGEST = 30_000
VARIABLE = "TRAINLEDGER_NOTIFY__SLACK__WEBHOOK_URL"


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: the message is for Slack only."""

    def redirect_request(self, *args: object) -> None:
        return None


def escaped(text: str) -> str:
    """Text as Slack shows it: no link, no mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def body_of(subject: str, text: str) -> bytes:
    """The request body: plain text without markup, as a run may have any name."""
    whole = f"{subject}\n{text}"
    cut = whole if len(whole) <= _LONGEST else whole[:_LONGEST] + " …"
    return json.dumps({"text": escaped(cut), "mrkdwn": False, "unfurl_links": False}).encode()


def post(channel: SlackChannel, subject: str, text: str) -> None:
    """Send it; UsageError, SourceError or UnreachableError never contain the address."""
    if channel.webhook_url is None:
        raise UsageError(f"[notify.slack] has no webhook; set the environment variable {VARIABLE}.")
    address, body, problem = channel.webhook_url.get_secret_value(), body_of(subject, text), ""
    for number in range(TRIES):
        time.sleep(_PAUSE * number)
        try:
            # Of the standard library, which logs nothing: urllib3 writes the path of what it tries again into its log.
            request = Request(address, body, {"Content-Type": "application/json"})
            with build_opener(_NoRedirect).open(request, timeout=_TIMEOUT):
                return
        except HTTPError as error:
            problem = f"returned {error.code}"
            error.close()
            if error.code != 429 and error.code < 500:
                raise SourceError(f"Slack's webhook {problem}; create a new one and set {VARIABLE}.") from None
        except (OSError, HTTPException, ValueError) as error:
            # The type alone: the message of an error about a URL quotes it.
            reason = error.reason if isinstance(error, URLError) else error
            problem = f"did not respond ({type(reason).__name__})"
    raise UnreachableError(f"Slack's webhook {problem}, {TRIES} times; the message is kept for the next time.")
