#!/usr/bin/env python3
"""Draws docs/pictures/comparison.svg from the tables of docs/lab/benchmarks.md: how many times as long as Jindou each other engine took,
a dot for each query and a bar at the geometric mean of each workload. Nothing is left out but queries that one of the two did not
answer rightly, or that Jindou did not finish. `--check` compares the file with what it would draw, and prints the means."""
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs/lab/benchmarks.md"
TARGET = ROOT / "docs/pictures/comparison.svg"
# The beginning of the paragraph above each table, and what the plot calls it.
WORKLOADS = [
    ("BSBM explore,", "BSBM, explore", "12 lookups of a shop"),
    ("BSBM business intelligence,", "BSBM, business intelligence", "8 reports on a shop"),
    ("LUBM's official queries,", "LUBM, official", "14 on universities"),
    ("WatDiv-100", "WatDiv", "20 graph patterns"),
    ("SP²Bench,", "SP²Bench", "17 on a bibliography"),
]
ENGINES = ["Oxigraph", "Virtuoso", "Jena"]


def milliseconds(cell):
    """(milliseconds, whether that is only a lower bound), or None if the answer was wrong."""
    cell = cell.strip().strip("*")
    late = re.fullmatch(r"> ([\d.]+) s", cell)
    if late:
        return float(late[1]) * 1000, True
    if cell.startswith("("):
        return None
    return float(cell.replace(",", "")), False


def tables(text):
    """Workload → engine → list of cells, in the order of the queries."""
    found, current = {}, None
    for line in text.splitlines():
        for start, name, _ in WORKLOADS:
            if line.startswith(start):
                current = found.setdefault(name, {})
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if current is not None and line.startswith("|") and cells[0] in ["Jindou", *ENGINES]:
            current.setdefault(cells[0], []).extend(milliseconds(c) for c in cells[1:])
    return found


def ratios(rows, engine):
    """How many times as long as Jindou, and whether that is a lower bound, of each query that counts."""
    out = []
    for own, other in zip(rows["Jindou"], rows[engine], strict=True):
        if own is None or own[1] or other is None:
            continue
        out.append((other[0] / own[0], other[1]))
    return out


def mean(points):
    return math.exp(sum(math.log(r) for r, _ in points) / len(points))


def short(x):
    return f"{x:.1f}" if x < 10 else f"{x:.0f}"


WIDTH, LEFT, RIGHT, TOP, ROW, GAP = 780, 288, 64, 66, 19, 17
LOW, HIGH = math.log10(0.5), math.log10(20000)


def place(ratio):
    return LEFT + (math.log10(ratio) - LOW) / (HIGH - LOW) * (WIDTH - LEFT - RIGHT)


def draw(data):
    height = TOP + len(WORKLOADS) * (len(ENGINES) * ROW + GAP) + 52
    lines = []
    add = lines.append
    end = height - 58
    for tick, label in [(1, "as fast"), (10, "10 ×"), (100, "100 ×"), (1000, "1,000 ×"), (10000, "10,000 ×")]:
        x = place(tick)
        add(f'<line class="{"same" if tick == 1 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 10}" y2="{end:.0f}"/>')
        add(f'<text class="muted" x="{x:.1f}" y="{TOP - 16}" text-anchor="middle">{label}</text>')
    y = TOP + 6
    lost = total = 0
    for _, name, about in WORKLOADS:
        add(f'<text class="name" x="16" y="{y + 4:.0f}">{name}</text>')
        add(f'<text class="muted" x="16" y="{y + 20:.0f}">{about}</text>')
        for number, engine in enumerate(ENGINES):
            points = ratios(data[name], engine)
            add(f'<text x="{LEFT - 12}" y="{y + 4:.0f}" text-anchor="end">{engine}</text>')
            for ratio, least in points:
                lost += ratio < 1
                total += 1
                kind = "lost" if ratio < 1 else f"e{number}"
                if least:
                    x = place(ratio)
                    add(f'<path class="{kind}" d="M{x - 3:.1f} {y - 4}l7 4l-7 4z"/>')
                else:
                    add(f'<circle class="{kind}" cx="{place(ratio):.1f}" cy="{y}" r="3.4"/>')
            middle, least = mean(points), any(least for _, least in points)
            x = place(middle)
            add(f'<line class="mean" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 8}" y2="{y + 8}"/>')
            add(f'<text class="figure" x="{WIDTH - 12}" y="{y + 4:.0f}" text-anchor="end">{"&gt; " if least else ""}{short(middle)} ×</text>')
            y += ROW
        y += GAP
    notes = [
        "A dot is a query, a triangle one that the other engine had not finished at the limit (3 or 10 s), the bar the geometric mean.",
        f"Jindou lost {lost} of these {total} races, left of “as fast”. Answers that were wrong, and two queries that no engine finished, are left out.",
        "Over HTTP, the same data in each engine (10 to 15 million triples), asked in turn, on two cores. Every number: docs/lab/benchmarks.md.",
    ]
    for i, note in enumerate(notes):
        add(f'<text class="muted" x="16" y="{height - 38 + 15 * i}" font-size="11">{note}</text>')
    head = f"""<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" font-family="system-ui, sans-serif" font-size="12">
<title>Time of Oxigraph, Virtuoso and Jena divided by Jindou's, for each query of five workloads</title>
<style>
.page {{ fill: #ffffff }} text {{ fill: #1c2128 }} .muted {{ fill: #59636e }} .name {{ font-weight: 600 }} .figure {{ font-weight: 600 }}
.grid {{ stroke: #dfe3e8 }} .same {{ stroke: #59636e; stroke-width: 1.5 }} .mean {{ stroke: #1c2128; stroke-width: 2.5 }}
.e0 {{ fill: #2563c9 }} .e1 {{ fill: #b45309 }} .e2 {{ fill: #1f7a34 }} .lost {{ fill: #c4183c }}
circle, path {{ opacity: .75 }}
@media (prefers-color-scheme: dark) {{
.page {{ fill: #0f1419 }} text {{ fill: #e6eaef }} .muted {{ fill: #a7b0bb }}
.grid {{ stroke: #2b333d }} .same {{ stroke: #a7b0bb }} .mean {{ stroke: #e6eaef }}
.e0 {{ fill: #7aaeff }} .e1 {{ fill: #ffb066 }} .e2 {{ fill: #63cf7d }} .lost {{ fill: #ff7b93 }}
}}
</style>
<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>
<text class="name" x="16" y="24" font-size="15">How many times as long as Jindou other engines take</text>"""
    return "\n".join([head, *lines, "</svg>"]) + "\n"


def main():
    data = tables(SOURCE.read_text(encoding="utf-8"))
    missing = [name for _, name, _ in WORKLOADS if name not in data or len(data[name]) != 1 + len(ENGINES)]
    if missing:
        sys.exit(f"{SOURCE}: no table of {', '.join(missing)}: the paragraph above it begins otherwise")
    drawn = draw(data)
    if sys.argv[1:] == ["--check"]:
        for _, name, _ in WORKLOADS:
            for engine in ENGINES:
                points = ratios(data[name], engine)
                print(f"{name}: {engine} {'> ' if any(l for _, l in points) else ''}{mean(points):.3g} × over {len(points)}")
        if TARGET.read_text(encoding="utf-8") != drawn:
            sys.exit(f"{TARGET} is not what {SOURCE} has: run scripts/comparison-plot.py")
        return
    TARGET.write_text(drawn, encoding="utf-8")
    print(f"wrote {TARGET}")


main()
