#!/usr/bin/env bash
# Fails on words that do not belong in the sources: doc comments that begin with "What", "Who", "Whom" or "Whose", or with a
# pronoun or conjunction that only makes sense behind another sentence (begin with a noun phrase, or a verb that names the
# thing), "See the module" (say what is meant), and paths of one person's or one machine's workplace. Reads what git tracks;
# prints file, line and what to do.
set -u
cd "$(dirname "$0")/.."
bad=$(git ls-files -z -- '*.rs' | xargs -0 awk '
  FNR == 1 { inside = 0; begun = 0 }
  /^[[:space:]]*\/\/[\/!]/ {
    text = $0
    sub(/^[[:space:]]*\/\/[\/!][[:space:]]*/, "", text)
    # The first line of a comment or of a paragraph in it, without marks around the word.
    first = text
    gsub(/^[*_`"(]+/, "", first)
    if (!inside && first ~ /^(What|Who|Whom|Whose)([^[:alnum:]_]|$)/)
      printf "%s:%d: a doc comment begins with a noun phrase or a verb: %s\n", FILENAME, FNR, text
    if (!begun && text ~ /^(It|They|So|And|Which|Those|These|There|Here|Such)[ .,]/)
      printf "%s:%d: a doc comment begins with the thing, not with a word for one that was named before: %s\n", FILENAME, FNR, text
    if (text ~ /[Ss]ee the module/)
      printf "%s:%d: say what is meant instead of \"see the module\": %s\n", FILENAME, FNR, text
    inside = (text != "")
    begun = 1
    next
  }
  { inside = 0; begun = 0 }
')
# Spelt so that this line is no hit itself. `/home/user` and the like are examples.
places=$(git grep -nIE '(^|[^[:alnum:]_./$}-])/(w[o]rk|r[o]ot|h[o]me)/[[:alnum:]_.]' |
  grep -vE '/home/(user|you|me)\b' |
  sed 's/^\([^:]*:[0-9]*\):/\1: a path of a workplace: /')

if [ -n "$bad$places" ]; then
  printf '%s\n' "$bad" "$places" | sed '/^$/d' >&2
  exit 1
fi
