//! Random changes of all kinds in a small world, so that they meet: SPARQL Update, the Graph Store Protocol, prefixes, mistakes.

use super::client::Request;
use jindou_model::random::splitmix64;
use std::path::PathBuf;

/// A maker of steps.
pub struct Steps {
    state: u64,
    /// Folder of documents that LOAD may read: `0.ttl` to `3.ttl`.
    documents: PathBuf,
}

/// The document that LOAD reads.
pub fn document(n: usize) -> String {
    format!("@prefix e: <http://e/> . e:s{n} e:p0 e:loaded , {n} ; e:p1 \"document {n}\"@en .\n")
}

/// Documents that LOAD may read.
pub const DOCUMENTS: usize = 4;

const GRAPHS: u64 = 4;
const NQUADS: &str = "application/n-quads";
const TURTLE: &str = "text/turtle";

fn iri(n: u64) -> String {
    format!("<http://e/g{n}>")
}

impl Steps {
    pub fn new(seed: u64, documents: PathBuf) -> Self {
        Self {
            state: seed,
            documents,
        }
    }

    pub fn below(&mut self, most: u64) -> u64 {
        splitmix64(&mut self.state) % most
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }

    fn subject(&mut self) -> String {
        format!("<http://e/s{}>", self.below(12))
    }

    fn predicate(&mut self) -> String {
        match self.below(6) {
            0 => "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>".into(),
            _ => format!("<http://e/p{}>", self.below(4)),
        }
    }

    fn object(&mut self) -> String {
        let n = self.below(20);
        match self.below(10) {
            9 => format!("<http://e/c{}>", n % 3),
            0..=2 => format!("<http://e/s{}>", n % 12),
            3 | 4 => n.to_string(),
            5 => format!("\"text {n}\\n\\\"quoted\\\" ü\""),
            6 => format!("\"wort {n}\"@de"),
            7 => format!("\"{n}.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>"),
            // Some are new each time.
            _ => format!("\"new {}\"", self.below(1 << 40)),
        }
    }

    fn triples(&mut self) -> String {
        let many = 1 + self.below(4);
        let mut text = String::new();
        for _ in 0..many {
            let (s, p, o) = (self.subject(), self.predicate(), self.object());
            text += &format!("{s} {p} {o} . ");
        }
        text
    }

    fn graph(&mut self) -> u64 {
        self.below(GRAPHS)
    }

    /// Quads as the data of an update, in some graph.
    fn data(&mut self) -> String {
        let triples = self.triples();
        match self.below(2) {
            0 => triples,
            _ => format!("GRAPH {} {{ {triples} }}", iri(self.graph())),
        }
    }

    /// An update that inserts quads.
    pub fn insertion(&mut self) -> String {
        format!("INSERT DATA {{ {} }}", self.data())
    }

    fn place(&mut self) -> String {
        match self.below(4) {
            0 => "DEFAULT".into(),
            _ => format!("GRAPH {}", iri(self.graph())),
        }
    }

