#!/usr/bin/env bash
# Makes what users download, without network but the registries: into target/dist/VERSION (OUT=)
#   jindou-VERSION-TARGET.tar.gz    command without debug information, manual pages, completions, units, documents, licences
#   jindou_VERSION_ARCH.deb         the same as a Debian package with a systemd unit
#   jindou-VERSION-container.tar.gz Containerfile, compose file and the root file system that it adds
#   jindou-VERSION.cdx.json         what is inside (CycloneDX)
#   *.whl                           by scripts/wheel.sh, whose command is in the archives, too (WHEELS=no: none, and this machine's linker)
#   SHA256SUMS
# Every Linux target whose Rust standard library and linker are installed is built (TARGETS="…" for some).
# JINDOU_BINARY=FILE packs that program, for this machine's processor, instead of building one.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

need() {
    command -v "$1" >/dev/null || { echo "release: there is no $1 ($2)" >&2 && exit 2; }
}
need cargo "https://rustup.rs"
need python3 "apt-get install python3"
need dpkg-deb "apt-get install dpkg"
need objdump "apt-get install binutils"
need strip "apt-get install binutils"

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
out=${OUT:-target/dist/$version}
host=$(rustc -vV | sed -n 's/^host: //p')
# Files are as old as the commit, so that the same commit gives the same archives.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
rm -rf "$out"
mkdir -p "$out"
out=$(realpath "$out")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

archive() { # archive FILE FOLDER ENTRY...
    local file=$1 folder=$2
    shift 2
    tar -C "$folder" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$@" |
        gzip -9n >"$file"
}

# The linker of a target: the host's own, or a cross compiler of its name; nothing where there is none.
linker() {
    local gcc=${1/-unknown/}-gcc
    if [ "$1" = "$host" ]; then echo cc; else command -v "$gcc" || true; fi
}

targets=${TARGETS:-}
if [ -n "${JINDOU_BINARY:-}" ]; then
    targets=$host
elif [ -z "$targets" ]; then
    targets=$( (echo "$host"; rustup target list --installed 2>/dev/null) | grep -e '-unknown-linux-gnu$' | sort -u)
fi

# Manual pages and completions are the same everywhere; a program of this machine writes them.
pages() { # pages BINARY
    [ -d "$work/man" ] && return
    "$1" man "$work/man"
    find "$work/man" -name '*.1' -exec gzip -9n {} +
    mkdir -p "$work/completions"
    "$1" completions bash >"$work/completions/jindou.bash"
    "$1" completions zsh >"$work/completions/_jindou"
    "$1" completions fish >"$work/completions/jindou.fish"
}

# The licences of all that the command contains.
notices=$work/THIRD-PARTY-LICENCES.txt
scripts/licences.py >"$notices"

