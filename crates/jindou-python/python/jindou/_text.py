"""Answers as text: what `print` shows."""

from __future__ import annotations

from itertools import islice

from ._jindou import IRI, Literal

ROWS = 20
_WIDE = 60


def of_solutions(solutions, rows=ROWS):
    """The first rows as a table, and how many there are."""
    shown = list(islice(solutions, rows + 1))
    table = [[f"?{name}" for name in solutions.variables]]
    table += [[cell(term) for term in row] for row in shown[:rows]]
    widths = [max(map(len, column)) for column in zip(*table)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in table]
    count = f"the first {rows} rows" if len(shown) > rows else f"{len(shown)} row{'' if len(shown) == 1 else 's'}"
    return "\n".join([*lines, f"({count})"])


def cell(term):
    """A term on one line, cut if it is long."""
    if term is None:
        return ""
    text = term.value if isinstance(term, (IRI, Literal)) else str(term)
    if isinstance(term, Literal) and term.language:
        text += f"@{term.language}"
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" if c not in "\n\r\t" else " " for c in text)
    return text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"
