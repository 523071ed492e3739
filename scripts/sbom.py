#!/usr/bin/env python3
"""What is inside the command: a CycloneDX 1.5 document of the crates that Cargo.lock pins, and of the page's npm packages, with
licences and checksums.

Only what the command links on Linux is listed: no tools of the build, no tests. Reads `cargo metadata`; needs no network.
"""

import datetime
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.environ.get("TARGET", "x86_64-unknown-linux-gnu")


def metadata():
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def checksums():
    """SHA-256 of each package in Cargo.lock, by name and version."""
    with open(os.path.join(ROOT, "Cargo.lock"), encoding="utf-8") as file:
        text = file.read()
    found = {}
    for block in text.split("[[package]]")[1:]:
        fields = dict(re.findall(r'^(name|version|checksum) = "([^"]*)"', block, re.M))
        if "checksum" in fields:
            found[fields["name"], fields["version"]] = fields["checksum"]
    return found


def linked(data, start):
    """Packages that one links, tests, macros and tools of the build aside, and what each of them links."""
    macros = {p["id"] for p in data["packages"] if any("proc-macro" in t["kind"] for t in p["targets"])}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    edges, pending = {}, [start]
    while pending:
        name = pending.pop()
        if name in edges:
            continue
        edges[name] = [
            dep["pkg"]
            for dep in nodes[name]["deps"]
            if dep["pkg"] not in macros and any(kind["kind"] is None for kind in dep["dep_kinds"])
        ]
        pending.extend(edges[name])
    return edges


def component(package, sums):
    own = package["source"] is None
    purl = f"pkg:cargo/{package['name']}@{package['version']}"
    entry = {
        "type": "library",
        "bom-ref": purl,
        "name": package["name"],
        "version": package["version"],
        "purl": purl,
        "scope": "required",
    }
    if package.get("description"):
        entry["description"] = " ".join(package["description"].split())
    if package.get("license"):
        # Older manifests write OR as a stroke.
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ").replace("  ", " ")}]
    elif package.get("license_file"):
        entry["licenses"] = [{"license": {"name": f"see {package['license_file']}"}}]
    elif not own:
        sys.exit(f"sbom: {package['name']} {package['version']} says no licence")
    found = sums.get((package["name"], package["version"]))
    if found:
        entry["hashes"] = [{"alg": "SHA-256", "content": found}]
    if package.get("repository"):
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return entry


def page():
    """The npm packages in the page's bundle."""
    import licences

    for name, version, licence in licences.page_packages():
        purl = f"pkg:npm/{name.replace('@', '%40')}@{version}"
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "purl": purl,
            "scope": "required",
            "licenses": [{"expression": licence}],
        }


def main():
    data = metadata()
    packages = {package["id"]: package for package in data["packages"]}
    start = next(i for i, package in packages.items() if package["name"] == "jindou-cli")
    edges = linked(data, start)
    sums = checksums()
    components = {i: component(packages[i], sums) for i in edges}
    command = components.pop(start)
    command["type"] = "application"
    command["name"] = "jindou"
    when = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    when = datetime.datetime.fromtimestamp(when, datetime.timezone.utc)
    bundled = list(page())
    server = next(i for i in edges if packages[i]["name"] == "jindou-server")
    ref = lambda i: command["bom-ref"] if i == start else components[i]["bom-ref"]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": command},
        "components": sorted([*components.values(), *bundled], key=lambda c: c["bom-ref"]),
        "dependencies": sorted(
            ({
                    "ref": ref(i),
                    "dependsOn": sorted({ref(d) for d in deps} | ({c["bom-ref"] for c in bundled} if i == server else set())),
                }
                for i, deps in edges.items()),
            key=lambda d: d["ref"],
        ),
    }
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
