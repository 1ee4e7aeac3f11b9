"""JSON and TOML from outside, bounded before they are parsed."""

import csv
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from pipelines.base.errors import MalformedError, cut

# Deeper than AWS, Kubernetes, a tracker or a person writes, and far from the depth at which Python gives up.
MOST_LEVELS = 100
TOML_BYTES = 1 << 20
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_STEPS = bytes(set(range(256)) - set(_STEPS))
# Strings and comments of TOML. A string without an end matches too, so that no character is read twice.
_TOML_STRINGS = re.compile(
    r'"""(?:\\.|.)*?(?:"""|\Z)|' r"'''.*?(?:'''|\Z)|" r'"(?:\\.|[^"\n])*+"?|' r"'[^'\n]*+'?|#[^\n]*+", re.DOTALL
)
_NOT_A_KEY = re.compile(r"[^\w\-. \t]+")

# What reading a value of an unexpected form raises.
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, csv.Error)
# Letters of what is wrong with a value, which the library repeats whole.
_LONGEST = 500


class ParseError(ValueError):
    """What is wrong with a text; the message continues the name of its file."""


def parse_json(
    text: str | bytes,
    object_hook: Callable[[dict[str, Any]], Any] | None = None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """The content of a JSON text, with the hooks of json.loads.

    ParseError where it is not JSON, or nested more than MOST_LEVELS deep.
    """
    try:
        text = text if isinstance(text, str) else text.decode(json.detect_encoding(text))
        # Most texts have too few brackets to look at each.
        if text.count("[") + text.count("{") > MOST_LEVELS:
            _refuse_deep("".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2]))
        return json.loads(text, object_hook=object_hook, object_pairs_hook=object_pairs_hook)
    except ParseError:
        raise
    except UnicodeDecodeError:
        raise ParseError("is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ParseError(f"is not JSON ({error.msg} at character {error.pos + 1})") from None
    except ValueError:
        raise ParseError("is not JSON (a number has thousands of digits)") from None


@contextmanager
def reading(what: str, fix: str = "fix it where it was written") -> Iterator[None]:
    """MalformedError, named `what`, for well-formed JSON or csv that lacks a part or holds an unexpected one."""
    try:
        yield
    except MALFORMED as error:
        known = {KeyError: f"lacks {error}", ParseError: str(error)}
        wrong = known.get(type(error), f"has an unexpected form ({error})")
        raise MalformedError(f"{what} {cut(wrong, _LONGEST)}; {fix}.") from error


# By how tomllib's message begins.
_TOML_FIXES = {
    "Invalid value": 'write text in straight double quotes, such as name = "payer-a"; true and false in lower case',
    "'utf-8' codec": "save it as UTF-8",
    "Illegal character '\\n'": "close the text with a double quote",
    "Unclosed array": "close the list with a bracket",
    "Expected ']": "close the heading with as many brackets as it begins with",
    "Invalid hex value": "write / in place of the backslash",
    "Expected '=' after a key": 'write key = "value", and headings in brackets',
    "Invalid statement": 'write key = "value", and headings in brackets',
    "Unescaped '\\'": "write / in place of the backslash",
    "Cannot overwrite a value": "the key is there twice; remove one",
    "Cannot declare": "the heading is there twice; put its keys below one, or use [[double brackets]] for a list",
}

_AFTER_VALUE = re.compile(r"Expected newline or end of document after a statement \(at line (\d+), column (\d+)\)")


def parse_toml(content: bytes) -> dict[str, Any]:
    """The content of a TOML file. ParseError where it is not TOML, too large, or nested more than MOST_LEVELS deep."""
    if len(content) > TOML_BYTES:
        raise ParseError(f"has more than {TOML_BYTES:,} bytes, which is not read")
    try:
        # Editors on Windows put a mark before the text.
        text = content.decode("utf-8-sig")
        bare = _TOML_STRINGS.sub("", text)
        _refuse_deep(bare)
        # The memory that tomllib takes grows with the square of the parts of a dotted key.
        if max(key.count(".") for key in _NOT_A_KEY.split(bare)) >= MOST_LEVELS:
            raise _too_deep()
        return tomllib.loads(text)
    except ParseError:
        raise
    except ValueError as error:
        # Includes text that is not UTF-8 and numbers of thousands of digits.
        raise ParseError(f"is not valid TOML: {error}{_toml_fix(content, str(error))}") from None


def _toml_fix(content: bytes, error: str) -> str:
    """How to fix a mistake of TOML; empty where the error explains itself."""
    fix = next((fix for start, fix in _TOML_FIXES.items() if error.startswith(start)), "")
    if at := _AFTER_VALUE.match(error):
        line = content.decode("utf-8-sig", "replace").split("\n")[int(at[1]) - 1]
        value, rest = line[: int(at[2]) - 1], line[int(at[2]) - 1 :]
        if "=" in rest or rest.startswith(","):
            fix = "write one key a line"
        elif not value.rstrip().endswith(('"', "'", "]", "}")):
            fix = "write text, months and times with a zone in double quotes"
    return f"; {fix}" if fix else ""


def _refuse_deep(outside_strings: str) -> None:
    brackets = outside_strings.encode("ascii", "ignore").translate(None, _NO_STEPS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MOST_LEVELS:
        raise _too_deep()


def _too_deep() -> ParseError:
    return ParseError(f"is nested more than {MOST_LEVELS} levels deep")
