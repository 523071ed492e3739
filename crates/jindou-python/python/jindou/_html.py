"""Answers as HTML for notebooks. Everything that comes from data is escaped, and nothing is fetched from elsewhere."""

from __future__ import annotations

import math
from html import escape
from itertools import islice

from ._jindou import BlankNode, IRI, Literal

ROWS = 100
# With more nodes, the picture would be unreadable.
NODES = 60
_LONG = 300
_TABLE = '<table class="jindou" style="text-align:left">'


def of_solutions(solutions, rows=ROWS):
    """The first rows as a table."""
    try:
        shown = list(islice(solutions, rows + 1))
    except Exception as error:  # a notebook shows why, where the table would be
        return f"<pre>{escape(str(error))}</pre>"
    head = "".join(f"<th>{escape(name)}</th>" for name in solutions.variables)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell(term)}</td>" for term in row) + "</tr>" for row in shown[:rows]
    )
    many = f"the first {rows} rows" if len(shown) > rows else _count(len(shown), "row")
    return f"{_TABLE}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{many}</p>"


def of_triples(triples, rows=ROWS):
    """A drawing where there are few nodes, and the first triples as a table."""
    shown = list(islice(triples, rows))
    body = "".join("<tr>" + "".join(f"<td>{cell(t)}</td>" for t in triple) + "</tr>" for triple in shown)
    head = "<tr><th>subject</th><th>predicate</th><th>object</th></tr>"
    table = f"{_TABLE}<thead>{head}</thead><tbody>{body}</tbody></table>"
    count = len(triples)
    many = f"the first {rows} of {count} triples" if count > rows else _count(count, "triple")
    return f"{drawing(triples)}{table}<p>{many}</p>"


def _count(number, name):
    return f"{number} {name}{'' if number == 1 else 's'}"


def cell(term):
    """A term as HTML."""
    if term is None:
        return ""
    if isinstance(term, IRI):
        text = escape(_short(term.value))
        # Other schemes (javascript: …) are not links.
        if term.value.startswith(("http://", "https://")):
            return f'<a href="{escape(term.value, quote=True)}" target="_blank" rel="noopener noreferrer">{text}</a>'
        return text
    if isinstance(term, Literal):
        text = escape(_short(term.value))
        if term.language:
            return f"{text} <small>@{escape(term.language)}</small>"
        name = term.datatype.value.rpartition("#")[2]
        return f'<span title="{escape(term.datatype.value, quote=True)}">{text}</span>' if name != "string" else text
    return escape(_short(str(term)))


def _short(text):
    return text if len(text) <= _LONG else text[:_LONG] + "…"


def _label(term):
    if isinstance(term, IRI):
        text = term.value.rstrip("/#")
        text = text[max(text.rfind("/"), text.rfind("#")) + 1 :] or term.value
    elif isinstance(term, BlankNode):
        text = str(term)
    else:
        text = str(getattr(term, "value", term))
    return text if len(text) <= 24 else text[:23] + "…"


def drawing(triples):
    """The triples as a graph in SVG; empty text if there are too many nodes, or none."""
    places = {}
    edges = []
    for subject, predicate, value in triples:
        for term in (subject, value):
            if term not in places:
                if len(places) == NODES:
                    return ""
                places[term] = len(places)
        edges.append((places[subject], places[value], predicate))
    if not places:
        return ""
    points = _layout(len(places), [(a, b) for a, b, _ in edges])
    width, height = 720, 480
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        'style="max-width:100%;background:#fff;font:11px sans-serif">'
    ]
    at = [(50 + x * (width - 100), 30 + y * (height - 60)) for x, y in points]
    for a, b, predicate in edges:
        (x, y), (u, v) = at[a], at[b]
        out.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" stroke="#999"/>')
        # The arrow head is at three quarters of the edge, so that two edges between the same nodes can be told apart.
        p, q = x + (u - x) * 0.7, y + (v - y) * 0.7
        angle = math.atan2(v - y, u - x)
        tips = [(p + 7 * math.cos(angle + turn), q + 7 * math.sin(angle + turn)) for turn in (0, 2.5, -2.5)]
        out.append('<polygon fill="#999" points="' + " ".join(f"{i:.1f},{j:.1f}" for i, j in tips) + '"/>')
        middle = ((x + u) / 2, (y + v) / 2 - 3)
        out.append(
            f'<text x="{middle[0]:.1f}" y="{middle[1]:.1f}" fill="#555" text-anchor="middle">'
            f"<title>{escape(predicate.value)}</title>{escape(_label(predicate))}</text>"
        )
    for term, place in places.items():
        x, y = at[place]
        colour = {IRI: "#1f6feb", BlankNode: "#6e7781"}.get(type(term), "#bf8700")
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"><title>{escape(_short(str(term)))}</title></circle>')
        out.append(f'<text x="{x:.1f}" y="{y + 17:.1f}" fill="#000" text-anchor="middle">{escape(_label(term))}</text>')
    out.append("</svg>")
    return "".join(out)


def _layout(count, edges):
    """Places in the unit square: nodes repel each other, edges pull (Fruchterman and Reingold, 1991). The same every time."""
    turn = math.pi * (3 - math.sqrt(5))
    points = [
        [math.sqrt((i + 0.5) / count) * math.cos(i * turn), math.sqrt((i + 0.5) / count) * math.sin(i * turn)]
        for i in range(count)
    ]
    ideal = 1.5 / math.sqrt(count)
    for step in range(80):
        moves = [[0.0, 0.0] for _ in points]
        for i in range(count):
            for j in range(i):
                dx, dy = points[i][0] - points[j][0], points[i][1] - points[j][1]
                push = ideal * ideal / max(dx * dx + dy * dy, 1e-6)
                moves[i][0] += dx * push
                moves[i][1] += dy * push
                moves[j][0] -= dx * push
                moves[j][1] -= dy * push
        for i, j in edges:
            dx, dy = points[i][0] - points[j][0], points[i][1] - points[j][1]
            pull = math.hypot(dx, dy) / ideal
            moves[i][0] -= dx * pull
            moves[i][1] -= dy * pull
            moves[j][0] += dx * pull
            moves[j][1] += dy * pull
        reach = 0.15 * (1 - step / 80)
        for point, (dx, dy) in zip(points, moves):
            length = math.hypot(dx, dy) or 1.0
            point[0] += dx / length * min(length, reach)
            point[1] += dy / length * min(length, reach)
    low = [min(p[k] for p in points) for k in (0, 1)]
    high = [max(p[k] for p in points) for k in (0, 1)]
    return [tuple((p[k] - low[k]) / (high[k] - low[k]) if high[k] > low[k] else 0.5 for k in (0, 1)) for p in points]
