"""Rows by name next to pyoxigraph's, and a DataFrame as triples, in one process.

    python bench/python-rows.py

In an environment with the wheel (or PYTHONPATH at crates/jindou-python/python), pandas, pyarrow and pyoxigraph. Both engines hold the same
triples in memory and are asked for all of them, in turn, `--rounds` times; each cell of each row is read by its name. "each term once" are
triples of which each has a subject and an object of its own, "few terms" those with a thousand subjects and objects. A time is the best of
the rounds, from the query to the last row.
"""

import argparse
import itertools
import time

import pandas
import pyoxigraph

import jindou

EX = "http://example.org/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
QUERY = "SELECT ?s ?p ?o { ?s ?p ?o }"


def each_once(rows):
    return "".join(f'<{EX}s{i}> <{EX}p> "{i}"^^<{INTEGER}> .\n' for i in range(rows))


def few(rows):
    pairs = itertools.islice(itertools.product(range(1000), range(1000)), rows)
    return "".join(f'<{EX}s{a}> <{EX}p> "{b}"^^<{INTEGER}> .\n' for a, b in pairs)


def by_name(ask, rows):
    begun = time.perf_counter()
    count = 0
    for row in ask(QUERY):
        row["s"], row["p"], row["o"]
        count += 1
    assert count == rows, count
    return time.perf_counter() - begun


def rows_by_name(args):
    print(f"{'rows by name':16} {'rows':>10} {'jindou, s':>10} {'pyoxigraph, s':>14} {'ratio':>6}")
    for name, make in (("each term once", each_once), ("few terms", few)):
        text = make(args.rows)
        ours, theirs = jindou.memory(), pyoxigraph.Store()
        ours.load(text=text, format="ntriples")
        theirs.bulk_load(text.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
        times = ([], [])
        for _ in range(args.rounds):
            times[0].append(by_name(ours.query, args.rows))
            times[1].append(by_name(theirs.query, args.rows))
        a, b = min(times[0]), min(times[1])
        print(f"{name:16} {args.rows:>10,} {a:>10.2f} {b:>14.2f} {a / b:>6.2f}", flush=True)


def frame(args):
    n = args.frame_rows
    people = pandas.DataFrame({"person": [f"{EX}s{i}" for i in range(n)], "age": range(n), "name": [f"name {i}" for i in range(n)]})
    triples = pandas.DataFrame({"subject": people["person"], "predicate": EX + "name", "object": people["name"]})
    print(f"\n{'a DataFrame':16} {'rows':>10} {'triples':>10} {'seconds':>10}")
    for name, add in (
        ("triples", lambda db: db.add_frame(triples)),
        ("two columns", lambda db: db.add_frame(people, {"age": jindou.IRI(EX + "age"), "name": jindou.IRI(EX + "name")}, subject="person")),
    ):
        times = []
        for _ in range(args.rounds):
            db = jindou.memory()
            begun = time.perf_counter()
            added = add(db).added
            times.append(time.perf_counter() - begun)
        print(f"{name:16} {n:>10,} {added:>10,} {min(times):>10.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--frame-rows", type=int, default=580_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rows_by_name(args)
    frame(args)


if __name__ == "__main__":
    main()
