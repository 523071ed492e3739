//! Random documents in RDF/XML, most of them valid.

/// A small generator of numbers (xorshift).
pub struct Random(pub u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const CLASSES: &[&str] = &["e:C", "f:D", "e:Été", "rdf:Seq", "rdf:Bag", "rdf:Statement"];
const PROPERTIES: &[&str] = &[
    "e:p",
    "e:q",
    "f:r",
    "rdf:li",
    "rdf:_2",
    "rdf:value",
    "rdf:type",
    "rdf:first",
    "e:ä",
];
const REFERENCES: &[&str] = &[
    "",
    "#f",
    "x",
    "../y",
    "/z",
    "http://e/a",
    "urn:a:b",
    "?q",
    "//h/p",
    "x%20y",
    "é",
    "&e;n",
    "./",
    "x#",
    "g/../h",
];
const TEXTS: &[&str] = &[
    "x",
    " ",
    "\n",
    "two words",
    "é",
    "𝄞",
    "&amp;",
    "&lt;b>",
    "&#13;",
    "&#x9;",
    "<!-- c -->",
    "<?p i?>",
    "<![CDATA[<&]]>",
    "<![CDATA[]]>",
    "&e;",
    "&m;",
    "'",
    "\"",
    "\r\n",
    "]]",
];
const LANGUAGES: &[&str] = &["en", "de-AT", "", "EN-gb"];
const DATATYPES: &[&str] = &[
    "http://www.w3.org/2001/XMLSchema#integer",
    "http://e/d",
    "urn:d",
    "&e;d",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral",
];

/// A document under construction.
struct Writer<'r> {
    r: &'r mut Random,
    out: String,
    ids: usize,
    /// True if mistakes are made.
    wrong: bool,
}

/// A document.
pub fn document(r: &mut Random) -> String {
    let wrong = r.chance(25);
    let mut w = Writer {
        r,
        out: String::new(),
        ids: 0,
        wrong,
    };
    if w.r.chance(40) {
        w.out += "<?xml version='1.0'?>";
    }
    w.out += "<!DOCTYPE r [<!ENTITY e 'http://e/'><!ENTITY m 'a &amp; b'>";
    if w.r.chance(10) {
        w.out += "<!ATTLIST e:p xml:lang CDATA 'fr'><!ATTLIST f:r e:q CDATA #IMPLIED>";
    }
    w.out += "]>";
    let namespaces = " xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='&e;' xmlns:f='http://f/x#'";
    let many = w.r.chance(85);
    if many {
        w.out += "<rdf:RDF";
        w.out += namespaces;
        w.scope();
        w.out += ">";
        for _ in 0..1 + w.r.below(4) {
            w.space();
            w.node(3, "");
        }
        if w.mistake() {
            w.out += "text";
        }
        w.out += "</rdf:RDF>";
    } else {
        w.node(3, namespaces);
    }
    w.out
}

