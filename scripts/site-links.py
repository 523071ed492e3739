#!/usr/bin/env python3
"""Checks that links and pictures within a built site lead to files and headings that are there. Usage: site-links.py FOLDER"""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.ids = [], set()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.ids.add(value)


site = pathlib.Path(sys.argv[1]).resolve()
pages = {}
for path in site.rglob("*.html"):
    pages[path] = Page()
    pages[path].feed(path.read_text(encoding="utf-8"))

faults, count = [], 0
for path, page in pages.items():
    # Its links are relative to wherever it is shown.
    if path.name == "404.html":
        continue
    for link in page.links:
        url = urllib.parse.urlsplit(link)
        if url.scheme or url.netloc:
            continue
        count += 1
        target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
        anchor = urllib.parse.unquote(url.fragment)
        if target.is_dir():
            target = target / "index.html"
        if not target.exists():
            faults.append(f"{path.relative_to(site)}: {link} leads nowhere")
        elif anchor and target in pages and anchor not in pages[target].ids:
            faults.append(f"{path.relative_to(site)}: {link}: there is no such heading")
if faults:
    sys.exit("\n".join(faults))
print(f"site: {count} links in {len(pages)} pages lead somewhere")
