"""Answers as Arrow tables in Python: Jindou in the process, pyoxigraph in the process, and RDFLib and SPARQLWrapper over HTTP.

    python bench/python.py --jindou COMMAND --universities 160 --folder DIR

In an environment with the wheel (or PYTHONPATH at crates/jindou-python/python), pyarrow, pyoxigraph, rdflib and SPARQLWrapper. It generates LUBM,
loads it into a store of Jindou's and into one of pyoxigraph's (both on the disk; DIR keeps them for the next run), and asks each for L2 (173,040 rows
at 160 universities) and for ten million triples. Each way runs in a process of its own, in turn, `--rounds` times, and ends with a
`pyarrow.Table` in memory; the time is that of the query alone, on a store that is open. Answers are compared: L2 as sets of rows,
the other by its number of rows, since which ten million is each engine's choice. RDFLib and SPARQLWrapper hold the whole answer
as objects, more than memory may have, so over HTTP the large query is asked for `--http-rows`.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request

UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
L2 = f"SELECT ?x ?y {{ ?x a <{UB}Course> . ?x <{UB}name> ?y }}"


def all_triples(rows):
    return f"SELECT ?s ?p ?o {{ ?s ?p ?o }} LIMIT {rows}"


def table_of(names, rows):
    """Rows of texts as a table, as a program would make one of an iterator."""
    import pyarrow

    columns = list(zip(*rows)) or [()] * len(names)
    return pyarrow.table({name: pyarrow.array(column, pyarrow.string()) for name, column in zip(names, columns)})


def by_jindou(args):
    import jindou

    db = jindou.open(args.store, read_only=True)
    return lambda query: db.query(query).arrow()


def by_jindou_text(args):
    import jindou

    db = jindou.open(args.store, read_only=True)
    return lambda query: db.query(query).arrow(syntax="ntriples")


def by_pyoxigraph(args):
    import pyoxigraph

    store = pyoxigraph.Store.read_only(args.oxigraph)

    def ask(query):
        answer = store.query(query)
        names = [v.value for v in answer.variables]
        return table_of(names, ([term.value for term in row] for row in answer))

    return ask


def by_pyoxigraph_csv(args):
    """Through text, which pyoxigraph writes without making an object of each term."""
    import io

    import pyarrow.csv
    import pyoxigraph

    store = pyoxigraph.Store.read_only(args.oxigraph)

    def ask(query):
        text = store.query(query).serialize(format=pyoxigraph.QueryResultsFormat.CSV)
        return pyarrow.csv.read_csv(io.BytesIO(text), parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True))

    return ask


def by_rdflib(args):
    import rdflib
    from rdflib.plugins.stores.sparqlstore import SPARQLStore

    graph = rdflib.Graph(SPARQLStore(args.endpoint, method="POST_FORM"))

    def ask(query):
        answer = graph.query(query)
        return table_of([str(v) for v in answer.vars], ([str(term) for term in row] for row in answer))

    return ask


def by_sparqlwrapper(args):
    import SPARQLWrapper

    def ask(query):
        wrapper = SPARQLWrapper.SPARQLWrapper(args.endpoint, returnFormat=SPARQLWrapper.JSON)
        wrapper.setMethod(SPARQLWrapper.POST)
        wrapper.setQuery(query)
        answer = wrapper.queryAndConvert()
        names = answer["head"]["vars"]
        return table_of(names, ([row[n]["value"] for n in names] for row in answer["results"]["bindings"]))

    return ask


WAYS = {
    "jindou": by_jindou,
    "jindou, text as N-Triples": by_jindou_text,
    "pyoxigraph, rows": by_pyoxigraph,
    "pyoxigraph, CSV": by_pyoxigraph_csv,
    "RDFLib over HTTP": by_rdflib,
    "SPARQLWrapper over HTTP": by_sparqlwrapper,
}


def digest(table):
    """The rows as a set, whatever their order and whether columns are dictionaries."""
    columns = [table.column(name).cast("string").to_pylist() for name in sorted(table.column_names)]
    total = 0
    for row in zip(*columns):
        total += int.from_bytes(hashlib.blake2b("\0".join(map(str, row)).encode(), digest_size=8).digest(), "big")
    return total % 2**64


def one(args):
    """One way, one query, in this process: a line of JSON."""
    ask = WAYS[args.way](args)
    # Connections, imports and the first touch of code are no part of it.
    ask("SELECT ?x { ?x ?y ?z } LIMIT 1")
    begun = time.perf_counter()
    table = ask(args.query)
    seconds = time.perf_counter() - begun
    # Not getrusage's, which begins with what the process had that started this one.
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    peak = int(status["VmHWM"].split()[0]) >> 10
    compared = digest(table) if args.compare else None
    print(json.dumps({"seconds": seconds, "rows": table.num_rows, "digest": compared, "peak": peak, "bytes": table.nbytes}))


def run(args, way, query, compare):
    command = [sys.executable, __file__, "--way", way, "--query", query, "--store", args.store, "--oxigraph", args.oxigraph]
    command += ["--endpoint", args.endpoint] + (["--compare"] if compare else [])
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{way} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def prepare(args):
    os.makedirs(args.folder, exist_ok=True)
    text = os.path.join(args.folder, "lubm.nt")
    if os.path.exists(args.store) and os.path.exists(args.oxigraph):
        return
    subprocess.run([args.jindou, "generate", "lubm", "-n", str(args.universities), "--out", text], check=True)
    if not os.path.exists(args.store):
        begun = time.perf_counter()
        subprocess.run([args.jindou, "load", "--quiet", "--store", args.store, text], check=True)
        print(f"jindou loaded LUBM-{args.universities} in {time.perf_counter() - begun:.0f} s", flush=True)
    if not os.path.exists(args.oxigraph):
        import pyoxigraph

        begun = time.perf_counter()
        store = pyoxigraph.Store(args.oxigraph + ".part")
        store.bulk_load(path=text, format=pyoxigraph.RdfFormat.N_TRIPLES)
        store.optimize()
        del store
        os.rename(args.oxigraph + ".part", args.oxigraph)
        print(f"pyoxigraph loaded and optimized it in {time.perf_counter() - begun:.0f} s", flush=True)
    os.remove(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jindou", help="the command jindou, for data and the server")
    parser.add_argument("--universities", type=int, default=160)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the large answer")
    parser.add_argument("--http-rows", type=int, default=1_000_000, help="rows of the large answer over HTTP")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    parser.add_argument("--port", type=int, default=7894)
    for internal in ("--way", "--query", "--store", "--oxigraph", "--endpoint"):
        parser.add_argument(internal, help=argparse.SUPPRESS)
    parser.add_argument("--compare", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        one(args)
        return
    if not args.jindou or not args.folder:
        parser.error("--jindou and --folder are needed")
    args.store = os.path.join(args.folder, f"lubm-{args.universities}.store")
    args.oxigraph = os.path.join(args.folder, f"lubm-{args.universities}.oxigraph")
    args.endpoint = f"http://127.0.0.1:{args.port}/query"
    prepare(args)
    server = subprocess.Popen(
        [args.jindou, "serve", "--store", args.store, "--port", str(args.port), "--timeout", "1h"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{args.port}/ready").read()
                break
            except OSError:
                time.sleep(0.1)
        print(f"LUBM-{args.universities}, median of {args.rounds} rounds in turn, {os.cpu_count()} cores")
        measure(args, "L2", L2, L2, True)
        measure(args, f"{args.rows:,} triples", all_triples(args.rows), all_triples(args.http_rows), False)
    finally:
        server.terminate()
        server.wait()


def measure(args, name, query, over_http, compare):
    found = {way: [] for way in WAYS}
    for _ in range(args.rounds):
        for way, runs in found.items():
            asked = over_http if "HTTP" in way else query
            # N-Triples is another text, which is compared by its number of rows.
            runs.append(run(args, way, asked, compare and "N-Triples" not in way))
    digests = {r["digest"] for runs in found.values() for r in runs} - {None}
    if len(digests) > 1:
        sys.exit(f"{name}: the answers differ: {digests}")
    ours = statistics.median(r["seconds"] for r in found["jindou"])
    our_rows = found["jindou"][0]["rows"]
    print(f"\n{name}: {our_rows:,} rows{'; the same rows from all' if digests else ''}")
    print(f"{'way':28} {'rows':>11} {'seconds':>9} {'least':>8} {'most':>8} {'ns a row':>9} {'ratio a row':>12} {'table MiB':>10} {'peak MiB':>9}")
    for way, runs in found.items():
        times = [r["seconds"] for r in runs]
        rows = runs[0]["rows"]
        each = statistics.median(times) / max(rows, 1)
        print(
            f"{way:28} {rows:>11,} {statistics.median(times):>9.3f} {min(times):>8.3f} {max(times):>8.3f} {each * 1e9:>9.0f} "
            f"{each / (ours / max(our_rows, 1)):>12.1f} {runs[0]['bytes'] / 2**20:>10.1f} {max(r['peak'] for r in runs):>9}",
            flush=True,
        )


if __name__ == "__main__":
    main()
