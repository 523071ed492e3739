#!/usr/bin/env bash
# Installs what scripts/release.sh made where nothing else is, and asks it: the Debian package and the archive in clean Debian 12
# chroots, the container's file system as its Containerfile says, as its user and without anything else. Needs root, debootstrap and
# Debian's mirror (MIRROR=; the base system is kept in BASE=, by default a folder in /var/tmp).
#   scripts/release-test.sh [target/dist/VERSION]
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
dist=$(realpath "${1:-target/dist/$version}")
base=${BASE:-/var/tmp/jindou-release-base}
[ "$(id -u)" = 0 ] || { echo "release-test: chroots need root" >&2 && exit 2; }
command -v debootstrap >/dev/null || { echo "release-test: there is no debootstrap (apt-get install debootstrap)" >&2 && exit 2; }

if ! [ -x "$base/usr/bin/dpkg" ]; then
    debootstrap --variant=minbase --include=adduser,ca-certificates bookworm "$base" "${MIRROR:-http://deb.debian.org/debian}" >"$base.log" 2>&1 ||
        { tail -5 "$base.log" >&2 && exit 1; }
fi
work=$(mktemp -d)
server=
ended() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    for mounted in "$work"/*/proc; do
        ! mountpoint -q "$mounted" || umount "$mounted"
    done
    rm -rf --one-file-system "$work"
}
trap ended EXIT

fail() {
    echo "release-test: $1" >&2
    exit 1
}

clean() { # clean NAME: a fresh Debian
    mkdir "$work/$1"
    cp -a "$base/." "$work/$1/"
    mount -t proc proc "$work/$1/proc"
}

data() { # data FOLDER
    printf '@prefix foaf: <http://xmlns.com/foaf/0.1/> .\n<http://e/a> a foaf:Person ; foaf:name "Ann" .\n' >"$1/data.ttl"
}

wait_until_ready() { # wait_until_ready COMMAND...
    for _ in $(seq 100); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    fail "the server is not ready: $*"
}

(cd "$dist" && sha256sum --check --quiet SHA256SUMS) || fail "SHA256SUMS do not match"
query='SELECT ?n { ?s a foaf:Person ; foaf:name ?n }'
expected=$'?n\n"Ann"'

# The package: installed, its user loads a store, the service's own command serves it, removed again.
clean deb
in_deb=(chroot "$work/deb" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/)
cp "$dist"/jindou_*_"$(dpkg --print-architecture)".deb "$work/deb/jindou.deb"
"${in_deb[@]}" dpkg -i /jindou.deb >/dev/null
data "$work/deb"
as_user=("${in_deb[@]}" setpriv --reuid jindou --regid jindou --clear-groups)
"${as_user[@]}" jindou load --quiet --config /etc/jindou/jindou.toml /data.ttl >/dev/null
[ "$("${as_user[@]}" jindou query --config /etc/jindou/jindou.toml "$query")" = "$expected" ] || fail "the package answers otherwise"
[ "$(stat -c '%U %a' "$work/deb/var/lib/jindou")" = "$(stat -c %U "$work/deb/var/lib/jindou") 750" ] || fail "the folder of stores is open"
"${in_deb[@]}" sh -c 'cat /etc/jindou/jindou.toml' | sed 's/7878/17878/' >"$work/deb/etc/jindou/test.toml"
chmod 644 "$work/deb/etc/jindou/test.toml"
start=$(sed -n 's/^ExecStart=//p' "$work/deb/lib/systemd/system/jindou.service" | sed 's/jindou.toml/test.toml/')
# shellcheck disable=SC2086
"${as_user[@]}" $start >"$work/server.log" 2>&1 &
server=$!
wait_until_ready "${in_deb[@]}" jindou health http://127.0.0.1:17878
[ "$("${in_deb[@]}" jindou query --endpoint http://127.0.0.1:17878/sparql "$query")" = "$expected" ] || fail "the package's server answers otherwise"
backup=$(sed -n 's/^ExecStart=//p' "$work/deb/lib/systemd/system/jindou-backup.service")
# shellcheck disable=SC2086
"${as_user[@]}" $backup >/dev/null
"${as_user[@]}" jindou restore --from /var/lib/jindou/backups --store /var/lib/jindou/restored >/dev/null
[ "$("${as_user[@]}" jindou query --store /var/lib/jindou/restored "$query")" = "$expected" ] || fail "the restored store answers otherwise"
kill "$server" && wait "$server" || true
! "${in_deb[@]}" jindou health http://127.0.0.1:17878 >/dev/null 2>&1 || fail "the package's server runs on after it was ended"
server=
zcat "$work/deb/usr/share/man/man1/jindou-query.1.gz" | grep -q 'SPARQL' || fail "no manual page"
"${in_deb[@]}" dpkg --verify jindou || fail "files of the package were changed by its scripts"
# As `systemctl enable` does.
mkdir -p "$work/deb/etc/systemd/system/multi-user.target.wants"
enabled=/etc/systemd/system/multi-user.target.wants/jindou.service
ln -s /lib/systemd/system/jindou.service "$work/deb$enabled"
"${in_deb[@]}" dpkg --purge jindou >/dev/null 2>&1
! [ -L "$work/deb$enabled" ] || fail "a purge left the unit's link"
[ -d "$work/deb/var/lib/jindou/store" ] || fail "a purge removed the store"
! [ -e "$work/deb/usr/bin/jindou" ] || fail "a purge left the command"
if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error "$dist"/jindou_*.deb >"$work/lintian.log" 2>&1 ||
        { cat "$work/lintian.log" >&2 && fail "lintian finds errors"; }
fi
echo "package: installed, loaded, asked, served, backed up, restored, purged"

# The archive: unpacked and asked, as no one in particular.
clean tar
tar -xzf "$dist"/jindou-"$version"-"$(uname -m)"-*.tar.gz -C "$work/tar/opt"
data "$work/tar"
in_tar=(chroot --userspec=65534:65534 "$work/tar" env -i PATH=/usr/bin:/bin HOME=/tmp)
jindou=$(cd "$work/tar" && ls -d opt/jindou-*/jindou)
"${in_tar[@]}" "/$jindou" load --quiet --store /tmp/store /data.ttl >/dev/null
[ "$("${in_tar[@]}" "/$jindou" query --store /tmp/store "$query")" = "$expected" ] || fail "the archive's command answers otherwise"
notices=("$work"/tar/opt/jindou-*/THIRD-PARTY-LICENCES.txt)
python3 - "$dist"/jindou-*.cdx.json "${notices[0]}" <<'PY'
import json, sys
notices = open(sys.argv[2], encoding="utf-8").read().splitlines()
named = {" ".join(line.split(" ")[:2]) for line in notices}
ours = lambda c: c["name"].startswith("jindou")
missing = [c["bom-ref"] for c in json.load(open(sys.argv[1]))["components"] if not ours(c) and f"{c['name']} {c['version']}" not in named]
assert not missing, f"no licence notice: {missing}"
PY
echo "archive: unpacked, loaded, asked; it has the licence of each crate and npm package"