impl Writer<'_> {
    fn mistake(&mut self) -> bool {
        self.wrong && self.r.chance(4)
    }

    fn space(&mut self) {
        let space = self.r.one(&["", "", "\n ", "<!-- c -->", " ", "<?p?>"]);
        self.out += space;
    }

    /// `xml:lang` and `xml:base`.
    fn scope(&mut self) {
        if self.r.chance(12) {
            let language = self.r.one(LANGUAGES);
            self.attribute("xml:lang", language);
        }
        if self.r.chance(8) {
            let base = self
                .r
                .one(&["http://o/p/q", "", "s/", "http://o/p#f", "/t", "../u"]);
            self.attribute("xml:base", base);
        }
        if self.r.chance(3) {
            self.attribute("xml:space", "preserve");
        }
    }

    fn attribute(&mut self, name: &str, value: &str) {
        let quote = if value.contains('\'') {
            '"'
        } else {
            self.r.one(&["'", "\""]).chars().next().unwrap()
        };
        let space = self.r.one(&[" ", "\n", "  "]);
        self.out += &format!("{space}{name}={quote}{value}{quote}");
    }

    /// A name that has not been used yet.
    fn id(&mut self) -> String {
        if self.mistake() {
            return self.r.one(&["1", "a b", "i0", "", "x:y"]).to_owned();
        }
        self.ids += 1;
        format!("i{}", self.ids)
    }

    fn reference(&mut self, name: &str) {
        let reference = self.r.one(REFERENCES);
        self.attribute(name, reference);
    }

    fn label(&mut self, name: &str) {
        let label = if self.mistake() {
            "b c"
        } else {
            self.r.one(&["b", "c.d", "é"])
        };
        self.attribute(name, label);
    }

    /// Attributes that are properties, each once.
    fn property_attributes(&mut self) {
        let mut used = Vec::new();
        for _ in 0..self.r.below(3) {
            let name = self
                .r
                .one(&["e:p", "e:q", "f:r", "rdf:type", "rdf:value", "rdf:_1"]);
            if used.contains(&name) && !self.mistake() {
                continue;
            }
            used.push(name);
            match name {
                "rdf:type" => self.reference(name),
                _ => {
                    let value = self.r.one(&["v", "a\n b", "&m;", "&#10;", "", "é", "a\tb"]);
                    self.attribute(name, value);
                }
            }
        }
        if self.mistake() {
            let name = self.r.one(&[
                "rdf:li",
                "rdf:bagID",
                "rdf:RDF",
                "p",
                "g:p",
                "rdf:aboutEach",
            ]);
            self.attribute(name, "v");
        }
    }

    fn node(&mut self, depth: usize, more: &str) {
        let name = match self.mistake() {
            true => self.r.one(&["rdf:li", "rdf:RDF", "C", "rdf:ID", "g:C"]),
            false if self.r.chance(50) => "rdf:Description",
            false => self.r.one(CLASSES),
        };
        self.out += "<";
        self.out += name;
        self.out += more;
        let subject = self.r.below(10);
        match subject {
            0..=3 => self.reference("rdf:about"),
            4 => {
                let id = self.id();
                self.attribute("rdf:ID", &id);
            }
            5 => self.label("rdf:nodeID"),
            6 if self.r.chance(20) => self.reference("about"),
            _ => {}
        }
        if self.mistake() && subject != 5 {
            self.label("rdf:nodeID");
        }
        self.scope();
        if self.r.chance(35) {
            self.property_attributes();
        }
        if depth == 0 || self.r.chance(15) {
            self.out += "/>";
            return;
        }
        self.out += ">";
        for _ in 0..self.r.below(4) {
            self.space();
            self.property(depth);
        }
        if self.mistake() {
            self.out += "text";
        }
        self.space();
        self.out += &format!("</{name}>");
    }

    fn property(&mut self, depth: usize) {
        let name = match self.mistake() {
            true => self
                .r
                .one(&["rdf:Description", "rdf:RDF", "p", "rdf:about", "g:p"]),
            false => self.r.one(PROPERTIES),
        };
        self.out += "<";
        self.out += name;
        if self.r.chance(10) {
            let id = self.id();
            self.attribute("rdf:ID", &id);
        }
        self.scope();
        match self.r.below(11) {
            0 | 1 => {
                match self.r.chance(60) {
                    true => self.reference("rdf:resource"),
                    false => self.label("rdf:nodeID"),
                }
                if self.r.chance(20) {
                    self.property_attributes();
                }
                self.out += self.r.one(&["/>", ">"]);
                if self.out.ends_with("/>") {
                    return;
                }
                if self.mistake() {
                    self.out += "x";
                }
            }
            2 => {
                self.property_attributes();
                self.out += "/>";
                return;
            }
            3 => {
                let datatype = self.r.one(DATATYPES);
                self.attribute("rdf:datatype", datatype);
                self.out += ">";
                self.text();
            }
            4 => {
                self.attribute("rdf:parseType", "Resource");
                self.out += ">";
                if depth > 0 {
                    for _ in 0..self.r.below(3) {
                        self.space();
                        self.property(depth - 1);
                    }
                }
            }
            5 => {
                self.attribute("rdf:parseType", "Collection");
                self.out += ">";
                if depth > 0 {
                    for _ in 0..self.r.below(4) {
                        self.space();
                        self.node(depth - 1, "");
                    }
                }
            }
            6 => {
                let kind = self
                    .r
                    .one(&["Literal", "Literal", "Literal", "literal", "Unknown"]);
                self.attribute("rdf:parseType", kind);
                if self.mistake() {
                    self.reference("rdf:resource");
                }
                self.out += ">";
                self.markup(2);
            }
            7 | 8 if depth > 0 => {
                self.out += ">";
                self.space();
                self.node(depth - 1, "");
                if self.mistake() {
                    self.node(0, "");
                }
                self.space();
            }
            _ => {
                self.out += ">";
                self.text();
            }
        }
        self.out += &format!("</{name}>");
    }

    fn text(&mut self) {
        for _ in 0..self.r.below(4) {
            let piece = self.r.one(TEXTS);
            self.out += piece;
        }
    }

    /// Content of an XML literal.
    fn markup(&mut self, depth: usize) {
        for _ in 0..self.r.below(4) {
            if depth == 0 || self.r.chance(60) {
                let piece = self.r.one(TEXTS);
                self.out += piece;
                continue;
            }
            let name = self.r.one(&["b", "e:b", "x:b", "h"]);
            self.out += "<";
            self.out += name;
            match name {
                "x:b" => self.attribute("xmlns:x", "http://x/"),
                "h" => self.attribute("xmlns", "http://h/"),
                _ => {}
            }
            if self.r.chance(30) {
                self.attribute("z", "1\n2");
            }
            if self.r.chance(30) {
                self.attribute("f:a", "&lt;&quot;");
            }
            if self.r.chance(10) {
                self.attribute("xml:lang", "de");
            }
            self.out += ">";
            self.markup(depth - 1);
            self.out += &format!("</{name}>");
        }
    }
}
