#!/usr/bin/env bash
# Says what became slower since the last release: builds crates/jindou/examples/guard.rs here and in a worktree of the
# last release, runs both, compares part by part. Exit status: 0 nothing slower, 1 something is slower or answers
# differ, 2 no comparison could be made.
#
#   BASE=commit   compare with this instead of the last tag (without tags: HEAD if there are changes, else HEAD~1)
#   THRESHOLD=5   per cent that count as slower
#   COUNT=time    alternate runs and compare times even if valgrind is there
set -uo pipefail
cd "$(dirname "$0")/.."
threshold=${THRESHOLD:-5}
rounds=${ROUNDS:-7}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$target/guard
mkdir -p "$work"
give_up() {
  echo "bench-quick: $*" >&2
  exit 2
}

# The base: a commit, and what it is called.
if [ -n "${BASE:-}" ]; then
  name=$BASE
elif name=$(git describe --tags --abbrev=0 2>/dev/null); then
  :
elif [ -n "$(git status --porcelain --untracked-files=no)" ]; then
  name=HEAD
else
  name=HEAD~1
fi
base=$(git rev-parse --verify --quiet "$name^{commit}") || give_up "there is no commit '$name': set BASE"

# Cargo names artifacts by paths relative to the workspace and tells fresh ones by time: in one folder, one version's
# libraries would pass for the other's.
# A version that has an allocator of its own is measured with it, as its users run it.
build() { # folder, target, where the program goes
  local example=guard
  [ -f "$1/crates/jindou/examples/guard_tracked.rs" ] && example=guard_tracked
  (cd "$1" && CARGO_TARGET_DIR=$2 cargo build --release --locked --quiet -p jindou --example $example) &&
    cp "$2/release/examples/$example" "$3"
}

# Both programs are built from this tree's guard.rs, so that both do the same work.
harness=$(sha256sum crates/jindou/examples/guard.rs | cut -c1-12)
old=$work/guard-$base-$harness
new=$work/guard-new
if [ ! -x "$old" ]; then
  echo "building $name (${base:0:12}), once"
  src=$work/src
  if [ -e "$src/.git" ]; then
    git -C "$src" checkout --quiet --detach --force "$base" || give_up "cannot check out $name in $src; remove that folder and run 'git worktree prune'"
  else
    rm -rf "$src"
    git worktree prune
    git worktree add --quiet --detach "$src" "$base" || give_up "cannot make a worktree of $name in $src"
  fi
  mkdir -p "$src/crates/jindou/examples"
  cp crates/jindou/examples/guard.rs "$src/crates/jindou/examples/guard.rs"
  build "$src" "$work/target" "$old" || give_up "guard.rs does not build against $name: its library has another interface; choose a nearer BASE"
  git -C "$src" checkout --quiet --force "$base"
fi
echo "building this tree"
build . "$target" "$new" || give_up "this tree does not build"

# Each version loads its own input: formats may differ.
for which in old new; do
  rm -rf "$work/$which"
  "${!which}" prepare "$work/$which" || give_up "the $which version cannot prepare its input"
done

# Lines: part, rows, instructions. The profiler writes a file before and after each measured part; what was counted
# between the two is the part, all threads together. (Valgrind keeps one trigger a pattern, hence two patterns.)
count() { # old|new
  local dir=$work/$1
  rm -f "$dir"/cg.*
  valgrind --tool=callgrind --callgrind-out-file="$dir/cg.out" --dump-line=no \
    --dump-before='*guard_measured*' --dump-after='*::guard_measured' "${!1}" run "$dir" >"$dir/parts" 2>"$dir/log" || {
    tail -n 5 "$dir/log" >&2
    return 1
  }
  find "$dir" -name 'cg.out.*' | sort -V | while read -r f; do
    awk '/^desc: Trigger:/ { after = /--dump-after/ } /^(summary|totals):/ { n = $2 } END { if (after) print n }' "$f"
  done >"$dir/counts"
  [ "$(wc -l <"$dir/counts")" = "$(wc -l <"$dir/parts")" ] || {
    echo "bench-quick: $(wc -l <"$dir/parts") parts, but $(wc -l <"$dir/counts") counts in $dir" >&2
    return 1
  }
  cut -f1,2 "$dir/parts" | paste - "$dir/counts" >"$dir/result"
  rm -f "$dir"/cg.*
}

if [ "${COUNT:-}" != time ] && command -v valgrind >/dev/null 2>&1; then
  unit=instructions
  echo "counting instructions of $name and of this tree with valgrind"
  count old & a=$!
  count new & b=$!
  wait $a && wait $b || give_up "valgrind could not count"
  # Part, rows, old, new, noise.
  paste "$work/old/result" "$work/new/result" |
    awk -F'\t' -v OFS='\t' '{ print $1, $4, $2, $5, $3, $6, 0 }' >"$work/table"
else
  unit=seconds
  [ "${COUNT:-}" = time ] || echo "valgrind is missing (Debian, Ubuntu: apt-get install valgrind): comparing times instead, which is rougher"
  echo "timing $name and this tree in turn, $rounds rounds"
  rm -f "$work"/round.*
  for i in $(seq "$rounds"); do
    for which in old new; do
      "${!which}" run "$work/$which" 3 >"$work/round.$which.$i" || give_up "the $which version fails"
    done
  done
  # Medians over rounds; the noise of a part is how far its rounds' middle halves lie apart, both versions' together.
  for which in old new; do
    cat "$work"/round.$which.* | sort -t$'\t' -k1,1 -k3,3g | awk -F'\t' -v OFS='\t' '
      function done_() { if (n) print part, rows, t[int((n + 1) / 2)], t[int((3 * n + 3) / 4)] - t[int((n + 3) / 4)] }
      $1 != part { done_(); part = $1; n = 0 }
      { rows = $2; t[++n] = $3 }
      END { done_() }' >"$work/$which/result"
  done
  paste "$work/old/result" "$work/new/result" |
    awk -F'\t' -v OFS='\t' '{ print $1, $5, $2, $6, $3, $7, ($3 > 0 ? 100 * ($4 + $8) / $3 : 0) }' >"$work/table"
fi

awk -F'\t' -v threshold="$threshold" -v unit="$unit" -v base="$name" '
  BEGIN { printf "%-18s %16s %16s %9s  (%s)\n", "part", base, "this tree", "change", unit }
  {
    if ($1 != $2) { print "bench-quick: the two versions have other parts: " $1 ", " $2; bad = 2; exit }
    change = $5 > 0 ? 100 * ($6 / $5 - 1) : 0
    say = ""
    if ($3 != $4) { say = "  OTHER ANSWER: " $3 " rows, now " $4; answers++ }
    else if (change > threshold + $7) { say = "  SLOWER"; slower++ }
    else if (change < -threshold - $7) say = "  faster"
    if ($7 > 0) say = sprintf("  ± %.0f %%", $7) say
    format = unit == "instructions" ? "%16.0f %16.0f" : "%16.6f %16.6f"
    printf "%-18s " format " %+8.1f%%%s\n", $1, $5, $6, change, say
    n++
    log_sum += log(1 + change / 100)
  }
  END {
    if (bad || !n) exit 2
    printf "geometric mean of %d parts: %+.1f%%\n", n, 100 * (exp(log_sum / n) - 1)
    if (slower + answers) {
      printf "%d slower by more than %s %%, %d with other answers\n", slower, threshold, answers
      exit 1
    }
    print "nothing is slower by more than " threshold " %"
  }' "$work/table"
