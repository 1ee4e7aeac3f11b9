"""What a person sees in the terminal: progress, tables that fit it, errors in one sentence.

Results go to standard output, progress and errors to standard error, so that output can be piped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from textwrap import wrap
from typing import TYPE_CHECKING

# Every command has a console; what it prints with is imported when it prints.
if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console as RichConsole
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

# Characters of a line where no terminal has a width.
_PAGER_WIDTH = 120
# More rows than this are not printed as blocks where a narrower table is possible.
_MOST_BLOCKS = 10
# Columns of amounts, also one that is selected twice.
_AMOUNT = re.compile(r"_usd(_\d+)?$")
# Longer messages, and names longer than most paths, are cut.
_MOST_LETTERS, _LONG_WORD = 2_000, re.compile(r"(\S{150})\S{150,}(\S{40})")
# A name of a column goes on below after a space or an underscore.
_WORD = re.compile(r"\s*(?:[^\s_]+_*|_+)")
# Lines of progress where no terminal can show a bar.
_LINES = 4


class Steps:
    """Progress over a known number of steps: one bar on a terminal, a line for each quarter of them elsewhere."""

    def __init__(self, bar: Progress, total: int):
        self._bar, self._total, self._done = bar, total, 0
        self._task = bar.add_task("starting", total=total)

    def step(self, what: str, outcome: str = "") -> None:
        """One step is done."""
        from rich.markup import escape

        self._done += 1
        self._bar.update(self._task, advance=1, description=escape(what))
        if self._bar.disable and self._done * _LINES // self._total > (self._done - 1) * _LINES // self._total:
            line = f"[{self._done}/{self._total}] {what}{': ' + outcome if outcome else ''}"
            self._bar.console.print(_text(line), soft_wrap=True)


class Console:
    """Standard output for results, standard error for everything about them."""

    def __init__(self) -> None:
        from rich.console import Console as RichConsole

        self._out = RichConsole(highlight=False)
        if not self._out.is_terminal:
            # A pipe is as wide as what is written to it.
            self._out.width = 1_000_000
        self._err = RichConsole(stderr=True, highlight=False)

    @property
    def width(self) -> int:
        """Characters a line of the result has room for."""
        return self._out.width

    def say(self, sentence: str, hang: int | None = None) -> None:
        """Print a line of the result; on a terminal what it has no room for goes on below, `hang` characters in."""
        _print(self._out, sentence, hang)

    def code(self, line: str) -> None:
        """Print a line to be copied, in one piece."""
        self._out.print(_text(line), soft_wrap=True)

    def paragraph(self, text: str, indent: str = "") -> None:
        """Print a text over as many lines as it needs."""
        for line in folded(text, self.width, indent):
            self.say(line)

    def note(self, sentence: str) -> None:
        """Print a line about the work."""
        _print(self._err, shortened(sentence))

    def error(self, sentence: str) -> None:
        """Print an error."""
        _print(self._err, f"Error: {shortened(sentence)}", bold="Error: ")

    @contextmanager
    def steps(self, total: int) -> Iterator[Steps]:
        """Progress over `total` steps."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        is_hidden = not self._err.is_terminal
        with Progress(*columns, console=self._err, transient=True, disable=is_hidden) as bar:
            yield Steps(bar, total)

    def table(
        self,
        frame: pl.DataFrame,
        title: str = "",
        *,
        keep: Sequence[str] | None = None,
        figures: Collection[str] | None = None,
    ) -> None:
        """Print rows as a table; where they are too wide for the terminal, folded if they are many, or a block per row.

        With `keep`, many rows show these columns and the others that fit, and a note states how many there are.
        With `figures`, those columns are flush right and the texts of the others take as many lines as they need.
        """
        places = [2 if _AMOUNT.search(name) else 0 for name in frame.columns]
        cells = [[cell_text(*cell) for cell in zip(row, places, strict=True)] for row in frame.rows()]
        widths = [max(map(len, column)) + 3 for column in zip(frame.columns, *cells, strict=True)]
        # Piped rows are read by programs, piped reports in pagers.
        numbers = [name for name, kind in frame.schema.items() if kind.is_numeric()]
        room = self._out.width if self._out.is_terminal or figures is None else _PAGER_WIDTH
        if sum(widths) < room:
            self._out.print(_grid(frame, cells, title, figures))
        elif figures is not None and (narrow := _narrowed(frame.columns, cells, figures, room)):
            self._out.print(_grid(frame, _broken(frame.columns, cells, figures), title, figures, narrow))
        elif keep is not None and len(cells) > _MOST_BLOCKS:
            fitting = _fitting(frame.columns, widths, keep, self._out.width)
            if len(fitting) == 1 < frame.width:
                # One long name alone shows no figure.
                most = self._out.width // 3
                cells = [[text if len(text) <= most else f"{text[: most - 1]}…" for text in row] for row in cells]
                widths = [max(map(len, column)) + 3 for column in zip(frame.columns, *cells, strict=True)]
                fitting = _fitting(frame.columns, widths, keep, self._out.width)
            self._out.print(_grid(frame[:, fitting], [[row[at] for at in fitting] for row in cells], title))
            self.note(f"{len(fitting)} of {frame.width} columns shown; select others by name, or use --csv.")
        elif len(cells) > _MOST_BLOCKS and (narrow := _narrowed(frame.columns, cells, numbers, room)):
            self._out.print(_grid(frame, cells, title, numbers, narrow))
        else:
            self._blocks(frame.columns, cells)

    def _blocks(self, columns: Sequence[str], cells: list[list[str]]) -> None:
        """One block per row, one line per column; a long value goes on below itself."""
        # Spaces that align a column are not needed here.
        names = [name.strip() for name in columns]
        width = max(map(len, names), default=0)
        for number, row in enumerate(cells, start=1):
            self.say(f"── row {number} of {len(cells)}")
            for name, text in zip(names, row, strict=True):
                first, *others = folded(text.strip(), max(self.width - width - 2, 20), "") or [""]
                self.say(f"{name.ljust(width)}  {first}".rstrip())
                for line in others:
                    self.say(f"{' ' * width}  {line.strip()}")
        if not cells:
            self.say("no rows")


