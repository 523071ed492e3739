#!/usr/bin/env bash
# Compares the public API of the crates that programs use (the library and the server) with the lists in docs/public-api: a line an item.
# `--update` writes the lists. An item that another crate defines and the library re-exports is listed with all that is in it.
# Needs a nightly toolchain, for rustdoc's JSON, which no stable one writes; and cargo-public-api of a version that reads that
# toolchain's JSON. Ends with 0, with 1 if something differs, with 2 if no comparison
# could be made.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=0.52.0
toolchain=${JINDOU_NIGHTLY:-nightly}
lists=docs/public-api
# Crates of which the library re-exports single items, or all.
parts=(model mapped parse dictionary log graph store plan engine text)

update=
case "${1-}" in
--update) update=1 ;;
"") ;;
*) echo "usage: $0 [--update]" >&2 && exit 2 ;;
esac

if ! cargo "+$toolchain" --version >/dev/null 2>&1; then
    echo "no toolchain $toolchain: rustup toolchain install nightly --profile minimal" >&2 && exit 2
fi
if ! version=$(cargo public-api --version 2>/dev/null); then
    echo "no cargo-public-api: cargo install cargo-public-api@$tool --locked" >&2 && exit 2
fi
if [ "$version" != "cargo-public-api $tool" ]; then
    echo "this is $version, and the lists are $tool's: cargo install cargo-public-api@$tool --locked" >&2 && exit 2
fi

work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/public-api}

# What every type has, and what is automatic, is left out; what is derived is not.
list() {
    if ! cargo "+$toolchain" public-api -ss --all-features -p "$1" --color=never >"$work/$1" 2>"$work/errors"; then
        cat "$work/errors" >&2
        echo "the items of $1 could not be listed" >&2 && exit 2
    fi
}

list jindou
list jindou-server
for part in "${parts[@]}"; do list "jindou-$part"; done

# The library's own items, then those of other crates that `jindou.json` has a `pub use` of.
python3 - "$CARGO_TARGET_DIR/doc/jindou.json" "$work" "${parts[@]}" >"$work/jindou.txt" <<'PYTHON'
import json, re, sys

document, work, *parts = sys.argv[1:]
uses = [i["inner"]["use"] for i in json.load(open(document))["index"].values() if "use" in i["inner"]]
print(open(f"{work}/jindou").read(), end="")
for part in parts:
    crate = f"jindou_{part}"
    sources = sorted({u["source"] for u in uses if re.match(rf"{crate}\b", u["source"])})
    if not sources:
        continue
    item = "(?:%s)" % "|".join(map(re.escape, sources))
    # An item, a member of one, or an impl of or for one.
    wanted = re.compile(
        rf"^(?:#\[[^]]*\] )*pub (?:(?:const|unsafe|async|fn|struct|enum|trait|type|static|macro|mod|use) )*{item}(?!\w)"
        rf"|^(?:unsafe )?impl(?:<.*?>)? (?:.* for )?{item}(?!\w)"
    )
    lines = [line for line in open(f"{work}/jindou-{part}") if wanted.match(line)]
    # What a crate has in a module and at its root is listed twice: after its struct the last time.
    lines = list(dict.fromkeys(reversed(lines)))[::-1]
    print("\n# " + crate.replace("_", "-"))
    print("".join(lines), end="")
PYTHON
cp "$work/jindou-server" "$work/jindou-server.txt"

differs=
for name in jindou jindou-server; do
    if [ -n "$update" ]; then
        mkdir -p "$lists"
        cp "$work/$name.txt" "$lists/$name.txt"
    else
        diff -u "$lists/$name.txt" "$work/$name.txt" || differs=1
    fi
    echo "$name: $(grep -c '^[^#]\|^#\[' "$work/$name.txt") lines"
done
if [ -n "$differs" ]; then
    echo "the public API is not as listed: if that is meant, $0 --update, and a line in CHANGELOG.md" >&2
    exit 1
fi
