"""Lines of run-event files read as columns: those of a plain form, which are nearly all; the others are left over."""

import polars as pl

from pipelines.base.parse import parse_json
from pipelines.ingest.runs.event import Form, plain_lines

# Lines whose form is tried in each block, of each kind, and the most forms that are known of a kind.
_SAMPLES, _MOST_FORMS = 8, 32
_KIND = r'"event"[ \t]*:[ \t]*"([a-z_]+)"'


class PlainForms:
    """The forms of lines met so far, by kind: a writer has a few, which differ in the keys they have."""

    def __init__(self) -> None:
        self._forms: dict[str, dict[tuple[str, ...], tuple[str, dict[str, Form]] | None]] = {}

    def read(self, lines: pl.DataFrame) -> tuple[dict[str, list[pl.DataFrame]], pl.DataFrame]:
        """Frames of events by kind, `at` in ms and a column for each field of theirs, and the lines that are left over.

        `lines` has file_no, line_no and `line`, its text. Null is a missing value; attempt_no may be null.
        """
        found: dict[str, list[pl.DataFrame]] = {}
        left = [lines.clear()]
        by_kind = lines.with_columns(kind=pl.col("line").str.extract(_KIND)).partition_by("kind", as_dict=True)
        for (kind,), rest in by_kind.items():
            rest = rest.drop("kind")
            forms = self._forms.setdefault(kind, {}) if kind else {}
            for form in [*forms.values()]:
                rest = _take(rest, form, found.setdefault(kind, []))
            for line in rest["line"].gather_every(max(1, rest.height // _SAMPLES)) if kind else ():
                keys = _keys(line)
                if keys and keys not in forms and len(forms) < _MOST_FORMS:
                    forms[keys] = plain_lines(kind, keys)
                    rest = _take(rest, forms[keys], found.setdefault(kind, []))
            left.append(rest)
        return found, pl.concat(left).sort("file_no", "line_no")


def _take(lines: pl.DataFrame, form: tuple[str, dict[str, Form]] | None, found: list[pl.DataFrame]) -> pl.DataFrame:
    """Add the events of the lines of a form to `found`; the other lines."""
    if form is None or lines.is_empty():
        return lines
    pattern, fields = form
    groups = pl.col("line").str.extract_groups(pattern).struct.rename_fields([*fields]).struct.unnest()
    texts = lines.select("file_no", "line_no", groups)
    values = texts.select("file_no", "line_no", *(_value(texts[name], form) for name, form in fields.items()))
    # What does not cast, such as February 30, is left over.
    is_read = pl.all_horizontal(
        texts["run_id"].is_not_null(),
        *(
            texts[name].is_null() | values[name].is_not_null()
            for name, form in fields.items()
            if form.dtype != pl.String
        ),
    )
    is_read = pl.select(is_read).to_series()
    events = values.filter(is_read)
    if events.is_empty():
        return lines
    found.append(events.rename({"attempt": "attempt_no"}, strict=False))
    return lines.filter(~is_read)


def _value(text: pl.Series, form: Form) -> pl.Series:
    if form.plain.endswith('Z"'):
        # Whole seconds are read several times as fast.
        fraction = "%.f" if text.str.contains(".", literal=True).any() else ""
        return text.str.to_datetime(f"%Y-%m-%dT%H:%M:%S{fraction}", time_unit="ms", strict=False).cast(pl.Int64)
    if form.dtype == pl.Boolean:
        return text == "true"
    if form.dtype == pl.String:
        return text.replace("", None)
    return text.cast(form.dtype, strict=False)


def _keys(line: str) -> tuple[str, ...]:
    """The keys of a line in their order; empty where it is no object."""
    try:
        pairs = parse_json(line, object_pairs_hook=list)
        return tuple(key for key, _ in pairs)
    except (ValueError, TypeError):
        return ()
