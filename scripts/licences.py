#!/usr/bin/env python3
"""The licence notices of everything that is shipped: crates that a package of the workspace links, and npm packages in the page.

Usage: scripts/licences.py [PACKAGE…]   (default: jindou-cli; notices to standard output)

A crate's notices are the files in its package whose names begin with LICENSE, LICENCE, COPYING, NOTICE or COPYRIGHT. One
without such a file has the standard text of its licence below, or the script fails and names it. Needs no network.
"""

import json
import os
import re
import sys

import sbom

# The page's bundle ends in a comment with the texts of its packages (web/build.mjs).
BUNDLE = os.path.join(sbom.ROOT, "crates", "jindou-server", "src", "page", "page.js")
FILES = re.compile(r"(licen[cs]e|copying|notice|copyright|unlicense)", re.I)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().replace("\r", "").strip()


def of_crate(package):
    folder = os.path.dirname(package["manifest_path"])
    names = sorted(n for n in os.listdir(folder) if FILES.match(n) and os.path.isfile(os.path.join(folder, n)))
    return [read(os.path.join(folder, name)) for name in names]


def of_page():
    """Names with versions of the page's packages, and the text of their licence."""
    source = read(BUNDLE)
    comment = source[source.rindex("/*\n") + 3 : source.rindex("*/")]
    for part in comment.split("\n---\n"):
        names, text = part.strip().split("\n\n", 1)
        yield names.split(", "), text.strip()


def page_packages():
    """The page's packages: name, version, licence."""
    with open(os.path.join(sbom.ROOT, "web", "package-lock.json"), encoding="utf-8") as file:
        lock = json.load(file)["packages"]
    for names, _ in of_page():
        for entry in names:
            name, version = entry.rsplit(" ", 1)
            locked = lock[f"node_modules/{name}"]
            if locked["version"] != version:
                sys.exit(f"licences: the page's bundle has {entry}, and web/package-lock.json {locked['version']}: build the page")
            yield name, version, locked["license"]


def shared(licence, texts):
    """The text of a licence that crates without a file of their own name: another crate's, without its copyright line."""
    wanted = {"MIT": "Permission is hereby granted, free of charge", "Apache-2.0": "Apache License", "BSD-3-Clause": "Neither the name"}
    for name, mark in wanted.items():
        if name in licence:
            text = next(text for text in texts if mark in text)
            return re.sub(r"(?m)^.*Copyright (\(c\)|©|[0-9]).*\n+", "", text)
    return None


def main(arguments):
    data = sbom.metadata()
    packages = {package["id"]: package for package in data["packages"]}
    ids = set()
    for name in arguments or ["jindou-cli"]:
        start = next(i for i, package in packages.items() if package["name"] == name)
        ids |= set(sbom.linked(data, start))
    crates = sorted((packages[i] for i in ids if packages[i]["source"]), key=lambda p: (p["name"], p["version"]))
    found = {(c["name"], c["version"]): of_crate(c) for c in crates}
    every = [text for texts in found.values() for text in texts]
    by_text, bare = {}, []
    for crate in crates:
        title = f"{crate['name']} {crate['version']} ({crate['license']})"
        texts = found[crate["name"], crate["version"]]
        if not texts:
            text = shared(crate["license"] or "", every)
            if text is None:
                sys.exit(f"licences: {title} comes without its licence's text")
            authors = ", ".join(a.split(" <")[0] for a in crate["authors"]) or f"the authors of {crate['name']}"
            bare.append(f"{title}: no notice in the package; by {authors}")
            texts = [text]
        for text in texts:
            by_text.setdefault(text, []).append(title)
    licences = {f"{name} {version}": licence for name, version, licence in page_packages()}
    for names, text in of_page():
        by_text.setdefault(text, []).extend(f"{name} ({licences[name]}, npm)" for name in names)
    print("Jindou contains the works below, each under the licence whose text follows.\n")
    if bare:
        print("\n".join(bare) + "\n")
    for text, titles in sorted(by_text.items(), key=lambda entry: entry[1][0].lower()):
        print("-" * 80 + "\n" + "\n".join(titles) + "\n\n" + text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