def _fitting(names: Sequence[str], widths: Sequence[int], keep: Sequence[str], width: int) -> list[int]:
    """The places of the columns to show: the first, those of `keep`, then the others as they fit."""
    left, found = width - 1, []
    for at in sorted(range(len(names)), key=lambda at: at > 0 and names[at] not in keep):
        if not found or widths[at] <= left:
            found.append(at)
            left -= widths[at]
    return sorted(found)


def _narrowed(
    names: Sequence[str], cells: Sequence[Sequence[str]], figures: Collection[str], width: int
) -> list[int] | None:
    """The width of each column where words go on below, and figures never; None where that is too wide, too."""
    columns = list(zip(*_broken(names, cells, figures), strict=True)) or [()] * len(names)
    least, wanted = [], []
    for name, column in zip(names, columns, strict=True):
        whole = [line for text in column for line in (text.split("\n") if name in figures else text.split())]
        least.append(max(map(len, (*map(str.strip, _WORD.findall(name)), *whole)), default=1))
        wanted.append(max(map(len, (name, *whole, *(() if name in figures else column)))) - least[-1])
    # Between columns are two spaces.
    room = width - sum(least) - 2 * (len(names) - 1)
    shared = sum(wanted) or 1
    return [own + more * room // shared for own, more in zip(least, wanted, strict=True)] if room >= 0 else None


def _broken(names: Sequence[str], cells: Sequence[Sequence[str]], figures: Collection[str]) -> list[list[str]]:
    """The cells, each figure of one on a line of its own."""
    return [
        [text.replace("; ", ";\n") if name in figures else text for name, text in zip(names, row, strict=True)]
        for row in cells
    ]


def _folded_name(name: str, width: int) -> str:
    """The name of a column over as many lines as it needs, each as long as fits."""
    lines = [""]
    for word in _WORD.findall(name):
        if len(lines[-1] + word) <= width:
            lines[-1] += word
        else:
            lines.append(word.lstrip())
    return "\n".join(lines).strip("\n")


def folded(text: str, width: int, indent: str = "  ", hang: str | None = None) -> list[str]:
    """A text over as many lines as it needs, each indented, those below the first by `hang`.

    A path or an id stays in one piece, to be copied.
    """
    return wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  " if hang is None else hang,
        break_on_hyphens=False,
        break_long_words=False,
    )


def cell_text(value: object, places: int = 0) -> str:
    """A value as people read it: nothing for null, no trailing zeros but of cents, control characters escaped.

    A decimal keeps as many `places` at least: those of an amount that shares its column with parts of a cent.
    """
    if value is None:
        return ""
    if isinstance(value, Decimal):
        whole = format(value, "f")
        if value.as_tuple().exponent == -2:
            return whole
        number, _, decimals = whole.partition(".")
        decimals = decimals.rstrip("0").ljust(places, "0")
        return f"{number}.{decimals}" if decimals else number
    return printable(str(value))


def printable(text: str) -> str:
    """What a run or a tag is called must not move a terminal's cursor, nor break a line."""
    # Amounts have no-break spaces.
    return "".join(c if c.isprintable() or c == "\u00a0" else c.encode("unicode_escape").decode() for c in text)


def shortened(sentence: str) -> str:
    """A message without the middle of long names; where it is long all the same, its beginning and its fix."""
    sentence = _LONG_WORD.sub(r"\1…\2", sentence)
    return sentence if len(sentence) <= _MOST_LETTERS else f"{sentence[: _MOST_LETTERS // 2]} … {sentence[-400:]}"


def _print(out: RichConsole, sentence: str, hang: int | None = None, bold: str = "") -> None:
    """Print a sentence in one line, on a terminal folded at words; what it begins with may stand out."""
    text = printable(sentence)
    if not out.is_terminal or len(text) <= out.width:
        lines = [text]
    else:
        start = len(text) - len(text.lstrip())
        lines = folded(text, out.width, "", " " * (start + 2 if hang is None else hang))
    for number, line in enumerate(lines):
        shown = _text(line)
        if bold and not number:
            shown.stylize("bold red", 0, len(bold))
        out.print(shown, soft_wrap=True)


def _text(line: str) -> Text:
    from rich.text import Text

    return Text(printable(line))


def _grid(
    frame: pl.DataFrame,
    cells: list[list[str]],
    title: str,
    figures: Collection[str] | None = None,
    widths: Sequence[int] = (),
) -> Table:
    """The table, each column as wide as its longest value, or of the given widths; with `figures`, without borders."""
    from rich.box import HEAVY_HEAD, SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=title or None, title_justify="left", header_style="bold", box=HEAVY_HEAD)
    if figures is not None:
        grid.box, grid.show_edge, grid.pad_edge, grid.padding = SIMPLE_HEAD, False, False, (0, 1, 0, 0)
    for at, (name, kind) in enumerate(frame.schema.items()):
        justify = "right" if kind.is_numeric() or name in (figures or ()) else "left"
        width = widths[at] if widths else None
        head = _folded_name(name, width) if width else name
        grid.add_column(Text(head), justify=justify, no_wrap=not widths, width=width)
    for row in cells:
        grid.add_row(*map(Text, row))
    return grid
