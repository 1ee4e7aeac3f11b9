"""Mistakes in the configuration and in registrations, each as one sentence."""

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from pipelines.base.errors import UsageError
from pipelines.config.spark import setting_names

# Lists of tables in the configuration whose entries have names.
SOURCES = ("billing", "runs", "serving", "reservations", "commitments", "invoices", "capacity_offers")
# Keys that were renamed: old -> new.
RENAMED_KEYS = {
    "leans": "maturity",
    "told_on": "reported_on",
    "spike_run_ids": "pilot_run_ids",
    "spark_master": "spark.master",
}
# Secrets: a configuration is copied, mailed and committed.
_SECRET_OF_SPARK = re.compile(r"(secret(\.key)?|password|token)$", re.IGNORECASE)
_SECRETS = (("notify", "slack", "webhook_url"), ("notify", "mail", "password"), ("privacy", "key"))
# What people write for our keys.
_SYNONYMS = {
    **dict.fromkeys(("path", "bucket", "uri", "url", "folder", "prefix", "s3", "dir", "directory"), "location"),
    **dict.fromkeys(("type", "format"), "kind"),
    **dict.fromkeys(("pattern", "glob", "file"), "files"),
    **dict.fromkeys(("bill", "bills", "cur"), "billing"),
    "notifications": "notify",
    "endpoint": "endpoint_url",
    "memory": "memory_limit",
}
# So many keys of a table one sentence has room for.
_MOST_KEYS = 6
# By pydantic's type of mistake.
_FIXES = {
    "missing": "it is missing; add it",
    "tuple_type": "write a list in brackets",
    "too_short": "write at least one value",
    **dict.fromkeys(
        ("timezone_aware", "datetime_type", "datetime_parsing", "datetime_from_date_parsing"),
        "write a time with its zone, such as 2026-07-14T12:00:00Z",
    ),
    **dict.fromkeys(("model_type", "dict_type"), "write a table of keys and values"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "write true or false, without quotes"),
    **dict.fromkeys(("decimal_type", "decimal_parsing", "float_type", "float_parsing"), "write a number such as 1.5"),
    "string_type": "write text in quotes",
    "string_too_short": "write text that is not empty",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "write a whole number, without quotes"),
    **dict.fromkeys(
        ("date_type", "date_from_datetime_inexact", "date_from_datetime_parsing", "is_instance_of"),
        "write a day such as 2026-07-01, without quotes",
    ),
}
_PLAIN = "write text without control characters, at least one letter"
_PATTERN_FIXES = {
    "name": "use letters, digits, '.', '_' and '-', a letter or digit first",
    **dict.fromkeys(("location", "registrations"), "write a folder or s3://bucket/prefix"),
    "memory_limit": "write a size such as 2GB",
    "memory": "write a size such as 4g",
    "master": "write local[4], spark://host:7077, yarn, k8s://…, sc://host:15002 or session",
    **dict.fromkeys(("month", "first_month", "last_month"), "write a month such as 2026-07"),
    "instance_type": "write a type of EC2 such as p5.48xlarge",
    "empty_months": "write months such as 2026-07",
    "sha256": "write the 64 hex digits that `sha256sum` prints for the file",
    "accounts": "write an account id of twelve digits",
    "payer_account_ids": "write an account id of twelve digits",
    "currency": "write a currency as the bill does, such as USD",
    **dict.fromkeys(("sender", "recipients"), "write a mail address such as finops@acme.dev"),
    **dict.fromkeys(("host", "hosts"), "write the name of a mail server, such as smtp.acme.dev"),
    "ca_file": "write the path of a file of certificates",
    "username": "mail servers take plain ASCII letters, digits and signs alone",
    "password": "mail servers take plain ASCII letters, digits and signs alone; choose another password",
    "cron": "write a cron line of five fields, such as 30 5 * * *",
}


def first_mistake(
    error: ValidationError,
    where: str,
    content: Mapping[str, Any] | None = None,
    lists: Collection[str] = (),
    environment: Collection[str] = (),
    model: type[BaseModel] | None = None,
) -> str:
    """The first mistake pydantic found: file or environment variable, entry, key and how to fix it.

    `content` is what was validated, in which `lists` are lists of tables; `model` knows what an unknown key may mean.
    """
    mistakes = error.errors()
    unknown = [m for m in mistakes if m["type"] == "extra_forbidden"]
    old = next((m for m in unknown if m["loc"][-1] in RENAMED_KEYS), None)
    # A key in the place of another that is missing explains both.
    meant = next((m for m in unknown if _meant(model, m["loc"])), None)
    mistake = old or meant or mistakes[0]
    kind = mistake["type"]
    keys = [str(part) for part in mistake["loc"] if part != "[key]"]
    variable = "__".join(["TRAINLEDGER_" + keys[0], *keys[1:]]).upper() if keys else ""
    where = f"environment variable {variable}" if variable in environment else where
    entries, keys = _entries(keys, content or {})
    where += entries
    key = ".".join(keys)
    if old:
        return f"{where}: key {key!r} is now called {RENAMED_KEYS[keys[-1]]!r}; rename it."
    if kind == "extra_forbidden" or (kind == "literal_error" and mistake["loc"][-1] == "[key]"):
        known = mistake["msg"].replace("Input should be", "write") if kind == "literal_error" else ""
        fix = known or _meant(model, mistake["loc"]) or "remove it or check its spelling"
        return f"{where}: unknown key {key!r}; {fix}."
    if kind == "model_type" and isinstance(mistake["input"], list) and "." not in key:
        return f"{where}: {key} is no list; write its heading in single brackets, [{key}]."
    if kind == "tuple_type" and key in lists:
        return f"{where}: {key} is not a list; write its heading in double brackets, [[{key}]]."
    # An entry of a list is one of what the list is of, and a key one of what its table is of.
    place = mistake["loc"][:-2] if mistake["loc"][-1:] == ("[key]",) else mistake["loc"]
    last = next((part for part in reversed(place) if isinstance(part, str)), "")
    fix = _PATTERN_FIXES.get(last, _PLAIN) if kind == "string_pattern_mismatch" else fix_of(kind, mistake["msg"])
    if kind == "too_short" and key == "privacy.key":
        fix = "it is too short; give it 32 characters or more"
    return f"{where}: key {key!r}: {fix}." if key else f"{where}: {fix}."


