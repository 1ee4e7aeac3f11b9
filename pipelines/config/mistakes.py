"""A mistake in the configuration, in one sentence of our own words."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipelines.base.errors import UsageError

# Lists of tables in the configuration.
SOURCES = ("billing", "runs", "reservations", "commitments")
# What opens something; a configuration is copied, mailed and committed.
_SECRETS = (("notify", "slack", "webhook_url"), ("notify", "mail", "password"), ("privacy", "key"))
# What pydantic says in the words of its own types.
_WORDS = {
    "missing": "it is missing; add it",
    "tuple_type": "write a list in brackets",
    "model_type": "write a table of keys and values",
    "string_type": "write text in quotes",
}
_PLAIN = "write text without control characters, at least one letter"
_PATTERN_WORDS = {
    "name": "use letters, digits, '.', '_' and '-', a letter or digit first",
    "location": "write a folder or s3://bucket/prefix",
    "registrations": "write a folder or s3://bucket/prefix",
    "memory_limit": "write a size such as 2GB",
    "first_month": "write a month such as 2026-07",
    "last_month": "write a month such as 2026-07",
    "empty_months": "write months such as 2026-07",
    "sha256": "write the 64 hex digits that `sha256sum` gives of the file",
    "month": "write a month such as 2026-07",
    "payer_account_ids": "write an account id of twelve digits",
    "currency": "write a currency as the bill does, such as USD",
    "cron": "write a cron line of five fields, such as 30 5 * * *",
}


def first_mistake(error: ValidationError, path: Path, content: dict[str, Any], environment: Collection[str]) -> str:
    """The first mistake pydantic found, naming the file or environment variable, the key and the mend."""
    mistake = error.errors()[0]
    keys = [str(part) for part in mistake["loc"] if part != "[key]"]
    variable = "__".join(["TRAINLEDGER_" + keys[0], *keys[1:]]).upper() if keys else ""
    where = f"environment variable {variable}" if variable in environment else str(path)
    if len(keys) > 1 and keys[0] in SOURCES and mistake["type"] != "model_type":
        number = int(keys[1])
        entries = content.get(keys[0], [])
        name = entries[number].get("name") if number < len(entries) else None
        where += f", [[{keys[0]}]] {name if name and isinstance(name, str) else f'number {number + 1}'}"
        keys = keys[2:]
    key = ".".join(keys)
    kind = mistake["type"]
    if kind == "extra_forbidden" or (kind == "literal_error" and mistake["loc"][-1] == "[key]"):
        return f"{where}: unknown key {key!r}; remove it or check its spelling."
    if kind == "tuple_type" and key in SOURCES:
        return f"{where}: {key} is not a list; write its heading in double brackets, [[{key}]]."
    # An entry of a list is one of what the list is of.
    named = next((part for part in reversed(keys) if not part.isdigit()), "")
    said = _PATTERN_WORDS.get(named, _PLAIN) if kind == "string_pattern_mismatch" else _WORDS.get(kind)
    if kind == "too_short" and key == "privacy.key":
        said = "it is too short; give it 32 characters or more"
    said = said or mistake["msg"].removeprefix("Value error, ")
    return f"{where}: key {key!r}: {said}." if key else f"{where}: {said}."


def refuse_secrets(path: Path, content: dict[str, Any]) -> None:
    """UsageError where the file holds what belongs into the environment."""
    for keys in _SECRETS:
        place: Any = content
        for key in keys:
            place = place.get(key) if isinstance(place, dict) else None
        if place is not None:
            variable = "TRAINLEDGER_" + "__".join(keys).upper()
            raise UsageError(
                f"{path}: key {'.'.join(keys)!r} is a secret; take it out of the file and set the environment variable "
                f"{variable}."
            )
