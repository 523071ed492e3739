"""Random JSON-LD documents that use every keyword, many of them with mistakes."""

import random

XSD = "http://www.w3.org/2001/XMLSchema#"
KEYWORD_ALIASES = {
    "id": "@id",
    "kind": "@type",
    "val": "@value",
    "lang": "@language",
    "items": "@list",
    "members": "@set",
    "back": "@reverse",
    "inside": "@graph",
    "nested": "@nest",
    "also": "@included",
    "idx": "@index",
}
TERMS = ["a", "b", "c", "d", "f", "g", "h", "i", "wide", "e:p", "http://e/q"]
CLASSES = ["K", "L", "M", "e:N", "http://e/O", "_:T"]
IDS = [
    "http://e/1",
    "http://e/2",
    "e:3",
    "4",
    "#frag",
    "../up",
    "?q=1",
    "_:x",
    "_:y",
    "urn:u:1",
    "",
    "a",
    "http://e/not an iri",
]
STRINGS = ["", "x", "é𝄞", 'quote " back \\ slash', "line\nend\t", "http://e/1", "e:3", "K", "true", "1"]
NUMBERS = [
    0,
    1,
    -1,
    7,
    2147483648,
    9007199254740991,
    0.5,
    -2.25,
    5.3,
    0.001,
    1e21,
    1.5e300,
    123456789.125,
    1e3,
]
LANGUAGES = ["en", "de-AT", "fr"]
CONTAINERS = [
    "@list",
    "@set",
    "@index",
    "@language",
    "@id",
    "@type",
    "@graph",
    ["@graph", "@id"],
    ["@graph", "@index"],
    ["@graph", "@set"],
    ["@graph", "@id", "@set"],
    ["@index", "@set"],
    ["@language", "@set"],
    ["@id", "@set"],
    ["@type", "@set"],
    None,
]


