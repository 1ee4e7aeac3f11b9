"""The PDF of a report, laid out by typst from the blocks of its HTML page, so that no figure is formatted twice.

Typst receives text and never markup, so any name of a run is printed as it is.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pipelines.base import resources
from pipelines.base.errors import UsageError
from pipelines.present.blocks import blocks_of
from pipelines.present.render import ReportFacts, facts_of, sheets_of
from pipelines.warehouse.publication import Publication

TEMPLATE = "page.typ"
# Relative type sizes; the smallest is still readable.
_SCALES = (1.0, 0.94, 0.88, 0.82, 0.76, 0.7)
# Typst includes the first; the second has the characters it lacks.
FONTS = ("Libertinus Serif", "DejaVu Sans Mono")
Form = Literal["pdf", "png"]


def paper(page: str, kind: str, published: Publication, month: str | None) -> bytes:
    """The PDF of a report's page; the same bytes for the same page and publication.

    Raises UsageError where typst or its fonts are missing.
    """
    return b"".join(pdf_of_page(page, sheets_of(kind), facts_of(published, month)))


def pdf_of_page(page: str, sheets: int | None, facts: ReportFacts, form: Form = "pdf") -> list[bytes]:
    """An HTML report on paper; set smaller until it fits on `sheets`, if that is limited."""
    blocks = blocks_of(page)
    title = "".join(text for text, _ in blocks[0]["runs"])
    content = {
        "title": title,
        "foot": f"{title}. Publication {facts.publication_number}, revision {facts.code_revision}.",
        "blocks": blocks,
    }
    for scale in _SCALES if sheets else _SCALES[:1]:
        pictures = _compiled(content, facts, "png", scale=scale, ppi=8) if sheets else []
        if len(pictures) <= (sheets or 0) or scale == _SCALES[-1]:
            return _compiled(content, facts, form, scale=scale)
    return _compiled(content, facts, form)


def _compiled(
    content: dict[str, Any], facts: ReportFacts, form: Form, *, scale: float = 1.0, ppi: int = 144
) -> list[bytes]:
    try:
        import typst
    except ImportError:
        raise UsageError("The PDF is laid out by typst, which is not installed; run `pip install typst`.") from None
    lacking = [font for font in FONTS if font not in typst.Fonts().families()]
    if lacking:
        raise UsageError(
            f"The PDF is set in {' and '.join(lacking)}, which this machine lacks; install fonts-dejavu and a typst "
            "that brings its fonts, or take the HTML page, which prints too."
        )
    made = typst.compile(
        str(resources.DASHBOARDS / TEMPLATE),
        format=form,
        ppi=ppi,
        sys_inputs={"page": json.dumps(content), "scale": str(scale)},
        timestamp=int(facts.published_at.timestamp()),
    )
    return made if isinstance(made, list) else [made] if isinstance(made, bytes) else []