# The container: what the Containerfile adds, its user, its variables, its command.
mkdir "$work/image" "$work/unpacked"
tar -xzf "$dist"/jindou-*-container.tar.gz -C "$work/unpacked"
context=$(echo "$work"/unpacked/*)
grep -q '^ADD rootfs.tar /$' "$context/Containerfile" || fail "the Containerfile adds something else"
tar -xf "$context/rootfs.tar" -C "$work/image"
user=$(sed -n 's/^USER //p' "$context/Containerfile")
data "$work/image"
printf 'read %s\n' abcdefghijklmnopqrst >"$work/image/etc/jindou/tokens"
chmod 644 "$work/image/etc/jindou/tokens"
# Nothing but the image: no shell, no env of its own. No function either: in the background that would be a shell, which dies alone.
in_image=(env -i PATH="$PATH" JINDOU_STORE=/data/store JINDOU_HOST=0.0.0.0 JINDOU_PORT=17879 JINDOU_LOG_FORMAT=json
    chroot --userspec="$user" "$work/image" /usr/bin/jindou)
"${in_image[@]}" load --quiet /data.ttl >/dev/null
found=$(env -i PATH="$PATH" JINDOU_STORE=/data/store chroot --userspec="$user" "$work/image" /usr/bin/jindou query "$query")
[ "$found" = "$expected" ] || fail "the container answers otherwise"
"${in_image[@]}" serve --token-file /etc/jindou/tokens >"$work/container.log" 2>&1 &
server=$!
wait_until_ready "${in_image[@]}" health http://127.0.0.1:17879
found=$(env -i PATH="$PATH" JINDOU_TOKEN=abcdefghijklmnopqrst chroot --userspec="$user" "$work/image" /usr/bin/jindou \
    query --endpoint http://127.0.0.1:17879/sparql "$query")
[ "$found" = "$expected" ] || fail "the container's server answers otherwise"
kill "$server" && wait "$server" || true
! "${in_image[@]}" health http://127.0.0.1:17879 >/dev/null 2>&1 || fail "the container's server runs on after it was ended"
server=
echo "container: loaded, asked, served as user $user"

python3 - "$dist"/jindou-*.cdx.json <<'PY'
import json, sys
bom = json.load(open(sys.argv[1]))
assert bom["bomFormat"] == "CycloneDX" and len(bom["components"]) > 100
missing = [c["name"] for c in bom["components"] if "licenses" not in c]
assert not missing, missing
known = {c["bom-ref"] for c in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
assert all(d in known for e in bom["dependencies"] for d in e["dependsOn"])
npm = sum("purl" in c and c["purl"].startswith("pkg:npm/") for c in bom["components"])
assert npm > 15, "the page's packages are missing"
print(f"inside: {len(bom['components'])} crates and npm packages, each with its licence")
PY
