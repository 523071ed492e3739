//! Random basic graph patterns over the [ugly graph](crate::ugly), for measuring planning time and lookups. Every query
//! is made from the statements about an entity and its neighbours, so all its patterns have a common solution if all
//! graphs are read. A query without `GRAPH` reads only the default graph, which lacks half of the statements.

use crate::random::SplitMix;
use crate::ugly::{Description, Ugly};
use jindou_parse::write::{TagCase, write_term};
use std::fmt::Write;

/// Largest number of triple patterns in a query.
pub const MOST_PATTERNS: u32 = 12;
/// Length of the longest constant, in bytes of its canonical form.
const LONGEST_CONSTANT: usize = 200;

/// `count` queries of 1 to [`MOST_PATTERNS`] patterns: stars, chains, and mixtures. The same graph and seed give the
/// same queries. A query needs O(patterns) descriptions of entities, about 100 µs.
pub fn queries(graph: &Ugly, count: usize, seed: u64) -> impl Iterator<Item = String> {
    (0..count as u64).map(move |number| query(graph, number, seed))
}

/// Query `number` of [`queries`].
pub fn query(graph: &Ugly, number: u64, seed: u64) -> String {
    let mut random = graph.query_stream(seed, number);
    let patterns = random.range(1, MOST_PATTERNS);
    let shape = *random.pick(&[QueryShape::Star, QueryShape::Chain, QueryShape::Mixed]);
    let mut draft = Draft {
        graph,
        random,
        nodes: vec![],
        body: String::new(),
        variables: 0,
    };
    draft.write(shape, patterns);
    let Draft {
        mut random, body, ..
    } = draft;
    if random.chance(1, 8) {
        format!("SELECT * WHERE {{\n  GRAPH ?g {{\n{body}  }}\n}}")
    } else {
        format!("SELECT * WHERE {{\n{body}}}")
    }
}

/// A query `<s> ?p ?o` over the default graph with a random entity, which is not a blank node.
pub fn subject_lookup(graph: &Ugly, number: u64, seed: u64) -> String {
    format!(
        "SELECT ?p ?o WHERE {{ {} ?p ?o }}",
        named(graph, number, seed)
    )
}

/// A query `?s ?p <o>` over the default graph with a random entity, which is neither a blank node nor the hub.
pub fn object_lookup(graph: &Ugly, number: u64, seed: u64) -> String {
    format!(
        "SELECT ?s ?p WHERE {{ ?s ?p {} }}",
        named(graph, number, seed)
    )
}

fn named(graph: &Ugly, number: u64, seed: u64) -> String {
    let mut random = graph.query_stream(!seed, number);
    loop {
        let entity = random.below(graph.entities());
        if let Some(text) = constant(&graph.entity(entity)) {
            return text;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QueryShape {
    /// All patterns have the same subject.
    Star,
    /// The subject of each pattern is the object of the previous one, where possible.
    Chain,
    /// The subject of each pattern is a random entity of earlier patterns.
    Mixed,
}

/// An entity that occurs in the query.
struct QueryNode {
    /// A variable or constant that stands for the entity in the query.
    name: String,
    description: Description,
    /// Indexes of the description's quads that no pattern uses yet, without copies in other graphs.
    unused: Vec<u32>,
}

struct Draft<'g> {
    graph: &'g Ugly,
    random: SplitMix,
    nodes: Vec<QueryNode>,
    body: String,
    variables: u32,
}

impl Draft<'_> {
    fn write(&mut self, shape: QueryShape, patterns: u32) {
        let root = self.random.below(self.graph.entities());
        let name = match constant(&self.graph.entity(root)) {
            Some(text) if self.random.chance(1, 6) => text,
            _ => self.variable(),
        };
        self.node(root, name);
        for _ in 0..patterns {
            let last = self.nodes.len() - 1;
            let wanted = match shape {
                QueryShape::Star => 0,
                QueryShape::Chain => last,
                QueryShape::Mixed => self.random.below(last as u32 + 1) as usize,
            };
            let node = if self.nodes[wanted].unused.is_empty() {
                self.nodes.iter().position(|n| !n.unused.is_empty())
            } else {
                Some(wanted)
            };
            match node {
                Some(node) => self.pattern(node, shape != QueryShape::Star),
                None => {
                    // All statements are used: adds a pattern with two new variables for the first entity.
                    let (p, o) = (self.variable(), self.variable());
                    self.line(0, &p, &o);
                }
            }
        }
    }

    fn node(&mut self, entity: u32, name: String) {
        let description = self.graph.describe(entity);
        let batch = &description.batch;
        let mut unused: Vec<u32> = vec![];
        for (number, quad) in batch.quads.iter().enumerate() {
            // Copies of a statement in other graphs directly follow it.
            let copy = number > 0 && batch.quads[number - 1][..3] == quad[..3];
            if quad[0] == batch.quads[0][0] && !copy {
                unused.push(number as u32);
            }
        }
        self.nodes.push(QueryNode {
            name,
            description,
            unused,
        });
    }

    /// Adds a pattern for a node that has unused quads. If `follow` is true, the pattern's object may become a node.
    fn pattern(&mut self, node: usize, follow: bool) {
        let QueryNode {
            description,
            unused,
            ..
        } = &mut self.nodes[node];
        let linked = |quad: u32| description.links.iter().find(|l| l.0 == quad).map(|l| l.1);
        let mut choice = self.random.below(unused.len() as u32) as usize;
        if follow && let Some(link) = unused.iter().position(|q| linked(*q).is_some()) {
            choice = link;
        }
        let quad = unused.swap_remove(choice);
        let target = linked(quad);
        let [_, p, o, _] = description.batch.quads[quad as usize];
        let predicate = description.batch.term(p).to_vec();
        let object = constant(description.batch.term(o));
        let predicate = match constant(&predicate) {
            Some(text) if self.random.chance(11, 12) => text,
            _ => self.variable(),
        };
        match target {
            Some(target) if follow => {
                let name = self.variable();
                self.line(node, &predicate, &name);
                self.node(target, name);
            }
            _ => {
                let often = if predicate.ends_with("#type>") { 4 } else { 2 };
                let object = match object {
                    Some(text) if self.random.chance(often, 6) => text,
                    _ => self.variable(),
                };
                self.line(node, &predicate, &object);
            }
        }
    }

    fn line(&mut self, node: usize, predicate: &str, object: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.body,
            "    {} {predicate} {object} .",
            self.nodes[node].name
        );
    }

    fn variable(&mut self) -> String {
        self.variables += 1;
        format!("?v{}", self.variables)
    }
}

/// A term in SPARQL's syntax; `None` for blank nodes and long literals.
fn constant(canonical: &[u8]) -> Option<String> {
    if canonical.len() > LONGEST_CONSTANT || canonical.first() == Some(&b'_') {
        return None;
    }
    let mut out = vec![];
    write_term(canonical, TagCase::Mixed, &mut out).ok()?;
    String::from_utf8(out).ok()
}
