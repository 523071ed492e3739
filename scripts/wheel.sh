#!/usr/bin/env bash
# Builds the wheel of the Python package: the engine as an extension module for Python 3.9 and newer (abi3), and the command `jindou`.
# Compiled with zig as linker, both run on glibc 2.28 and newer (manylinux_2_28). The wheel comes to target/wheels/, its path is printed last.
#   scripts/wheel.sh                                     this machine's processor
#   scripts/wheel.sh --target aarch64-unknown-linux-gnu  another one, whose Rust target is installed
#   scripts/wheel.sh --no-zig                            this machine's glibc: for a quick local test
#   scripts/wheel.sh --command FILE                      with a command that is built already
# Needs Python 3 with venv; maturin and zig come from PyPI into target/python/build.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

zig=1
command=
target=$(rustc -vV | sed -n 's/^host: //p')
while [ $# -gt 0 ]; do
    case "$1" in
    --no-zig) zig= ;;
    --target) target=$2 && shift ;;
    --command) command=$(realpath "$2") && shift ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
    shift
done
case "$target" in
x86_64-unknown-linux-gnu | aarch64-unknown-linux-gnu) ;;
*) echo "wheels are made for x86_64-unknown-linux-gnu and aarch64-unknown-linux-gnu, not $target" >&2 && exit 2 ;;
esac
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
    echo "the Rust target $target is not installed: rustup target add $target" >&2 && exit 2
fi

tools=$root/target/python/build
packages="maturin==1.16.0 ziglang==0.17.1"
if [ "$(cat "$tools/installed" 2>/dev/null)" != "$packages" ]; then
    python3 -m venv --clear "$tools"
    # shellcheck disable=SC2086  # they are several
    "$tools/bin/pip" install --quiet --disable-pip-version-check $packages
    echo "$packages" >"$tools/installed"
fi
PATH=$tools/bin:$PATH
export CARGO_TARGET_DIR=$root/target

options=(--release --locked --target "$target")
if [ -n "$zig" ]; then
    options+=(--zig --compatibility manylinux_2_28)
else
    options+=(--compatibility linux)
fi

if [ -z "$command" ]; then
    # By maturin too, though its wheel of the command is thrown away: cargo knows the linker by its path, and would compile everything
    # again for the module if something else had called zig.
    maturin build "${options[@]}" --auditwheel skip --bindings bin --manifest-path crates/jindou-cli/Cargo.toml --out "$root/target/python/command"
    command=$root/target/$target/release/jindou
fi

# maturin puts the scripts of this folder into the wheel, from where pip puts them among Python's commands.
scripts=$root/crates/jindou-python/jindou.data/scripts
doc=$root/crates/jindou-python/jindou.data/data/share/doc/jindou
rm -rf "$scripts" && mkdir -p "$scripts" "$doc"
"$root/scripts/licences.py" jindou-cli jindou-python >"$doc/THIRD-PARTY-LICENCES.txt"
install -m 755 "$command" "$scripts/jindou"
case "$target" in
"$(rustc -vV | sed -n 's/^host: //p')") strip --strip-debug "$scripts/jindou" 2>/dev/null || true ;;
esac

cd crates/jindou-python
maturin build "${options[@]}" --out "$root/target/wheels"
ls -t "$root"/target/wheels/jindou-*.whl | head -1
