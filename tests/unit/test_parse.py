"""Texts of others are bounded before they are parsed: no depth ends in a traceback, no length in all the memory."""

from __future__ import annotations

import pytest

from pipelines.base.parse import ParseError, parse_json, parse_toml

DEEP = "is nested more than 100 levels deep"
# What would be too deep, did it not stand in a string.
BRACKETS, DOTS = "[{" * 100, "a." * 200
TEXT = 'C:\\\\ \\" ' + BRACKETS


def lists(count: int) -> str:
    return "[" * count + "]" * count


@pytest.mark.parametrize(
    "text", [lists(101), "[" * 100_000, '{"a":' * 101 + "1" + "}" * 101, f'["\\\\", {lists(100)}]']
)
def test_json_that_is_too_deep(text: str) -> None:
    with pytest.raises(ParseError, match=DEEP):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (f'["{TEXT}"]', ['C:\\ " ' + BRACKETS]),
        ("[" + "[],{}," * 1_000 + "1]", [[], {}] * 1_000 + [1]),
        ("\ufeff[1]".encode(), [1]),
        ("[1]".encode("utf-16"), [1]),
    ],
    ids=["brackets in a string", "many side by side", "a byte order mark", "UTF-16, as PowerShell writes it"],
)
def test_json_that_is_read(text: str | bytes, content: object) -> None:
    assert parse_json(text) == content


def test_a_hundred_levels_are_read() -> None:
    content = parse_json(lists(100))
    for _ in range(99):
        (content,) = content
    assert content == []
    assert list(parse_toml(b"a = " + lists(100).encode())) == ["a"]
    assert list(parse_toml((DOTS[:200] + " = 1").replace("a. =", "a =").encode())) == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'"\xff"', "is not UTF-8 text"),
        (b"{oops", "is not JSON (Expecting property name enclosed in double quotes at character 2)"),
        (b"9" * 5_000, "is not JSON (a number has thousands of digits)"),
    ],
)
def test_what_is_no_json(text: bytes, message: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse_json(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "text",
    [
        f"{DOTS}a = 1",
        f"[{DOTS}a]",
        f"[[{DOTS}a]]",
        f"a = {{{DOTS}a = 1}}",
        'b = "\\"" # "\n' + DOTS.replace("a", '"="').replace(".", " . ") + "a = 1",
        "b = '''\n'\"'''\n" + DOTS.replace("a", "'#'") + "a = 1",
        'b = """\n\\"""" \n' + f"{DOTS}a = 1",
        "a = " + lists(101),
        "a = " + "[" * 100_000,
        "a = " + "{a = " * 101 + "1" + "}" * 101,
    ],
)
def test_toml_that_is_too_deep(text: str) -> None:
    with pytest.raises(ParseError, match=DEEP):
        parse_toml(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        f'a = "{DOTS}{BRACKETS}"',
        f"a = '{DOTS}{BRACKETS}'",
        f'a = """\n{DOTS}\\"""{BRACKETS}"""',
        f"a = '''\n{DOTS}'{BRACKETS}'''",
        f"a = 1 # {DOTS}{BRACKETS}",
        f"a = [{'0.5, ' * 200}]",
        "a = [\n" + '  "trn1.32xlarge",\r\n' * 200 + "]",
        "[[a]]\nb.c = 1.5\n" * 200,
    ],
    ids=["text", "literal", "lines", "literal lines", "comment", "numbers", "types", "tables"],
)
def test_toml_that_is_read(text: str) -> None:
    assert list(parse_toml(text.encode())) == ["a"]


AFTER = "is not valid TOML: Expected newline or end of document after a statement"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"#" * (1 << 20) + b"\n", "has more than 1,048,576 bytes, which is not read"),
        (b"a = ", "is not valid TOML: Invalid value"),
        # Advice about quotes is of values alone.
        (
            b"a = 1\nb = 2GB",
            f"{AFTER} (at line 2, column 6); write text, months and times with a zone in double quotes",
        ),
        (b"a = 2026-07", f"{AFTER} (at line 1, column 9); write text, months and times with a zone in double quotes"),
        (b'a = "aws", b = 2', f"{AFTER} (at line 1, column 10); write one key a line"),
        (b"[a] b = 2", f"{AFTER} (at line 1, column 5); write one key a line"),
        (b"a = 'b' c", f"{AFTER} (at line 1, column 9)"),
        (b"a = '\xff'", "is not valid TOML: 'utf-8' codec can't decode"),
        (b"a = " + b"9" * 5_000, "is not valid TOML: Exceeds the limit"),
        # Nothing here ends, and nothing is read twice for it.
        (b'"' + b'\\"' * 500_000, "is not valid TOML: "),
        (b'"""' + b'\\"""' * 250_000, "is not valid TOML: "),
    ],
)
def test_what_is_no_toml(content: bytes, message: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse_toml(content)
    assert str(refused.value).startswith(message)
    assert ("in double quotes" in str(refused.value)) == ("in double quotes" in message)
