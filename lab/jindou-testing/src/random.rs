//! Random numbers and random data.

use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};

/// A xorshift generator: tests need reproducible numbers, but not good randomness.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator. The same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `n`, which must not be 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % n as u64) as usize
    }

    /// Returns true with a probability of `percent` percent.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A random element of a slice, which must not be empty.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A random one of the parts of a text that `; ` separates.
    pub fn part<'a>(&mut self, of: &'a str) -> &'a str {
        let parts: Vec<&str> = of.split("; ").collect();
        self.one(&parts)
    }
}

/// The IRI `http://e/` followed by a name.
pub fn named(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{name}"))
}

/// A quad of the default graph, whose subject and predicate are [`named`].
pub fn triple(subject: &str, predicate: &str, object: impl Into<Term>) -> Quad {
    let (subject, predicate) = (named(subject), named(predicate));
    Quad::new(subject, predicate, object, GraphName::DefaultGraph)
}

pub(crate) fn vertex(n: usize) -> NamedNode {
    named(&format!("v{n}"))
}

pub(crate) fn predicate(n: usize) -> NamedNode {
    named(&format!("p{n}"))
}

pub(crate) fn graph(n: usize) -> NamedNode {
    named(&format!("g{n}"))
}

pub(crate) const VERTICES: usize = 5;
pub(crate) const PREDICATES: usize = 3;
pub(crate) const GRAPHS: usize = 3;

/// A literal in canonical form, since `spareval` stores the values of literals but not their lexical forms.
pub(crate) fn literal(rng: &mut Rng) -> Literal {
    match rng.below(8) {
        0..=2 => Literal::from(rng.below(4) as i64),
        3 => Literal::new_typed_literal(rng.one(&["0.5", "1.5", "2.5"]), xsd::DECIMAL),
        4 => Literal::new_simple_literal(rng.one(&["a", "b", "ab", ""])),
        5 => {
            let (text, tag) = (rng.one(&["a", "b"]), rng.one(&["en", "de"]));
            Literal::new_language_tagged_literal_unchecked(text, tag)
        }
        6 => Literal::from(rng.chance(50)),
        _ => {
            let time = rng.one(&["2020-01-01T00:00:00Z", "2021-05-06T07:08:09Z"]);
            Literal::new_typed_literal(time, xsd::DATE_TIME)
        }
    }
}

fn resource(rng: &mut Rng) -> NamedOrBlankNode {
    match rng.below(12) {
        0 => BlankNode::new_unchecked(format!("b{}", rng.below(2))).into(),
        // Predicates and graphs may also occur as subjects and objects.
        1 => predicate(rng.below(PREDICATES)).into(),
        2 => graph(rng.below(GRAPHS)).into(),
        _ => vertex(rng.below(VERTICES)).into(),
    }
}

/// The named graphs of some quads, each once, in the syntax of SPARQL.
pub(crate) fn graph_names(quads: &[Quad]) -> Vec<String> {
    let mut graphs: Vec<String> = quads
        .iter()
        .filter_map(|q| match &q.graph_name {
            GraphName::NamedNode(n) => Some(n.to_string()),
            _ => None,
        })
        .collect();
    graphs.sort();
    graphs.dedup();
    graphs
}

/// A small random dataset with named graphs, blank nodes, classes, numbers, and strings with language tags.
pub fn quads(rng: &mut Rng) -> Vec<Quad> {
    let in_graphs = [0, 40, 80][rng.below(3)];
    let mut out: Vec<Quad> = vec![];
    for _ in 0..12 + rng.below(24) {
        let subject = resource(rng);
        let graph_name = match rng.chance(in_graphs) {
            true => graph(rng.below(GRAPHS)).into(),
            false => GraphName::DefaultGraph,
        };
        let (p, object): (NamedNode, Term) = match rng.below(10) {
            0 | 1 => {
                let class = named(&format!("c{}", rng.below(3)));
                (rdf::TYPE.into_owned(), class.into())
            }
            2..=4 => (predicate(rng.below(PREDICATES)), literal(rng).into()),
            _ => (predicate(rng.below(PREDICATES)), resource(rng).into()),
        };
        let quad = Quad::new(subject, p, object, graph_name);
        if !out.contains(&quad) {
            out.push(quad);
        }
    }
    out
}