class Documents:
    """The documents of one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, part):
        return self.random.random() < part

    def pick(self, choices):
        return self.random.choice(choices)

    def document(self):
        self.aliases = {}
        self.containers = {}
        shape = self.random.random()
        if shape < 0.15:
            return [self.node(0, context=True) for _ in range(self.random.randint(0, 3))]
        top = self.node(0, context=True)
        if shape < 0.4:
            graph = self.keyword("@graph")
            top[graph] = [self.node(1) for _ in range(self.random.randint(0, 3))]
            if self.chance(0.6):
                top = {key: top[key] for key in top if key in ("@context", graph)}
        return top

    def keyword(self, keyword):
        names = [name for name, of in self.aliases.items() if of == keyword]
        return self.pick(names) if names and self.chance(0.6) else keyword

    # Contexts.

    def context(self, depth=0):
        if depth == 0 and self.chance(0.1):
            return [self.context(1) for _ in range(self.random.randint(0, 3))]
        context = {}
        if self.chance(0.8):
            context["@version"] = 1.1
        if self.chance(0.5):
            context["@vocab"] = self.pick(["http://v/", "http://v/#", "http://v/", "_:v", "", "sub/"])
        if self.chance(0.15):
            context["@base"] = self.pick(["http://b/x/", None] if depth else ["http://b/x/", "dir/", None, "#"])
        if self.chance(0.2):
            context["@language"] = self.pick(LANGUAGES)
        if self.chance(0.1):
            context["@direction"] = self.pick(["ltr", "rtl"])
        if self.chance(0.1):
            context["@propagate"] = self.pick([True, False])
        if self.chance(0.07):
            context["@protected"] = True
        if depth == 0 or self.chance(0.1):
            context["e"] = "http://e/"
        for name in self.random.sample(list(KEYWORD_ALIASES), self.random.randint(0, 4)):
            if self.chance(0.5):
                context[name] = KEYWORD_ALIASES[name]
                self.aliases[name] = KEYWORD_ALIASES[name]
        for name in self.random.sample(TERMS[:9], self.random.randint(1, 6)):
            context[name] = self.term(name, depth, context)
        for name in self.random.sample(CLASSES[:3], self.random.randint(0, 2)):
            context[name] = self.cls(name, depth)
        if self.chance(0.03):
            context["@type"] = {"@container": "@set"}
        return context

    def term(self, name, depth, context):
        shape = self.random.random()
        if shape < 0.2:
            return self.pick(["http://e/" + name, "e:" + name, "e:x", "http://e/" + name, self.pick(["_:" + name, None, "@type"])])
        term = {}
        if "@vocab" in context and self.chance(0.15):
            pass
        else:
            term["@id"] = self.pick(["http://e/" + name, "e:" + name, "http://e/shared"])
        if self.chance(0.04):
            reverse = {"@reverse": self.pick(["http://e/rev", "e:rev"])}
            if self.chance(0.3):
                reverse["@container"] = self.pick(["@set", "@index", None])
            if self.chance(0.3):
                reverse["@type"] = "@id"
            return reverse
        if self.chance(0.35):
            term["@type"] = self.pick(["@id", "@vocab", "@json", "@none", "http://e/dt", XSD + "integer", XSD + "decimal"])
        elif self.chance(0.2):
            term["@language"] = self.pick([*LANGUAGES, None])
        if self.chance(0.06):
            term["@direction"] = self.pick(["ltr", "rtl", None])
        if self.chance(0.45):
            container = self.pick(CONTAINERS)
            if container is not None:
                term["@container"] = container
                if term.get("@type") == "@json" and container not in ("@list", "@set"):
                    del term["@type"]
                if "@type" in container and term.get("@type") not in (None, "@id", "@vocab"):
                    del term["@type"]
                if "@index" in container and self.chance(0.4):
                    term["@index"] = self.pick(["e:by", "http://e/by", "a"])
            self.containers[name] = container
        if self.chance(0.12) and depth < 2 and "@index" not in term:
            term["@context"] = self.pick([self.context(depth + 1), {}, None]) if self.chance(0.9) else None
        if self.chance(0.05):
            term["@nest"] = "@nest"
        if self.chance(0.05):
            term["@prefix"] = self.pick([True, False])
        if self.chance(0.05):
            term["@protected"] = self.pick([True, False])
        return term

    def cls(self, name, depth):
        term = {"@id": self.pick(["http://e/" + name, "e:" + name])}
        if self.chance(0.7) and depth < 2:
            term["@context"] = self.context(depth + 1)
        return term

    # Nodes and values.

    def node(self, depth, context=False):
        node = {}
        if context or self.chance(0.06):
            node["@context"] = self.context()
        if self.chance(0.7):
            node[self.keyword("@id")] = self.pick(IDS)
        if self.chance(0.5):
            types = [self.pick(CLASSES) for _ in range(self.random.randint(0, 3))]
            node[self.keyword("@type")] = types if self.chance(0.6) or not types else types[0]
        if self.chance(0.04):
            node[self.keyword("@index")] = self.pick(STRINGS)
        if depth < 4:
            for _ in range(self.random.randint(1 if depth < 2 else 0, 5 - depth)):
                name = self.pick([*TERMS, "unmapped"])
                node[name] = self.value_of(name, depth + 1)
            if self.chance(0.05):
                node[self.keyword("@reverse")] = {self.pick(TERMS): self.pick([self.node(depth + 1), [self.node(depth + 1)]])}
            if self.chance(0.08):
                node[self.keyword("@nest")] = {name: self.value_of(name, depth + 1) for name in self.random.sample(TERMS, 2)}
            if self.chance(0.05):
                node[self.keyword("@graph")] = [self.node(depth + 1) for _ in range(self.random.randint(0, 2))]
            if self.chance(0.05):
                node[self.keyword("@included")] = [{**self.node(depth + 1), "http://e/q": 1} for _ in range(self.random.randint(0, 2))]
        return node

    def value_of(self, name, depth):
        """A value that fits the container of a term, mostly."""
        container = self.containers.get(name)
        if container and self.chance(0.85):
            if "@language" in container:
                return {
                    self.pick([*LANGUAGES, "@none"]): self.pick([self.pick(STRINGS), [self.pick(STRINGS), None], None])
                    for _ in range(self.random.randint(0, 2))
                }
            if "@index" in container:
                return self.map(["one", "two", "@none", "http://e/i", "4"], depth)
            if "@id" in container:
                return self.map(["http://e/8", "e:9", "@none", "_:m", "rel"], depth, nodes=True)
            if "@type" in container:
                return self.map([*CLASSES, "@none"], depth, nodes=True)
        return self.value(depth)

    def map(self, keys, depth, nodes=False):
        def one():
            if nodes or self.chance(0.7):
                return self.node(depth + 1) if self.chance(0.8) else self.pick(IDS)
            return self.value(depth + 1)

        return {
            self.pick(keys): [one() for _ in range(self.random.randint(0, 2))] if self.chance(0.4) else one()
            for _ in range(self.random.randint(0, 3))
        }

    def value(self, depth):
        shape = self.random.random()
        if shape < 0.2:
            return self.pick(STRINGS)
        if shape < 0.3:
            return self.pick(NUMBERS)
        if shape < 0.35:
            return self.pick([True, False, None])
        if shape < 0.45:
            return self.pick(IDS)
        if shape < 0.6:
            return self.value_object()
        if depth > 4:
            return self.pick(STRINGS)
        if shape < 0.68:
            return {self.keyword("@list"): self.pick([[self.value(depth + 1) for _ in range(self.random.randint(0, 3))], self.pick(STRINGS)])}
        if shape < 0.73:
            return {self.keyword("@set"): [self.value(depth + 1) for _ in range(self.random.randint(0, 3))]}
        if shape < 0.82:
            return [self.value(depth + 1) for _ in range(self.random.randint(0, 3))]
        return self.node(depth)

    def value_object(self):
        value = {self.keyword("@value"): self.pick([self.pick(STRINGS), self.pick(NUMBERS), True, None])}
        shape = self.random.random()
        if shape < 0.25:
            value = {self.keyword("@value"): self.pick(NUMBERS)} if self.chance(0.3) else value
            types = ["http://e/dt", XSD + "string", "e:dt", "K"]
            if any(isinstance(v, (int, float)) for v in value.values()):
                types.append(XSD + "double")
            value[self.keyword("@type")] = self.pick(types)
        elif shape < 0.45:
            value[self.keyword("@value")] = self.pick(STRINGS)
            value = {key: value[key] for key in list(value)[-1:]}
            value[self.keyword("@language")] = self.pick(LANGUAGES)
            if self.chance(0.3):
                value["@direction"] = self.pick(["ltr", "rtl"])
        elif shape < 0.55:
            value = {"@type": "@json", "@value": self.json(0)}
        if self.chance(0.1):
            value[self.keyword("@index")] = "i"
        return value

    def json(self, depth):
        shape = self.random.random()
        if depth > 2 or shape < 0.5:
            return self.pick([*STRINGS, *NUMBERS, True, False, None])
        if shape < 0.75:
            return [self.json(depth + 1) for _ in range(self.random.randint(0, 3))]
        names = ["b", "a", "\ufb33", "\U0001f600", "é", "", "@id", "10", "9"]
        return {name: self.json(depth + 1) for name in self.random.sample(names, self.random.randint(0, 4))}
