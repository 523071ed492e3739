#!/usr/bin/env bash
# Fails on words that do not belong in the sources: doc comments that begin with "What", "Who", "Whom" or "Whose", or with a
# pronoun or conjunction that only makes sense after another sentence (begin with a noun phrase, or a verb that names the
# thing), "See the module" (say what is meant), phrases of another language, documents that are not wrapped, public names of the
# Python package that its reference would lack, and paths of one person's or one machine's workplace. Reads what git tracks;
# prints file, line and what to do.
set -u
cd "$(dirname "$0")/.."
bad=$(git ls-files -z -- '*.rs' | xargs -0 awk '
  FNR == 1 { inside = 0; begun = 0 }
  /^[[:space:]]*\/\/[\/!]/ {
    text = $0
    sub(/^[[:space:]]*\/\/[\/!][[:space:]]*/, "", text)
    # The first line of a comment or of a paragraph in it, without marks around the word.
    # "Why" and "Whether" begin a question or half a sentence: "Reason why", "True if".
    first = text
    gsub(/^[*_`"(]+/, "", first)
    if (!inside && first ~ /^(What|Who|Whom|Whose|Why|Whether)([^[:alnum:]_]|$)/)
      printf "%s:%d: a doc comment begins with a noun phrase or a verb (\"Reason why\", \"True if\"): %s\n", FILENAME, FNR, text
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
# Phrases of another language in English words. They are looked for in comments of sources and in the prose of documents; a
# comment is what follows two slashes that no quotation mark comes before.
phrases=$(git ls-files -z -- '*.rs' 'docs/*.md' CONTRIBUTING.md | xargs -0 perl -ne '
  BEGIN {
    @rules = (
      [qr/\b(?:nobody|somebody|everybody|anybody)\b/i, "name what acts, or use the passive"],
      [qr/(?<!there )\b(?:is|are) no (?!longer|more|less|such|need|one\b|other|way|harm|worse|fewer|better|cheaper|greater|different|help|use\b|good|others)[a-z]+/i, "write \"is not a …\""],
      [qr/\bso (?:many|much)\b(?! (?:more|less|faster|cheaper))(?![\w ,`]{1,60}\bthat\b)(?!\s+of them)/i, "write \"this many\" or name the number"],
      [qr/(?<!scope )\bbeside\b(?! charges)/i, "write \"next to\", \"alongside\" or \"compared with\""],
      [qr/\bbehind (?:it|them|the (?:other|point|last|text|name))\b(?! \|)/i, "write \"after\""],
      [qr/\b(?:afresh|anew|thereof|therein|whereof)\b/i, "write \"again\" or \"of it\""],
      [qr/\b(?:by|for|to|from) who\b|(?:^|[.:] )Who (?:[a-z]+s)\b/, "name who: a caller, a reader, a client"],
    );
    # In comments alone.
    @of_comments = (
      [qr/\b(?:no one|someone|whoever)\b/i, "name what acts, or use the passive"],
      [qr/\b(?:surely|thrown away|throws away)\b/i, "write \"certainly\" or \"discarded\""],
      [qr/\b(?:that|which) (?:is|are) none\b/, "say what it is instead"],
      [qr/\b(?:bytes|ns|seconds|ids|bits|words|entries|one) an? (?:key|term|row|second|query|shard|thread|batch|slot|column|edge|quad|id|core|vertex|predicate)\b/i, "write \"per\""],
    );
  }
  if ($. == 1) { $fence = 0 }
  my ($text, @more);
  if ($ARGV =~ /\.md$/) {
    if (/^\s*(?:```|~~~)/) { $fence = !$fence }
    elsif (!$fence && !/^    /) { $text = $_ }
  } elsif (m{^(?:[^"\x27/]|/(?!/))*//[/!]?(?=\s)(.*)}) { $text = $1; @more = @of_comments }
  if (defined $text) {
    $text =~ s/`[^`]*`//g;
    for my $entry (@rules, @more) {
      my ($rule, $instead) = @$entry;
      next unless $text =~ /($rule)/;
      my $found = $1;
      printf "%s:%d: \"%s\": %s: %s\n", $ARGV, $., $found, $instead, substr($text =~ s/^\s+|\s+$//gr, 0, 110);
    }
  }
  close ARGV if eof;
')
# Documents are wrapped, and the Python reference can be written from the docstrings.
long='' reference=''
if command -v python3 >/dev/null; then
  long=$(scripts/wrap-docs.py --check 2>&1)
  reference=$(scripts/python-reference.py --check 2>&1)
else
  echo "words: python3 is missing: neither the wrapping of documents nor the Python reference is checked" >&2
fi

# Spelt so that this line is not a hit itself. `/home/user` and the like are examples.
places=$(git grep -nIE '(^|[^[:alnum:]_./$}-])/(w[o]rk|r[o]ot|h[o]me)/[[:alnum:]_.]' |
  grep -vE '/home/(user|you|me)\b' |
  sed 's/^\([^:]*:[0-9]*\):/\1: a path of a workplace: /')

if [ -n "$bad$phrases$long$reference$places" ]; then
  printf '%s\n' "$bad" "$phrases" "$long" "$reference" "$places" | sed '/^$/d' >&2
  exit 1
fi
