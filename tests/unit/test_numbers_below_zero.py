"""Which hyphens of a page are minuses: those before a number, wherever the text came from, and no others."""

from __future__ import annotations

import pytest

from pipelines.present.formats import minuses


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("it is -16.4% to 77.2%", "it is −16.4% to 77.2%"),
        ("saves -54.1% (-81.4% to -31.0%)", "saves −54.1% (−81.4% to −31.0%)"),
        ("-$1,234.56", "−$1,234.56"),
        ("-3", "−3"),
        # Days, names, ranges and options have hyphens of their own.
        ("2026-07-03 to -07-05", "2026-07-03 to -07-05"),
        ("gpu-1 on i-0abc of llama-3.1-8b", "gpu-1 on i-0abc of llama-3.1-8b"),
        ("run -5-b and -5x", "run -5-b and -5x"),
        ("--lines 5 -v", "--lines 5 -v"),
        ("10-20%, 1e-05", "10-20%, 1e-05"),
    ],
)
def test_a_hyphen_before_a_number_is_a_minus(text: str, said: str) -> None:
    assert minuses(f"<p>{text}</p>") == f"<p>{said}</p>"


@pytest.mark.parametrize(
    "kept",
    [
        "<style>p { margin: -5px -3; top: -1 }</style>",
        '<svg><path d="M0 -5.5 L3 -4"/></svg>',
        '<input name="q" value="-5">',
        '<option value="-5"> -5</option>',
        "<code>coalesce(cost, -1)</code>",
        '<pre tabindex="0">select -1</pre>',
        '<a class="sub id" href="/run?id=-5">-5</a>',
    ],
)
def test_what_is_typed_or_a_name_stays_as_it_is(kept: str) -> None:
    assert minuses(f"{kept} -5.5%") == f"{kept} −5.5%"
