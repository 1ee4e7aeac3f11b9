"""The explanation of a figure, as `trainledger explain` gives it, as a page."""

from collections.abc import Mapping
from threading import Lock
from typing import Any

from pipelines.base.errors import UsageError
from pipelines.dashboard import query as parameters
from pipelines.dashboard.query import NotFoundError, WithheldError
from pipelines.dashboard.reader import Volume
from pipelines.explain.lines import behind, question_of
from pipelines.explain.names import look_up
from pipelines.explain.tables import agreed, parts

_KINDS = ("run", "day", "month", "invoice", "name")
_OPTIONS = ("bucket", "account", "payer", "category", "service", "family", "currency", "month")
# Rows of each level; the others are summed in one.
_ROWS = 50
# One reader at a time: reading the bill takes seconds and much memory.
_TURN = Lock()


def explain_page(volume: Volume, request: Mapping[str, str]) -> dict[str, Any]:
    """The explanation that a request asks for. NotFoundError where there is none."""
    kind = parameters.choice(request, "kind", _KINDS)
    # Names of things to look up, as they are: what things are called is not ours to judge.
    word, options = request.get("word", ""), {name: request.get(name, "") for name in _OPTIONS}
    about = {"kind": kind, "word": word, "options": options, "named": None, "parts": []}
    if not kind:
        return about
    if volume.teams is not None and kind != "name":
        raise WithheldError("The bill lines behind a figure are of all teams; ask a reader of all of them.")
    if not word and kind != "invoice":
        raise UsageError(f"Enter the {kind} to explain in the field below.")
    if kind == "name":
        return {**about, "named": _found(lambda: look_up(word))}
    key = ("explain", kind, word, *options.values())
    parts, agreement, difference = volume.keep(key, lambda: _explained(volume, kind, word, options))
    return {**about, "parts": parts, "agreement": agreement, "difference": difference}


def _explained(volume: Volume, kind: str, word: str, options: Mapping[str, str]) -> tuple[Any, str, str]:
    filters = {name: value or None for name, value in options.items()}
    # An invoice that is not closed yet has no id.
    about = None if kind == "invoice" and not word and options["month"] else word
    with volume.turn:
        question = _found(lambda: question_of(volume.engine, kind, about, filters))
    with _TURN, behind(volume.warehouse, volume.published, question) as explanation:
        return list(parts(explanation, _ROWS)), agreed(explanation), explanation.difference()


def _found(look: Any) -> Any:
    try:
        return look()
    except UsageError as error:
        raise NotFoundError(str(error)) from None
