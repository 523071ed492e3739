#!/usr/bin/env bash
# Prints a folder for temporary files that is in memory, where there is room for those of the tests (they take some hundred MiB): stores
# are made durable thousands of times, and on a disk that is what many tests would wait for. Prints nothing elsewhere. Who asks removes it.
set -euo pipefail
shm=/dev/shm
[ -w "$shm" ] || exit 0
[ "$(stat -f -c %T "$shm")" = tmpfs ] || exit 0
room=$(df --output=avail -k "$shm" | tail -n 1)
memory=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
[ "$room" -ge $((4 << 20)) ] && [ "${memory:-0}" -ge $((12 << 20)) ] || exit 0
folder=$(mktemp -d "$shm/jindou.XXXXXX")
# As /tmp: some tests run as another user.
chmod 1777 "$folder"
# Some tests run programs that they have built there.
printf '#!/bin/sh\n' >"$folder/try" && chmod +x "$folder/try"
if "$folder/try" 2>/dev/null; then
  rm "$folder/try"
  echo "$folder"
else
  rm -r "$folder"
fi