    fn silent(&mut self) -> &'static str {
        self.one_of(&["", "SILENT "])
    }

    /// One operation of an update.
    fn operation(&mut self) -> String {
        match self.below(28) {
            0..=6 => self.insertion(),
            7 | 8 => format!("DELETE DATA {{ {} }}", self.data()),
            9 | 10 => {
                let (s, p) = (self.subject(), self.predicate());
                format!("DELETE WHERE {{ {s} {p} ?o }}")
            }
            11 => {
                let (g, p) = (iri(self.graph()), self.predicate());
                format!("DELETE WHERE {{ GRAPH {g} {{ ?s {p} ?o }} }}")
            }
            12 | 13 => {
                let [p, q] = [self.predicate(), self.predicate()];
                format!(
                    "DELETE {{ ?s {p} ?o }} INSERT {{ ?o {q} ?s }} WHERE {{ ?s {p} ?o FILTER(isIRI(?o)) }}"
                )
            }
            14 => {
                let (s, p) = (self.subject(), self.predicate());
                format!(
                    "DELETE {{ {s} <http://e/count> ?old }} INSERT {{ {s} <http://e/count> ?n }} WHERE {{ {{ SELECT (COUNT(*) AS ?n) {{ ?x {p} ?y }} }} OPTIONAL {{ {s} <http://e/count> ?old }} }}"
                )
            }
            15 => {
                let (g, p) = (iri(self.graph()), self.predicate());
                format!(
                    "WITH {g} DELETE {{ ?s {p} ?o }} INSERT {{ ?s {p} ?n }} WHERE {{ ?s {p} ?o FILTER(isNumeric(?o)) BIND(?o + 1 AS ?n) }}"
                )
            }
            16 => {
                let [g, h] = [iri(self.graph()), iri(self.graph())];
                let p = self.predicate();
                format!("INSERT {{ GRAPH {g} {{ ?s {p} ?o }} }} USING {h} WHERE {{ ?s {p} ?o }}")
            }
            17 => {
                let p = self.predicate();
                format!(
                    "INSERT {{ ?s {p} [ <http://e/in> ?g ] }} WHERE {{ GRAPH ?g {{ ?s {p} <http://e/s1> }} }}"
                )
            }
            18 => {
                "DELETE { ?s ?p ?b . ?b <http://e/in> ?g } WHERE { ?s ?p ?b . ?b <http://e/in> ?g }"
                    .to_owned()
            }
            19 => {
                let (s, p) = (self.subject(), self.predicate());
                format!(
                    "INSERT {{ {s} <http://e/unique> ?u }} WHERE {{ {{ SELECT * {{ {s} {p} ?o }} LIMIT 1 }} BIND(STRUUID() AS ?u) }}"
                )
            }
            20 => {
                let place = match self.below(8) {
                    0 => "ALL".into(),
                    1 => "NAMED".into(),
                    _ => self.place(),
                };
                let verb = self.one_of(&["CLEAR", "DROP"]);
                format!("{verb} {}{place}", self.silent())
            }
            21 => format!("CREATE {}GRAPH {}", self.silent(), iri(self.graph())),
            22..=24 => {
                let verb = self.one_of(&["COPY", "MOVE", "ADD"]);
                let (silent, from, to) = (self.silent(), self.place(), self.place());
                format!("{verb} {silent}{from} TO {to}")
            }
            25 | 26 => {
                let n = self.below(DOCUMENTS as u64 + 1);
                let file = self.documents.join(format!("{n}.ttl"));
                let into = match self.below(2) {
                    0 => String::new(),
                    _ => format!(" INTO GRAPH {}", iri(self.graph())),
                };
                format!("LOAD {}<file://{}>{into}", self.silent(), file.display())
            }
            // A mistake.
            _ => self
                .one_of(&["INSERT DATA { ?x ?y ?z }", "DELETE { this", "CLEAR GRAPH"])
                .into(),
        }
    }

    fn update_text(&mut self) -> String {
        let many = match self.below(4) {
            0 => 2 + self.below(3),
            _ => 1,
        };
        let all: Vec<String> = (0..many).map(|_| self.operation()).collect();
        all.join(" ;\n")
    }

    /// A change.
    pub fn change(&mut self) -> Request {
        let graph = match self.below(4) {
            0 => "default".to_owned(),
            _ => format!("graph=http://e/g{}", self.graph()),
        };
        let at = format!("/store?{graph}");
        match self.below(30) {
            0..=18 => Request::update(self.update_text()),
            19 | 20 => Request::new("PUT", at).body(TURTLE, self.triples()),
            21 | 22 => Request::new("POST", at).body(TURTLE, self.triples()),
            23 => Request::new("PUT", at).body(TURTLE, ""),
            24 => Request::new("DELETE", at),
            25 => Request::new("PATCH", at).body("application/sparql-update", self.update_text()),
            26 => {
                let (s, p, g) = (self.subject(), self.predicate(), iri(self.graph()));
                let body = format!("{s} {p} \"quad\" {g} .\n{s} {p} \"triple\" .\n");
                Request::new("POST", "/store").body(NQUADS, body)
            }
            27 => {
                let name = self.below(5);
                let iri = format!("http://e/prefix{}/", self.below(50));
                Request::new("PUT", format!("/prefixes/n{name}")).body("text/plain", iri)
            }
            28 => Request::new("DELETE", format!("/prefixes/n{}", self.below(5))),
            _ => Request::new("POST", at).body(TURTLE, "this is no Turtle"),
        }
    }

    /// A query, whose rows may come in any order.
    pub fn query(&mut self) -> String {
        match self.below(6) {
            0 => "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }".into(),
            1 => format!(
                "SELECT ?o {{ {} ?p ?o FILTER(!isBlank(?o) && ?p != <http://e/unique>) }}",
                self.subject()
            ),
            2 => format!(
                "SELECT ?s ?o {{ GRAPH {} {{ ?s {} ?o FILTER(!isBlank(?o) && !isBlank(?s)) }} }}",
                iri(self.graph()),
                self.predicate()
            ),
            3 => "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g".into(),
            4 => format!(
                "SELECT ?p (COUNT(DISTINCT ?o) AS ?n) {{ ?s ?p ?o ; {} ?x }} GROUP BY ?p",
                self.predicate()
            ),
            _ => format!("ASK {{ {} {} ?o }}", self.subject(), self.predicate()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_steps() {
        let make = |seed| {
            let mut steps = Steps::new(seed, PathBuf::from("/documents"));
            (0..100).map(|_| steps.change()).collect::<Vec<_>>()
        };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
    }
}
