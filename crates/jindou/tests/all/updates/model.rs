//! The set of quads with which stores are compared, and the effect of updates on it.

use oxrdf::{BlankNode, Dataset, GraphName, NamedOrBlankNode, Quad, Term, Variable};
use spareval::{QueryEvaluator, QueryResults};
use spargebra::term::{
    GraphNamePattern, GroundTermPattern, NamedNodePattern, QuadPattern, TermPattern,
};
use spargebra::{GraphUpdateOperation as Op, Query, SparqlParser};
use std::collections::HashMap;

/// A set of quads to which operations are applied as SPARQL 1.1 Update §3 defines them; patterns are matched by
/// `spareval`.
#[derive(Clone, Default)]
pub struct Model(pub Dataset);

impl Model {
    /// Applies a request whose operations are separated by `;` at the end of a line.
    pub fn run(&mut self, text: &str) {
        for operation in text.split(" ;\n") {
            if self.copies_nothing(operation) {
                continue;
            }
            // The parser translates ADD, COPY and MOVE into the operations by which they are defined.
            let update = SparqlParser::new()
                .parse_update(operation)
                .expect("an update");
            for op in &update.operations {
                self.one(op);
            }
        }
    }

    /// True for ADD, COPY and MOVE SILENT of a named graph that does not exist, which change nothing.
    fn copies_nothing(&self, operation: &str) -> bool {
        let mut words = operation.split_whitespace();
        let is_copy = matches!(words.next(), Some("ADD" | "COPY" | "MOVE"));
        is_copy
            && words.next() == Some("SILENT")
            && words.next().is_some_and(|from| {
                let name = from.trim_matches(['<', '>']);
                let is_it = |q: oxrdf::QuadRef<'_>| match q.graph_name {
                    oxrdf::GraphNameRef::NamedNode(n) => n.as_str() == name,
                    _ => false,
                };
                from != "DEFAULT" && !self.0.iter().any(is_it)
            })
    }

    fn one(&mut self, op: &Op) {
        match op {
            Op::InsertData { data } => {
                let mut fresh: HashMap<BlankNode, BlankNode> = HashMap::new();
                let mut node =
                    |b: &BlankNode| -> BlankNode { fresh.entry(b.clone()).or_default().clone() };
                for q in data {
                    let subject: NamedOrBlankNode = match &q.subject {
                        NamedOrBlankNode::BlankNode(b) => node(b).into(),
                        n => n.clone(),
                    };
                    let object: Term = match &q.object {
                        Term::BlankNode(b) => node(b).into(),
                        t => t.clone(),
                    };
                    let graph = graph_name(&q.graph_name);
                    self.0
                        .insert(&Quad::new(subject, q.predicate.clone(), object, graph));
                }
            }
            Op::DeleteData { data } => {
                for q in data {
                    let object = Term::from(q.object.clone());
                    self.0.remove(&Quad::new(
                        q.subject.clone(),
                        q.predicate.clone(),
                        object,
                        graph_name(&q.graph_name),
                    ));
                }
            }
            Op::DeleteInsert {
                delete,
                insert,
                using,
                pattern,
            } => {
                let data = match using {
                    Some(u) => self.dataset(u),
                    None => self.0.clone(),
                };
                let query = Query::Select {
                    dataset: None,
                    pattern: (**pattern).clone(),
                    base_iri: None,
                };
                let QueryResults::Solutions(rows) = QueryEvaluator::new()
                    .prepare(&query)
                    .execute(&data)
                    .expect("an answer")
                else {
                    panic!("no rows")
                };
                let (mut out, mut into) = (vec![], vec![]);
                for row in rows {
                    let row = row.expect("a row");
                    let mut row = Row {
                        get: &|v: &Variable| row.get(v).cloned(),
                        blanks: HashMap::new(),
                    };
                    for q in delete {
                        let pattern = QuadPattern {
                            subject: unground(&q.subject),
                            predicate: q.predicate.clone(),
                            object: unground(&q.object),
                            graph_name: q.graph_name.clone(),
                        };
                        out.extend(row.quad(&pattern));
                    }
                    for q in insert {
                        into.extend(row.quad(q));
                    }
                }
                for q in &out {
                    self.0.remove(q);
                }
                for q in &into {
                    self.0.insert(q);
                }
            }
            Op::Clear { graph, .. } | Op::Drop { graph, .. } => {
                use spargebra::algebra::GraphTarget as T;
                let goes = |g: &GraphName| match graph {
                    T::AllGraphs => true,
                    T::DefaultGraph => *g == GraphName::DefaultGraph,
                    T::NamedGraphs => *g != GraphName::DefaultGraph,
                    T::NamedNode(n) => *g == GraphName::NamedNode(n.clone()),
                };
                let stays = self.0.iter().map(|q| q.into_owned());
                self.0 = stays.filter(|q| !goes(&q.graph_name)).collect();
            }
            other => panic!("no {other}"),
        }
    }

    /// The dataset on which a pattern is matched under USING, USING NAMED or WITH.
    pub fn dataset(&self, using: &spargebra::algebra::QueryDataset) -> Dataset {
        let mut out = Dataset::new();
        for q in &self.0 {
            let q = q.into_owned();
            let g = match q.graph_name.clone() {
                GraphName::NamedNode(g) => g,
                // USING NAMED cannot name this graph; without USING, or with WITH, patterns see all named graphs.
                GraphName::BlankNode(_) if using.named.is_none() => {
                    out.insert(&q);
                    continue;
                }
                _ => continue,
            };
            if using.named.as_ref().is_none_or(|n| n.contains(&g)) {
                out.insert(&q);
            }
            if using.default.contains(&g) {
                out.insert(&Quad {
                    graph_name: GraphName::DefaultGraph,
                    ..q
                });
            }
        }
        out
    }
}

