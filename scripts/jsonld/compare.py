#!/usr/bin/env python3
"""Compares Jindou's reader of JSON-LD with pyld and jsonld.js over random documents.

Needs the package pyld, and jsonld in the folder that --node names. Where both of them agree, Jindou must agree as well,
except in the documents of EXCEPTIONS. What none of them has to say about a document, since it fails with a fault of its
own, does not count.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from documents import Documents
from pyld import jsonld

BASE = "http://base/doc/x"
REFUSED = "refused"
FAULT = "fault"
WRONG = ["different", "accepted, refused by both"]
# Documents in which both others depart from the standard: steps of JSON-LD 1.1 API, the rule, and the documents' seeds.
# Titanium 1.4.1 (Maven) reads 47 of these 59 like Jindou, and departs from it elsewhere in the others.
EXCEPTIONS = [
    (
        "5.1.2, 8, 13.8.2, 13.9, 13.13",
        "a property's context is applied once, to its values",
        [1282, 2019, 2253, 2290, 2328, 5614, 6211, 6232, 7128, 7229, 7485, 7807],
    ),
    (
        "5.1.2, 13.8.3.4, 13.8.3.7.4",
        "a map's keys are read by the context around the map",
        [1022, 1353, 1454, 1845, 6107, 6195, 6332, 6346, 6804, 7216, 7318, 7437],
    ),
    (
        "5.1.2, 13.8.3.1",
        "the context of a type that is a map's key ends with that key",
        [1286, 5622, 6355, 7446, 7874],
    ),
    (
        "5.1.2, 13.8.3.7.2, 13.8.3.7.4",
        "a map's key @none adds nothing to a value",
        [378, 707, 874, 1411, 1412, 1626, 1758, 1814, 2027, 2127, 5010, 5176, 5365, 5647, 6217, 6293, 7396],
    ),
    (
        "5.1.2, 13.4",
        "nothing below a node's key @none is expanded",
        [132, 793, 2111, 2254, 5337, 5806, 6128, 7843],
    ),
    (
        "5.1.2, 7",
        "a value with many keys keeps the contexts of types around it",
        [1212, 1872],
    ),
    (
        "5.2.2, 4",
        "an @id that is an alias of a keyword is that keyword",
        [1279, 5084],
    ),
    (
        "RFC 3987, 2.2",
        "an IRI has one # at most",
        [2311],
    ),
    # Here Jindou accepts what the standard refuses.
    ("7.2.2, 6.8", "@index is not compared in a graph whose name is not valid, as nothing of it is kept", [1048]),
    ("5.1.2, 13.4.6.3", "an included node may have a @reverse without any property", [7207]),
]


def no_loader(url, options):
    raise jsonld.JsonLdError(f"not loaded: {url}", "no loader")


def canonical(quads):
    """The canonical form of N-Quads, without base directions, which both of the others leave out."""
    quads = re.sub(r'"@([A-Za-z0-9-]+?)--(?:ltr|rtl)\b', r'"@\1', quads)
    quads = re.sub(r'"@([A-Za-z0-9-]+)', lambda m: '"@' + m[1].lower(), quads)
    options = {"algorithm": "URDNA2015", "inputFormat": "application/n-quads", "format": "application/n-quads"}
    try:
        return jsonld.normalize(quads, options)
    except jsonld.JsonLdError:
        return FAULT  # What was written is no N-Quads.


def of_pyld(document):
    options = {"base": BASE, "format": "application/n-quads", "documentLoader": no_loader}
    try:
        return canonical(jsonld.to_rdf(document, options))
    except jsonld.JsonLdError:
        return REFUSED
    except Exception:
        return FAULT


def of_node(documents, folder):
    script = pathlib.Path(__file__).with_name("convert.mjs")
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    done = subprocess.run(
        ["node", script, pathlib.Path(folder).resolve()], input=lines, capture_output=True, text=True, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    faults = ("Cannot read", "undefined")
    return [
        canonical(answer["quads"])
        if "quads" in answer
        else FAULT
        if answer["error"].startswith(faults)
        else REFUSED
        for answer in answers
    ]


def of_jindou(document, program, folder):
    path = folder / "document.jsonld"
    path.write_text(json.dumps(document), encoding="utf-8")
    command = [program, "convert", path, "--base", BASE, "--to", "nq"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return canonical(done.stdout), ""
    # A mistake in the document, with its place; anything else is a fault.
    said = done.stderr.splitlines()[0] if done.stderr else ""
    return (REFUSED if re.match(r"jindou: .*document\.jsonld:\d+:\d+: ", said) else FAULT), said


def outcome(ours, others):
    judges = [other for other in others if other != FAULT]
    if not judges:
        return "no judge"
    if ours in judges:
        if len(judges) < 2:
            return "equal to the only judge"
        return "equal to both" if judges[0] == judges[1] else "equal to one of two that differ"
    if len(judges) < 2:
        return "unlike the only judge"
    if judges[0] != judges[1]:
        return "unlike two that differ"
    return "accepted, refused by both" if judges[0] == REFUSED else "different"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jindou", default="target/release/jindou")
    parser.add_argument("--node", required=True, help="folder with node_modules/jsonld")
    parser.add_argument("--count", type=int, default=1100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", default="different|accepted", help="outcomes whose documents are printed")
    args = parser.parse_args()
    documents = [Documents(args.seed + n).document() for n in range(args.count)]
    node, counts, refused = of_node(documents, args.node), {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for n, document in enumerate(documents):
            others = [of_pyld(document), node[n]]
            ours, said = of_jindou(document, args.jindou, pathlib.Path(folder))
            found = outcome(ours, others)
            if found in WRONG and any(args.seed + n in seeds for _, _, seeds in EXCEPTIONS):
                found = "exception"
            counts[found] = counts.get(found, 0) + 1
            refused += ours == REFUSED
            if ours == FAULT or re.search(args.show, found):
                print(f"-- seed {args.seed + n}: {found}\n{json.dumps(document, ensure_ascii=False)}")
                for name, quads in [("pyld", others[0]), ("jsonld.js", others[1]), ("jindou", ours)]:
                    print(f"{name}:\n{quads}")
                print(said)
    print(", ".join(f"{name}: {count}" for name, count in sorted(counts.items())), f"(refused by Jindou: {refused})")
    return 1 if any(name in counts for name in WRONG) else 0


if __name__ == "__main__":
    sys.exit(main())