def _entries(keys: list[str], content: Any) -> tuple[str, list[str]]:
    """The entries that `keys` lead to, as `, [[terms.rates]] number 2`, and the keys within the last of them."""
    found, rest = "", keys
    at: Any = content
    for number, key in enumerate(keys, start=1):
        is_entry = isinstance(at, list | tuple) and key.isdigit() and int(key) < len(at)
        at = at[int(key)] if is_entry else at.get(key) if isinstance(at, Mapping) else None
        if is_entry and isinstance(at, Mapping):
            named = (at.get(name) for name in ("name", "run_id"))
            name = next((name for name in named if name and isinstance(name, str)), f"number {int(key) + 1}")
            found += f", [[{'.'.join(part for part in keys[:number] if not part.isdigit())}]] {name}"
            rest = keys[number:]
    return found, rest


def fix_of(kind: str, message: str) -> str:
    """What to write, by pydantic's type of mistake and its message."""
    fix = _FIXES.get(kind) or message.removeprefix("Value error, ").replace("Decimal input should have", "write")
    return fix.replace(
        "Input should be", "write a number" if kind.startswith(("greater_than", "less_than")) else "write"
    )


def _meant(model: type[BaseModel] | None, loc: Sequence[int | str]) -> str:
    """What to write in place of an unknown key; empty where nothing is like it."""
    known = _keys_at(model, loc[:-1]) if model else []
    key = str(loc[-1])
    if key.startswith("aws_"):
        return "take credentials out of the file and name a `profile` of the AWS configuration"
    meant = _SYNONYMS.get(key.lower(), "")
    close = [meant] if meant in known else get_close_matches(key.lower(), known, 1, 0.75)
    if close:
        return f"write {close[0]!r}"
    if model and not loc[:-1]:
        headings = {name: f"[[{name}]]" for name in SOURCES} | {"decisions": "[decisions]", "warehouse": "[warehouse]"}
        homes = [heading for name, heading in headings.items() if key in _keys_at(model, (name, 0))]
        return f"put it below the heading it belongs to, such as {homes[0]}" if homes else ""
    return f"write {', '.join(map(repr, known))}" if known and len(known) <= _MOST_KEYS else ""


def _keys_at(model: Any, loc: Sequence[int | str]) -> list[str]:
    """The keys of the table at a place of a model; none where that is not a table of known keys."""
    for part in loc:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part) if hasattr(model, "model_fields") else None
        parts = get_args(field.annotation) if field else ()
        model = next((one for one in parts if hasattr(one, "model_fields")), field.annotation if field else None)
    return list(model.model_fields) if hasattr(model, "model_fields") else []


def current_keys(content: Any) -> Any:
    """Content with the present name of every renamed key, as recorded by an older version."""
    if isinstance(content, Mapping):
        return {RENAMED_KEYS.get(key, key): current_keys(value) for key, value in content.items()}
    return [current_keys(one) for one in content] if isinstance(content, list | tuple) else content


def refuse_secrets(path: Path, content: dict[str, Any]) -> None:
    """UsageError where the file holds a secret, which belongs into the environment."""
    for keys in _SECRETS:
        part: Any = content
        for key in keys:
            part = part.get(key) if isinstance(part, dict) else None
        if part is not None:
            fix = f"take it out of the file and set the environment variable {'TRAINLEDGER_' + '__'.join(keys).upper()}"
            raise UsageError(f"{path}: key {'.'.join(keys)!r} is a secret; {fix}.")
    secrets = [name for name in setting_names(content.get("warehouse")) if _SECRET_OF_SPARK.search(name)]
    if secrets:
        raise UsageError(
            f"{path}: [warehouse.spark] holds the secret {secrets[0]}; take it out: Spark finds the credentials of its "
            "machines by itself, and TRAINLEDGER_WAREHOUSE__SPARK__CONF and __MASTER take the others."
        )


def refuse_unknown_variables(names: Collection[str], model: type[BaseModel]) -> None:
    """UsageError for an environment variable like those of the configuration that names no key; others are not ours.

    Kubernetes sets TRAINLEDGER_PORT and the like where a service is called `trainledger`.
    """
    sections = [*model.model_fields, "config"]
    known = [*sections, *(f"{section}__{key}" for section in sections for key in _keys_at(model, (section,)))]
    for name in sorted(names):
        key = name.lower().removeprefix("trainledger_")
        if key == name.lower() or key.partition("__")[0] in sections:
            continue
        near = get_close_matches(key, known, 1, 0.85)
        if near or "__" in key:
            fix = f"write TRAINLEDGER_{near[0].upper()}" if near else "unset it or check its spelling"
            raise UsageError(f"environment variable {name}: it is no key of the configuration; {fix}.")