fn graph_name(g: &spargebra::term::GraphName) -> GraphName {
    match g {
        spargebra::term::GraphName::NamedNode(n) => n.clone().into(),
        spargebra::term::GraphName::DefaultGraph => GraphName::DefaultGraph,
    }
}

fn unground(t: &GroundTermPattern) -> TermPattern {
    match t {
        GroundTermPattern::NamedNode(n) => n.clone().into(),
        GroundTermPattern::Literal(l) => l.clone().into(),
        GroundTermPattern::Variable(v) => v.clone().into(),
        GroundTermPattern::Triple(_) => panic!("no triple terms here"),
    }
}

struct Row<'a> {
    get: &'a dyn Fn(&Variable) -> Option<Term>,
    blanks: HashMap<BlankNode, BlankNode>,
}

impl Row<'_> {
    fn term(&mut self, t: &TermPattern) -> Option<Term> {
        match t {
            TermPattern::NamedNode(n) => Some(n.clone().into()),
            TermPattern::Literal(l) => Some(l.clone().into()),
            TermPattern::Variable(v) => (self.get)(v),
            TermPattern::BlankNode(b) => {
                let fresh = self.blanks.entry(b.clone()).or_default();
                Some(fresh.clone().into())
            }
            TermPattern::Triple(_) => panic!("no triple terms here"),
        }
    }

    fn quad(&mut self, q: &QuadPattern) -> Option<Quad> {
        let resource = |t: Option<Term>| -> Option<NamedOrBlankNode> {
            match t? {
                Term::NamedNode(n) => Some(n.into()),
                Term::BlankNode(b) => Some(b.into()),
                _ => None,
            }
        };
        let subject = resource(self.term(&q.subject));
        let predicate = match &q.predicate {
            NamedNodePattern::NamedNode(n) => n.clone(),
            NamedNodePattern::Variable(v) => match (self.get)(v)? {
                Term::NamedNode(n) => n,
                _ => return None,
            },
        };
        let object = self.term(&q.object);
        let graph: GraphName = match &q.graph_name {
            GraphNamePattern::NamedNode(n) => n.clone().into(),
            GraphNamePattern::DefaultGraph => GraphName::DefaultGraph,
            GraphNamePattern::Variable(v) => resource((self.get)(v))?.into(),
        };
        Some(Quad::new(subject?, predicate, object?, graph))
    }
}
