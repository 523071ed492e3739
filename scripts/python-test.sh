#!/usr/bin/env bash
# Runs the tests of the Python package (crates/jindou-python): pytest over the module as built, against pyoxigraph and RDFLib. The argument is a
# profile of Cargo's ("--profile ci", "--release"; by default dev). If a build of the whole workspace made the module, that one is taken.
# With "install" instead of a profile, only the packages that the tests need are installed.
# Where Python 3 with venv is missing, or PyPI cannot be reached for what the tests need, it says so and ends well; with JINDOU_PYTHON=1
# that is a failure, and the slow tests run, too.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
profile=${1-}

without() {
    echo "the Python package is not tested: $1"
    [ -z "${JINDOU_PYTHON-}" ] || exit 1
    "$root/scripts/skipped.sh" python <<<"the Python package: $1"
    exit 0
}
scripts/skipped.sh python </dev/null

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || without "there is no Python 3.9 or newer"
"$python" -c 'import venv, ensurepip' 2>/dev/null || without "Python's venv is missing (apt-get install python3-venv)"

venv=$root/target/python/venv
needs=crates/jindou-python/tests/requirements.txt
if ! cmp -s "$needs" "$venv/installed"; then
    "$python" -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$needs" || without "its packages cannot be had from PyPI"
    cp "$needs" "$venv/installed"
fi

case "$profile" in
install) exit 0 ;;
"") folder=debug ;;
--release) folder=release ;;
"--profile "*) folder=${profile#--profile } ;;
*) echo "usage: $0 [\"--release\" | \"--profile NAME\"]" >&2 && exit 2 ;;
esac

# The targets of `make test`: the features of shared dependencies are the same, and nothing is compiled twice.
# shellcheck disable=SC2086  # a profile is two words
cargo build --workspace --lib --bins --tests --locked --quiet $profile
cd crates/jindou-python
# Renamed into its place: another Python may have it mapped.
cp "$root/target/$folder/lib_jindou.so" python/jindou/.new.so
mv python/jindou/.new.so python/jindou/_jindou.abi3.so
options=(-q --tb=short)
[ -n "${JINDOU_PYTHON-}" ] || options+=(-m "not slow")
PYTHONPATH=$PWD/python "$venv/bin/python" -m pytest "${options[@]}"
