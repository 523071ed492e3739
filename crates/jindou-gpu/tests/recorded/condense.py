#!/usr/bin/env python3
"""Condenses the raw lines of the first runs on an H200, and the work of their queries, into h200.jsonl.

Usage: condense.py RAW WORKS UNIVERSITIES: the folder of raw lines; what the example `works` printed for a store of
LUBM(UNIVERSITIES), at least 1000, with T and D; that number.
"""
import json
import pathlib
import re
import sys

RAW, WORKS, BASE = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
SCALES = {2560: "first-contact-2560.jsonl", 10240: "queries-10240.jsonl"}
# Rows do not grow: L1's degrees are from universities 0 to 999, the others have a constant.
FIXED = {"L1", "L4", "L5", "L6", "q8", "q9", "q10", "q11", "q12"}
# Queries without a recorded text, asked over HTTP at 10,240 universities.
SERVED = {"T", "D"}

first = json.loads(pathlib.Path(__file__).with_name("h200.jsonl").open().readline())
recorded, runs = {}, []
for n, name in SCALES.items():
    for line in open(RAW / name):
        d = json.loads(line)
        if "rows_ms" in d:
            recorded[d["query"], n] = d


def figure(x):
    return float("%.6g" % x)


def run(query, n, stage, on, threads, rows, ms):
    if query == "L3" and stage != "queries":
        return
    gave = 1 if rows == "counted" else recorded[query, n]["rows"]
    runs.append({"query": query, "universities": n, "stage": stage, "on": on, "threads": threads, "rows": rows,
                 "ms": figure(ms), "gave": gave})


for n, name in SCALES.items():
    for line in open(RAW / name):
        d = json.loads(line)
        if "rows_ms" in d:
            run(d["query"], n, "queries", "cpu", 1, "summed", d["cpu_1_ms"])
            run(d["query"], n, "queries", "cpu", d["cpu_threads"], "summed", d["cpu_ms"])
            for key, rows in (("count_ms", "counted"), ("checksum_ms", "summed"), ("rows_ms", "sent")):
                run(d["query"], n, "queries", "gpu", 16, rows, d[key])
        elif d.get("stage") == "threads" and "ms" in d:
            run(d["query"], n, "threads", "cpu", d["threads"], "summed", d["ms"])
for line in open(RAW / "threads-10240.jsonl"):
    d = json.loads(line)
    run(d["query"], 10240, "threads", "cpu", d["threads"], "summed", d["ms"])
for option, stage in (("off", "bench"), ("on", "bench"), ("auto", "bench-auto")):
    for line in open(RAW / f"lubm-10240-gpu-{option}.txt"):
        # Columns: query, rows, checksum, and milliseconds: to plan; to execute (median, least, most); to write TSV
        # (median, least).
        cells = line.split()
        if len(cells) >= 9 and re.fullmatch(r"[0-9a-f]{16}", cells[2]):
            on = "gpu" if option == "on" else "cpu"
            run(cells[0], 10240, stage, on, 16, "summed", float(cells[4]))
            run(cells[0], 10240, stage, on, 16, "shown", float(cells[7]))
for line in open(RAW / "served-10240.txt"):
    m = re.match(r"(off|auto|on) (\w+) 200 .* median ([\d.]+) ms", line)
    if m:
        there = m[1] == "on" or (m[1], m[2]) == ("auto", "D")
        run(m[2], 10240, "served-auto" if m[1] == "auto" else "served", "gpu" if there else "cpu", 16, "counted",
            float(m[3]))

works = []
for line in open(WORKS):
    d = json.loads(line)
    query = d["query"]
    for n in SCALES:
        if (query, n) not in recorded and not (query in SERVED and n == 10240):
            continue
        w, times = dict(d["work"]), n / BASE
        for key in ("ordered", "leaving", "rows", "passed", "cpu_ns"):
            # A count leaves as one row.
            if query not in FIXED and not (query in SERVED and key in ("leaving", "rows")):
                w[key] *= times
        w["sectors"] = [[size * times, k * (1 if query in FIXED else times)] for size, k in w["sectors"]]
        w["segments"] *= times
        if query == "L1":
            w["cpu_ns"] = recorded[query, n]["predicted_cpu_ms"] * recorded[query, n]["cpu_threads"] * 1e6
        for key, value in w.items():
            if key == "sectors":
                w[key] = [[figure(size), figure(k)] for size, k in value]
            elif key != "shape":
                w[key] = figure(value)
        works.append({"query": query, "universities": n, "work": w})
with open(pathlib.Path(__file__).with_name("h200.jsonl"), "w") as out:
    for d in [first, *works, *runs]:
        out.write(json.dumps(d, separators=(",", ":")) + "\n")
