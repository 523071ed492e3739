#!/usr/bin/env python3
"""Wraps the prose of docs/ and CONTRIBUTING.md at 120 characters. Tables, code, headings and HTML stay as they are.

Usage: scripts/wrap-docs.py [--check]   (--check changes nothing and fails if a page is not wrapped)
"""
import pathlib
import re
import sys

WIDTH = 120
ROOT = pathlib.Path(__file__).resolve().parent.parent
# Lines that are kept as they are, and end a paragraph.
KEPT = re.compile(r"\s*(\||#|<!--|<[a-z/]|!\[|\[[^\]]+\]:|---|===|>)")
ITEM = re.compile(r"(\s*)([-*+]|\d+[.)])(\s+)(?=\S)")
# Words that would become markup at the beginning of a line.
MARKUP = re.compile(r"([-*+>|]|#+|\d+[.)]|=+)$|[|>#]")


def words(text):
    """The words of a paragraph; a code span is one word, as its spaces must not become line ends."""
    found, ticks = [], 0
    for word in text.split():
        if ticks % 2:
            found[-1] += " " + word
        else:
            found.append(word)
        ticks += word.count("`")
    return found


def fill(text, first, rest):
    lines, line, empty = [], first, True
    for word in words(text):
        if not empty and len(line) + 1 + len(word) > WIDTH and not MARKUP.match(word):
            lines.append(line)
            line, empty = rest, True
        line += word if empty else " " + word
        empty = False
    return lines + [line]


def wrapped(text):
    out, paragraph, first, rest, fence = [], [], "", "", None

    def end():
        if paragraph:
            # A paragraph that fits stays as its author broke it.
            if any(len(first if n == 0 else rest) + len(p) > WIDTH for n, p in enumerate(paragraph)):
                out.extend(fill(" ".join(paragraph), first, rest))
            else:
                out.extend((first if n == 0 else rest) + p for n, p in enumerate(paragraph))
            paragraph.clear()

    for line in text.split("\n"):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence or mark:
            end()
            out.append(line)
            if mark:
                fence = None if fence else mark[1]
            continue
        item = ITEM.match(line)
        indent = len(line) - len(line.lstrip())
        if not line.strip() or KEPT.match(line):
            end()
            out.append(line.rstrip())
            first = rest = ""
        elif item:
            end()
            first = item[0]
            rest = " " * len(item[0])
            paragraph.append(line[len(first):].rstrip())
        elif paragraph:
            paragraph.append(line.strip())
        elif indent >= 4 and not rest:
            out.append(line.rstrip())
        else:
            first = rest = line[:indent]
            paragraph.append(line.strip())
    end()
    return "\n".join(out)


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    faults = 0
    for page in sorted(ROOT.glob("docs/**/*.md")) + [ROOT / "CONTRIBUTING.md"]:
        old = page.read_text(encoding="utf-8")
        new = wrapped(old)
        if new != old and check:
            print(f"{page.relative_to(ROOT)}: lines are longer than {WIDTH}: run scripts/wrap-docs.py", file=sys.stderr)
            faults += 1
        elif new != old:
            page.write_text(new, encoding="utf-8")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
