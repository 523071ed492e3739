"""Reads documents from standard input, each after its length (four bytes, big-endian), and answers a line a document: the canonical text in
hexadecimal, or "-" for one that expat refuses."""

import sys
import pyexpat


def escape(text):
    for c, r in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("\t", "&#9;"), ("\n", "&#10;"), ("\r", "&#13;")):
        text = text.replace(c, r)
    return text


def canonical(document):
    out = []
    parser = pyexpat.ParserCreate()
    parser.ordered_attributes = True
    parser.SetParamEntityParsing(pyexpat.XML_PARAM_ENTITY_PARSING_ALWAYS)

    def start(name, attributes):
        pairs = sorted(zip(attributes[::2], attributes[1::2]))
        out.append("<" + name + "".join(' %s="%s"' % (n, escape(v)) for n, v in pairs) + ">")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: out.append("</%s>" % name)
    parser.CharacterDataHandler = lambda text: out.append(escape(text))
    parser.ExternalEntityRefHandler = lambda *ignored: 1
    parser.Parse(document, True)
    return "".join(out)


data = sys.stdin.buffer
while True:
    length = data.read(4)
    if len(length) < 4:
        break
    document = data.read(int.from_bytes(length, "big"))
    try:
        print("+" + canonical(document).encode("utf-8").hex())
    except (pyexpat.ExpatError, ValueError, LookupError):
        print("-")