pack_tar() { # pack_tar TARGET BINARY
    local name=jindou-$version-$1 to
    to=$work/$name
    mkdir -p "$to/docs"
    install -m 755 "$2" "$to/jindou"
    cp LICENSE "$notices" README.md CHANGELOG.md packaging/jindou.toml "$to/"
    cp docs/*.md "$to/docs/"
    cp -r docs/lab docs/internals "$to/docs/"
    cp -r "$work/man" "$work/completions" packaging/{systemd,kubernetes,prometheus,grafana} "$to/"
    archive "$out/$name.tar.gz" "$work" "$name"
}

pack_deb() { # pack_deb TARGET BINARY
    local arch to glibc
    case "$1" in
    x86_64-*) arch=amd64 ;;
    aarch64-*) arch=arm64 ;;
    *) echo "release: no Debian architecture for $1; no package" >&2 && return ;;
    esac
    to=$work/deb-$arch
    mkdir -p "$to/DEBIAN"
    install -D -m 755 "$2" "$to/usr/bin/jindou"
    install -D -m 644 packaging/jindou.toml "$to/etc/jindou/jindou.toml"
    for unit in jindou.service jindou-backup.service jindou-backup.timer; do
        install -D -m 644 "packaging/systemd/$unit" "$to/lib/systemd/system/$unit"
    done
    install -d "$to/usr/share/man/man1" "$to/usr/share/doc/jindou"
    cp "$work"/man/*.gz "$to/usr/share/man/man1/"
    install -D -m 644 "$work/completions/jindou.bash" "$to/usr/share/bash-completion/completions/jindou"
    install -D -m 644 "$work/completions/_jindou" "$to/usr/share/zsh/vendor-completions/_jindou"
    install -D -m 644 "$work/completions/jindou.fish" "$to/usr/share/fish/vendor_completions.d/jindou.fish"
    install -D -m 644 packaging/deb/lintian-overrides "$to/usr/share/lintian/overrides/jindou"
    install -m 644 packaging/deb/copyright "$to/usr/share/doc/jindou/copyright"
    gzip -9nc "$notices" >"$to/usr/share/doc/jindou/THIRD-PARTY-LICENCES.txt.gz"
    gzip -9nc CHANGELOG.md >"$to/usr/share/doc/jindou/CHANGELOG.md.gz"
    # In Debian's form.
    printf 'jindou (%s) unstable; urgency=medium\n\n  * CHANGELOG.md.gz has the changes.\n\n -- %s  %s\n' "$version" \
        "$(sed -n 's/^Maintainer: //p' packaging/deb/control.in)" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" |
        gzip -9n >"$to/usr/share/doc/jindou/changelog.gz"
    cp docs/deployment.md docs/command.md docs/server.md "$to/usr/share/doc/jindou/"
    # The newest version of a symbol that it wants.
    glibc=$(objdump -T "$2" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -1)
    sed -e "s/@VERSION@/$version/; s/@ARCHITECTURE@/$arch/; s/@GLIBC@/$glibc/" \
        -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$to" | cut -f1)/" packaging/deb/control.in >"$to/DEBIAN/control"
    echo /etc/jindou/jindou.toml >"$to/DEBIAN/conffiles"
    for script in postinst prerm postrm; do
        sh -n "packaging/deb/$script"
        install -m 755 "packaging/deb/$script" "$to/DEBIAN/$script"
    done
    (cd "$to" && find usr lib etc -type f -print0 | sort -z | xargs -0 md5sum) >"$to/DEBIAN/md5sums"
    dpkg-deb --root-owner-group -Zxz --build "$to" "$out/jindou_${version}_$arch.deb" >/dev/null
}

# Everything that a container needs, out of this machine: the program, the libraries that it names, the authorities' certificates.
pack_container() { # pack_container BINARY
    local to=$work/container/rootfs library name=jindou-$version-container
    mkdir -p "$to"/{etc/jindou,etc/ssl/certs,usr/bin,tmp,data}
    install -m 755 "$1" "$to/usr/bin/jindou"
    ldd "$1" | grep -o '/[^ ]*' | sort -u | while read -r library; do
        install -D -m 755 "$(realpath "$library")" "$to$library"
    done
    if [ -f /etc/ssl/certs/ca-certificates.crt ]; then
        cp /etc/ssl/certs/ca-certificates.crt "$to/etc/ssl/certs/"
    else
        echo "release: this machine has no ca-certificates.crt; containers will reach no https address" >&2
    fi
    printf 'root:x:0:0:root:/:/\njindou:x:65532:65532:Jindou:/data:/\n' >"$to/etc/passwd"
    printf 'root:x:0:\njindou:x:65532:\n' >"$to/etc/group"
    printf 'hosts: files dns\n' >"$to/etc/nsswitch.conf"
    chmod 1777 "$to/tmp"
    mkdir "$work/container/$name"
    # The data's folder is the user's, all else the root's.
    tar -C "$to" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --exclude=./data \
        -cf "$work/container/$name/rootfs.tar" .
    tar -C "$to" --mtime="@$SOURCE_DATE_EPOCH" --owner=65532 --group=65532 --numeric-owner \
        -rf "$work/container/$name/rootfs.tar" ./data
    cp packaging/container/* "$work/container/$name/"
    archive "$out/$name.tar.gz" "$work/container" "$name"
}

wheels=${WHEELS:-yes}
for target in $targets; do
    wheel=
    if [ -n "${JINDOU_BINARY:-}" ]; then
        built=$JINDOU_BINARY
    else
        with=$(linker "$target")
        if [ -z "$with" ]; then
            echo "release: $target is left out: there is no ${target/-unknown/}-gcc to link it" >&2
            continue
        fi
        if [ "$wheels" = yes ]; then
            # The wheel's command, linked by zig: it runs on glibc 2.28, too, and nothing is compiled twice.
            wheel=$(scripts/wheel.sh --target "$target" | tail -1)
        else
            variable=$(echo "$target" | tr 'a-z-' 'A-Z_')
            env "CARGO_TARGET_${variable}_LINKER=$with" cargo build --release --locked -p jindou-cli --target "$target"
        fi
        built=target/$target/release/jindou
    fi
    mkdir -p "$work/$target"
    strip_with=strip
    [ "$target" = "$host" ] || strip_with=${target/-unknown/}-strip
    # The names of functions stay, for backtraces.
    "$strip_with" --strip-debug -o "$work/$target/jindou" "$built"
    if [ "$target" = "$host" ]; then
        pages "$work/$target/jindou"
        pack_container "$work/$target/jindou"
    elif ! [ -d "$work/man" ]; then
        cargo build --release --locked -p jindou-cli
        pages target/release/jindou
    fi
    pack_tar "$target" "$work/$target/jindou"
    pack_deb "$target" "$work/$target/jindou"
    if [ "$wheels" = yes ]; then
        [ -n "$wheel" ] || wheel=$(scripts/wheel.sh --target "$target" --command "$built" | tail -1)
        cp "$wheel" "$out/"
    fi
done

scripts/sbom.py >"$out/jindou-$version.cdx.json"
(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
cd "$root"
ls -l "$out"
echo "$out"
