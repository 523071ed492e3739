//! Random documents in the syntaxes of RDF.

use super::BOUNDARY;
use super::maker::Maker;
use super::recipe::{Recipe, all};

/// Media types of documents; a type that occurs twice is chosen twice as often.
pub(super) const MEDIA: [&str; 9] = [
    "text/turtle",
    "text/turtle",
    "application/trig",
    "application/n-triples",
    "application/n-quads",
    "application/rdf+xml",
    "application/ld+json",
    "multipart/form-data; boundary=boundary",
    "application/octet-stream",
];

impl Maker<'_> {
    /// A document of this media type with a length of about `bytes` bytes.
    pub fn document(&mut self, media: &str, bytes: usize) -> Recipe {
        (self.variables, self.blanks) = (false, true);
        match media {
            "application/n-triples" | "application/n-quads" => self.lines(bytes),
            "application/rdf+xml" => self.xml(bytes),
            "application/ld+json" => self.json(bytes),
            "application/trig" => {
                let one =
                    |m: &mut Self, each: usize| all!["<http://e/h§> { ", m.triples(each), " }"];
                let graphs = self.many(bytes, "\n", one);
                self.with_prologue(graphs)
            }
            media if media.starts_with("multipart") => self.parts(bytes),
            _ => {
                if bytes > 1000 && self.rng.chance(20) {
                    self.shorten(bytes);
                }
                if self.rng.chance(20) {
                    self.declare(bytes / 2);
                }
                let triples = all![self.triples(bytes), " .\n"];
                self.with_prologue(triples)
            }
        }
    }

    fn lines(&mut self, bytes: usize) -> Recipe {
        let one = self.rng.one(&[
            "<http://e/s§> <http://e/p1> \"§\" .\n",
            "<http://e/s1> <http://e/p1> \"§\" <http://e/h§> .\n",
            "_:b§ <http://e/p1> <<( _:a <http://e/p> _:c§ )>> .\n",
            "#\n",
            "x\n",
        ]);
        if self.rng.chance(50) {
            return Recipe::times((bytes / one.len()).max(1), one, "");
        }
        let filler = self.filler(bytes, &["a", "\\u0041", "é"]);
        match self.rng.below(4) {
            0 => all!["<http://e/s> <http://e/p> \"", filler, "\" .\n"],
            1 => all!["<http://e/", filler, "> <http://e/p> <http://e/o> .\n"],
            2 => all!["_:", filler, " <http://e/p> <http://e/o> .\n"],
            _ => {
                let inner = self.deep(bytes, "<<( <http://e/s> <http://e/p> ", "\"a\"", " )>>");
                all!["<http://e/s> <http://e/p> ", inner, " .\n"]
            }
        }
    }

    fn xml(&mut self, bytes: usize) -> Recipe {
        let head = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\"";
        let tail = "</rdf:RDF>";
        let many = |one: &str| Recipe::times((bytes / one.len()).max(1), one, "");
        match self.rng.below(7) {
            0 => {
                let nodes =
                    "<rdf:Description rdf:about=\"http://e/s§\"><e:p>§</e:p></rdf:Description>";
                all![head, ">", many(nodes), tail]
            }
            1 => all![head, "><rdf:Description", many(" e:a§=\"1\""), "/>", tail],
            2 => all![head, many(" xmlns:n§=\"http://e/§/\""), ">", tail],
            3 => {
                let inner = self.deep(
                    bytes,
                    "<rdf:Description><e:p>",
                    "",
                    "</e:p></rdf:Description>",
                );
                all![head, ">", inner, tail]
            }
            4 => {
                let text = self.filler(bytes, &["text ", "&amp;", "&#65;", "<!--c-->"]);
                all![
                    head,
                    "><rdf:Description><e:p>",
                    text,
                    "</e:p></rdf:Description>",
                    tail
                ]
            }
            5 => {
                let literal = "<rdf:Description><e:p rdf:parseType=\"Literal\">";
                all![
                    head,
                    ">",
                    literal,
                    many("<b a=\"§\">§</b>"),
                    "</e:p></rdf:Description>",
                    tail
                ]
            }
            _ => {
                let entities = self.deep(bytes / 2, "<!ENTITY a§ \"&b;&b;\">", "", "");
                all![
                    "<!DOCTYPE rdf:RDF [<!ENTITY b \"b\">",
                    entities,
                    "]>",
                    head,
                    ">&a1;",
                    tail
                ]
            }
        }
    }

    fn json(&mut self, bytes: usize) -> Recipe {
        let many = |one: &str| Recipe::times((bytes / one.len()).max(1), one, "");
        match self.rng.below(7) {
            0 => all![
                "[{}",
                many(",{\"@id\":\"http://e/s§\",\"http://e/p\":§}"),
                "]"
            ],
            1 => all!["{\"@id\":\"http://e/s\"", many(",\"http://e/p§\":1"), "}"],
            2 => {
                let inner = self.deep(bytes, "[", "1", "]");
                all!["{\"@id\":\"http://e/s\",\"http://e/p\":", inner, "}"]
            }
            3 => {
                let inner = self.deep(bytes, ",\"http://e/p\":{\"@id\":\"http://e/§\"", "", "}");
                all!["{\"@id\":\"http://e/s\"", inner, "}"]
            }
            4 => {
                let text = self.filler(bytes, &["text ", "\\u0041", "é"]);
                all!["{\"@id\":\"http://e/s\",\"http://e/p\":\"", text, "\"}"]
            }
            5 => all![
                "{\"@context\":[{\"a\":\"http://e/a\"}",
                many(",{\"k§\":\"a:k§\"}"),
                "],\"@id\":\"http://e/s\",\"k1\":1}"
            ],
            _ => all![
                "{\"@id\":\"http://e/s\",\"http://e/p\":{\"@list\":[0",
                many(",§"),
                "]}}"
            ],
        }
    }

    fn parts(&mut self, bytes: usize) -> Recipe {
        let part = match self.rng.below(4) {
            0 => format!("--{BOUNDARY}\r\n\r\n\r\n"),
            1 => format!("--{BOUNDARY}\r\n"),
            2 => format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"f§\"; filename=\"f§.ttl\"\r\n\r\n<http://e/s> <http://e/p> § .\r\n"
            ),
            _ => {
                let header = self.filler(bytes, &["a", "X-§: a\r\n"]);
                let body = "Content-Type: text/turtle\r\n\r\n<s> <p> 1 .\r\n";
                return all![
                    format!("--{BOUNDARY}\r\nX-Long: "),
                    header,
                    "\r\n",
                    body,
                    format!("--{BOUNDARY}--\r\n")
                ];
            }
        };
        let n = (bytes / part.len()).max(1);
        all![Recipe::times(n, part, ""), format!("--{BOUNDARY}--\r\n")]
    }
}
