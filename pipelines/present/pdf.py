"""The PDF of a report, laid out by typst from the elements of its HTML page, so that no figure is formatted twice.

Typst reads the page as data and never as its own markup, so any name of a run is printed as it is.
"""

import json
from typing import Literal

import typst

from pipelines.base import resources
from pipelines.base.errors import UsageError
from pipelines.present.charts import PALETTE
from pipelines.present.render import plan_of
from pipelines.warehouse.publication import Publication

TEMPLATE = "page.typ"
# Relative type sizes; the smallest makes the 9 points of the text 8.
SCALES = (1.0, 0.94, 0.89)
# Typst includes the first; the second has the characters it lacks.
FONTS = ("Libertinus Serif", "DejaVu Sans Mono")
Form = Literal["pdf", "png"]


def paper(page: str, kind: str, published: Publication) -> bytes:
    """The PDF of a report's page; the same bytes for the same page and publication.

    Raises UsageError where fonts are missing, ValueError for a page that no report has.
    """
    return b"".join(pdf_of_page(page, plan_of(kind).get("sheets"), published))


def pdf_of_page(page: str, sheets: int | None, published: Publication, form: Form = "pdf") -> list[bytes]:
    """A report on paper; set smaller where it then fits on `sheets`, if that is limited. Raises as `paper` does."""
    for scale in SCALES if sheets else ():
        if len(_compiled(page, published, "png", scale=scale, ppi=8)) <= (sheets or 0):
            return _compiled(page, published, form, scale=scale)
    return _compiled(page, published, form)


def _compiled(page: str, published: Publication, form: Form, *, scale: float = 1.0, ppi: int = 144) -> list[bytes]:
    lacking = [font for font in FONTS if font not in typst.Fonts().families()]
    if lacking:
        raise UsageError(
            f"The PDF is set in {' and '.join(lacking)}, which this machine lacks; install fonts-dejavu and a typst "
            "that brings its fonts, or take the HTML page, which prints too."
        )
    try:
        made = typst.compile(
            str(resources.DASHBOARDS / TEMPLATE),
            format=form,
            ppi=ppi,
            sys_inputs=inputs(page, published, scale),
            timestamp=int(published.published_at.timestamp()),
        )
    except typst.TypstError as error:
        raise ValueError(f"the page cannot be laid out: {error}") from error
    return made if isinstance(made, list) else [made] if isinstance(made, bytes) else []


def inputs(page: str, published: Publication, scale: float = 1.0) -> dict[str, str]:
    foot = f"Publication {published.number}, revision {published.code_revision}."
    return {"page": page, "palette": json.dumps(PALETTE), "scale": str(scale), "foot": foot}
