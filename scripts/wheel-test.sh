#!/usr/bin/env bash
# Does what a person does with the wheel, in a clean environment, and says how many seconds each step took: pip install, `jindou load`, `jindou
# serve`, the page, a query over HTTP, a notebook that is executed by Jupyter. First in a virtual environment of this machine; then, as root where
# debootstrap is installed, in a Debian 12 that debootstrap makes (MIRROR=URL for another mirror; SUITE=name for another release).
#   scripts/wheel-test.sh WHEEL DATA...        DATA: RDF files, folders, or .tar.gz of them
# Settings of pip (PIP_…) and certificates of this machine are taken along.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 2 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
wheel=$(realpath "$1")
shift

work=$(mktemp -d)
mounted=()
cleanup() {
    for at in "${mounted[@]}"; do umount "$at" || true; done
    # Never through a mount that is left.
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT

clock() { date +%s.%N; }
took() { printf '%-46s %7.2f s\n' "$1" "$(echo "$(clock) - $2" | bc)"; }
command -v bc >/dev/null || { echo "bc is missing: apt-get install bc" >&2; exit 2; }

mkdir "$work/data"
for source in "$@"; do
    case "$source" in
    *.tar.gz | *.tgz) tar -xzf "$source" -C "$work/data" ;;
    *) cp -r "$source" "$work/data/" ;;
    esac
done

# The steps after the installation, by the Python of an environment: they print "name seconds" lines and check what they see.
cat >"$work/steps.py" <<'PYTHON'
import json, os, subprocess, sys, time, urllib.parse, urllib.request

root = os.path.dirname(os.path.abspath(__file__))
jindou = os.path.join(os.path.dirname(sys.executable), "jindou")
store = os.path.join(root, "my.store")


def took(name, begun):
    print(f"{name:46} {time.monotonic() - begun:7.2f} s", flush=True)


begun = time.monotonic()
out = subprocess.run([jindou, "load", "--quiet", "--lenient", "--store", store, os.path.join(root, "data")], capture_output=True, text=True)
assert out.returncode == 0, out.stdout + out.stderr
took("jindou load", begun)

begun = time.monotonic()
log = open(os.path.join(root, "serve.log"), "w")
server = subprocess.Popen([jindou, "serve", "--store", store, "--port", "7893"], stdout=log, stderr=log)
base = "http://127.0.0.1:7893"
try:
    while True:
        assert server.poll() is None, open(log.name).read()
        try:
            urllib.request.urlopen(base + "/ready").read()
            break
        except OSError:
            time.sleep(0.01)
    took("jindou serve, until it is ready", begun)

    begun = time.monotonic()
    page = urllib.request.urlopen(urllib.request.Request(base + "/", headers={"Accept": "text/html"}))
    text = page.read().decode()
    assert page.headers["Content-Type"].startswith("text/html") and "<title>" in text and "script" in text, text[:200]
    took("the page", begun)

    begun = time.monotonic()
    query = "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
    request = urllib.request.Request(
        base + "/query?" + urllib.parse.urlencode({"query": query}), headers={"Accept": "application/sparql-results+json"}
    )
    answer = json.load(urllib.request.urlopen(request))
    served = int(answer["results"]["bindings"][0]["n"]["value"])
    took("a query over HTTP", begun)
finally:
    server.terminate()
    server.wait()

import nbformat
from nbclient import NotebookClient

cells = [
    "%load_ext jindou\nimport jindou\ndb = jindou.open('my.store')",
    "%%sparql --out answer\n" + query,
    "%%sparql\nSELECT ?class (COUNT(*) AS ?n) { { ?s a ?class } UNION { GRAPH ?g { ?s a ?class } } } GROUP BY ?class ORDER BY DESC(?n) LIMIT 10",
    "%%sparql\nCONSTRUCT WHERE { ?s a ?class } LIMIT 20",
    "print(next(iter(answer)).n.to_python())",
]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
begun = time.monotonic()
NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": root}}).execute()
took("a notebook with three %%sparql cells", begun)
table = notebook.cells[2].outputs[0]["data"]["text/html"]
assert "<table" in table and table.count("<tr>") > 1, table
assert "<svg" in notebook.cells[3].outputs[0]["data"]["text/html"]
assert int(notebook.cells[4].outputs[0]["text"]) == served > 0
print(f"{served} quads, the same over HTTP and in the notebook")
PYTHON

steps() { # environment's folder, as seen by the steps
    local venv=$1 begun
    begun=$(clock)
    "${run[@]}" "$venv/bin/pip" install --quiet --disable-pip-version-check "$2"
    took "pip install of the wheel" "$begun"
    begun=$(clock)
    "${run[@]}" "$venv/bin/pip" install --quiet --disable-pip-version-check nbclient ipykernel
    took "pip install of Jupyter's kernel and client" "$begun"
    "${run[@]}" "$venv/bin/python" "$3/steps.py"
    # What RDFLib finds by the package's entry point.
    "${run[@]}" "$venv/bin/pip" install --quiet --disable-pip-version-check rdflib
    "${run[@]}" "$venv/bin/python" -c 'import rdflib; g = rdflib.Graph(store="Jindou"); g.update("INSERT DATA { <a:a> <a:a> 1 }"); assert len(g) == 1'
}

echo "== a clean environment, $(python3 --version)"
run=()
mkdir "$work/venv"
begun=$(clock)
python3 -m venv "$work/venv"
took "python3 -m venv" "$begun"
steps "$work/venv" "$wheel" "$work"
rm -rf "$work/my.store"

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "no clean Debian: that needs root and debootstrap (apt-get install debootstrap)"
    exit 0
fi
suite=${SUITE:-bookworm}
echo "== a clean Debian, $suite"
root=$work/debian
begun=$(clock)
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$root" "${MIRROR:-http://deb.debian.org/debian}" >"$work/debootstrap.log" 2>&1 ||
    { tail -20 "$work/debootstrap.log" >&2; exit 1; }
took "debootstrap, with python3-venv" "$begun"
for at in proc sys dev; do
    mount --bind "/$at" "$root/$at"
    mounted=("$root/$at" "${mounted[@]}")
done
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
# The network's own certificates, where it has some.
cat "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" >"$root/etc/ssl/certs/ca-certificates.crt"
mkdir "$root/try"
cp -r "$work/data" "$work/steps.py" "$wheel" "$root/try/"
for variable in ${!PIP_@}; do
    case "$variable" in
    PIP_CERT | PIP_FIND_LINKS) unset "$variable" ;;
    esac
done
if pip_index=$(python3 -m pip config get global.index-url 2>/dev/null); then export PIP_INDEX_URL=$pip_index; fi
export SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt HOME=/tmp LANG=C.UTF-8
run=(chroot "$root" /usr/bin/env PATH=/usr/bin:/bin:/usr/sbin:/sbin)
"${run[@]}" sh -c 'cat /etc/debian_version; ldd --version | head -1; python3 --version; ! command -v cargo'
begun=$(clock)
"${run[@]}" python3 -m venv /try/venv
took "python3 -m venv" "$begun"
steps /try/venv "/try/$(basename "$wheel")" /try
