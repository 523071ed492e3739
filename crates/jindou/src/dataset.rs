//! A snapshot as `spareval` sees it: the oracle of differential tests, and the way of queries whose operators
//! are not native yet.

use jindou_model::{DEFAULT_GRAPH, Direction, NO_VERTEX, PredicateId, VertexId, term};
use jindou_store::Snapshot;
use jindou_store::segment::Scope;
use oxrdf::{Literal, NamedNode, Term};
use spareval::{InternalQuad, QueryableDataset};
use spargebra::algebra::QueryDataset;
use std::hash::{Hash, Hasher};
use std::panic::resume_unwind;
use std::sync::Arc;

/// Ends an evaluation from inside. `spareval` looks at its cancellation flag only where it reads quads, so a
/// product of rows that it holds already would run on for ever; but it copies, makes or reads a term for every row,
/// and those look here. Out of there the only way is to unwind.
#[derive(Clone, Copy)]
pub(crate) struct Stop<'s>(pub &'s spareval::CancellationToken);

/// What [`Stop`] unwinds with.
pub(crate) struct Stopped;

impl Stop<'_> {
    #[inline]
    fn check(self) {
        if self.0.is_cancelled() && !std::thread::panicking() {
            resume_unwind(Box::new(Stopped));
        }
    }
}

/// A term of the store by its id, or one that the query made.
pub struct DatasetTerm<'s>(Inner<'s>);

enum Inner<'s> {
    /// In the dictionary.
    Id(u32, Option<Stop<'s>>),
    /// Nowhere in the store, so it matches no quad.
    Other(Arc<Term>),
    /// [`TEXT`].
    Text,
}

/// A predicate that no store has, made for one query: its only edge to an object comes from the object's text.
/// (No IRI of a query's text holds a space.)
pub(crate) const TEXT: &str = "jindou: text of";

impl<'s> DatasetTerm<'s> {
    fn id(id: u32, stop: Option<Stop<'s>>) -> Self {
        Self(Inner::Id(id, stop))
    }
}

impl Clone for DatasetTerm<'_> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Inner::Id(id, stop) => {
                if let Some(stop) = stop {
                    stop.check();
                }
                Inner::Id(*id, *stop)
            }
            Inner::Other(t) => Inner::Other(Arc::clone(t)),
            Inner::Text => Inner::Text,
        })
    }
}

impl PartialEq for DatasetTerm<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Inner::Id(a, _), Inner::Id(b, _)) => a == b,
            (Inner::Other(a), Inner::Other(b)) => a == b,
            (Inner::Text, Inner::Text) => true,
            _ => false,
        }
    }
}

impl Eq for DatasetTerm<'_> {}

impl Hash for DatasetTerm<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Inner::Id(id, _) => id.hash(state),
            Inner::Other(t) => t.hash(state),
            Inner::Text => 0.hash(state),
        }
    }
}

/// An id that the dictionary cannot decode: the store is damaged.
#[derive(Debug, thiserror::Error)]
#[error("the store's dictionary is damaged: it has no term {0}; run `jindou check`")]
pub struct DamagedTerm(u32);

/// The graphs that a query's default graph merges, and the named graphs it may see.
#[derive(Clone, Debug)]
pub struct Graphs {
    default: DefaultGraph,
    named: Option<Arc<[u32]>>,
}

#[derive(Clone, Debug)]
enum DefaultGraph {
    Own,
    Union,
    Set(Arc<[u32]>),
}

impl Graphs {
    /// From the query's `FROM` and `FROM NAMED`, or the store's own default graph. Graphs that the store
    /// does not know are empty.
    #[must_use]
    pub fn of(snapshot: &Snapshot, from: Option<&QueryDataset>, union_default: bool) -> Self {
        let ids = |names: &[oxrdf::NamedNode]| -> Arc<[u32]> {
            let mut ids: Vec<u32> = names
                .iter()
                .filter_map(|n| snapshot.lookup(&term::encode(&n.clone().into())))
                .map(|v| v.0)
                .collect();
            ids.sort_unstable();
            ids.dedup();
            ids.into()
        };
        match from {
            Some(d) => Self {
                default: DefaultGraph::Set(ids(&d.default)),
                named: Some(ids(d.named.as_deref().unwrap_or(&[]))),
            },
            None if union_default => Self {
                default: DefaultGraph::Union,
                named: None,
            },
            None => Self {
                default: DefaultGraph::Own,
                named: None,
            },
        }
    }

    fn default_scope(&self) -> Scope<'_> {
        match &self.default {
            DefaultGraph::Own => Scope::Default,
            DefaultGraph::Union => Scope::Union,
            DefaultGraph::Set(ids) => Scope::Set(ids),
        }
    }

    fn named_scope(&self) -> Scope<'_> {
        match &self.named {
            None => Scope::AnyNamed,
            Some(ids) => Scope::Set(ids),
        }
    }
}

/// See the module.
#[derive(Clone)]
pub struct SnapshotDataset<'s> {
    snapshot: Snapshot,
    graphs: Graphs,
    stop: Option<Stop<'s>>,
}

impl<'s> SnapshotDataset<'s> {
    /// A view of a snapshot.
    #[must_use]
    pub fn new(snapshot: Snapshot, graphs: Graphs) -> Self {
        Self {
            snapshot,
            graphs,
            stop: None,
        }
    }

    /// The same view; evaluations over it unwind with [`Stopped`] soon after the token is cancelled.
    pub(crate) fn stopped_by(self, token: &'s spareval::CancellationToken) -> Self {
        Self {
            stop: Some(Stop(token)),
            ..self
        }
    }

    /// The IRIs of the named graphs that the query sees; `None` if there are more than `most` or some are blank
    /// nodes.
    pub(crate) fn graph_names(&self, most: usize) -> Option<Vec<NamedNode>> {
        let mut out = Vec::new();
        for g in self.internal_named_graphs() {
            let Ok(Term::NamedNode(name)) = g.and_then(|g| self.externalize_term(g)) else {
                return None;
            };
            if out.len() == most {
                return None;
            }
            out.push(name);
        }
        Some(out)
    }

    fn check(&self) {
        if let Some(stop) = self.stop {
            stop.check();
        }
    }

    fn term(&self, id: u32) -> DatasetTerm<'s> {
        DatasetTerm::id(id, self.stop)
    }
}

/// Which graph the pattern asks for.
#[derive(Clone, Copy)]
enum Asked {
    Default,
    One(u32),
    AnyNamed,
}

/// Walks the matching quads: predicates, in them keys, in them neighbours.
struct Quads<'s> {
    data: SnapshotDataset<'s>,
    asked: Asked,
    /// The key's end; the other end is the neighbour.
    direction: Direction,
    /// The bound key, if one is.
    key: Option<u32>,
    /// The bound neighbour, if one is.
    neighbour: Option<u32>,
    predicates: std::vec::IntoIter<u32>,
    predicate: u32,
    keys: Vec<u32>,
    next_key: usize,
    at_key: u32,
    neighbours: Vec<u32>,
    graphs: Vec<u32>,
    next: usize,
}

impl Quads<'_> {
    /// Fills `keys` for the next predicate; false at the end.
    fn next_predicate(&mut self) -> bool {
        let Some(p) = self.predicates.next() else {
            return false;
        };
        self.predicate = p;
        self.keys.clear();
        self.next_key = 0;
        if let Some(k) = self.key {
            self.keys.push(k);
            return true;
        }
        let snapshot = &self.data.snapshot;
        match self.asked {
            Asked::One(g) => snapshot.graph_subjects(g, PredicateId(p), &mut self.keys),
            Asked::Default | Asked::AnyNamed => {
                let scope = match self.asked {
                    Asked::Default => self.data.graphs.default_scope(),
                    _ => self.data.graphs.named_scope(),
                };
                snapshot
                    .edges(PredicateId(p), self.direction)
                    .candidate_keys(scope, &mut self.keys);
            }
        }
        true
    }

    /// Reads the neighbours of the next key; false when this predicate has no more.
    fn next_key(&mut self) -> bool {
        let Some(&key) = self.keys.get(self.next_key) else {
            return false;
        };
        self.next_key += 1;
        self.at_key = key;
        self.neighbours.clear();
        self.graphs.clear();
        self.next = 0;
        let edges = self
            .data
            .snapshot
            .edges(PredicateId(self.predicate), self.direction);
        match self.asked {
            Asked::Default => {
                let mut scratch = Vec::new();
                let list = edges.read(key, self.data.graphs.default_scope(), &mut scratch);
                self.neighbours.extend_from_slice(list);
                self.graphs.resize(self.neighbours.len(), DEFAULT_GRAPH);
            }
            Asked::One(g) => {
                edges.read_with_graphs(key, Scope::Named(g), &mut self.neighbours, &mut self.graphs)
            }
            Asked::AnyNamed => edges.read_with_graphs(
                key,
                self.data.graphs.named_scope(),
                &mut self.neighbours,
                &mut self.graphs,
            ),
        }
        true
    }
}

impl<'s> Iterator for Quads<'s> {
    type Item = Result<InternalQuad<DatasetTerm<'s>>, DamagedTerm>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            while let (Some(&n), Some(&g)) =
                (self.neighbours.get(self.next), self.graphs.get(self.next))
            {
                self.next += 1;
                if self.neighbour.is_some_and(|want| want != n) {
                    continue;
                }
                let (subject, object) = match self.direction {
                    Direction::Out => (self.at_key, n),
                    Direction::In => (n, self.at_key),
                };
                return Some(Ok(InternalQuad {
                    subject: self.data.term(subject),
                    predicate: self
                        .data
                        .term(self.data.snapshot.vertex_of(PredicateId(self.predicate)).0),
                    object: self.data.term(object),
                    graph_name: (g != DEFAULT_GRAPH).then(|| self.data.term(g)),
                }));
            }
            // Keys without a matching edge may be many, and give nothing that anybody could look at.
            self.data.check();
            if !self.next_key() && !self.next_predicate() {
                return None;
            }
        }
    }
}

impl<'a> QueryableDataset<'a> for SnapshotDataset<'a> {
    type InternalTerm = DatasetTerm<'a>;
    type Error = DamagedTerm;

    fn internal_quads_for_pattern(
        &self,
        subject: Option<&DatasetTerm<'a>>,
        predicate: Option<&DatasetTerm<'a>>,
        object: Option<&DatasetTerm<'a>>,
        graph_name: Option<Option<&DatasetTerm<'a>>>,
    ) -> impl Iterator<Item = Result<InternalQuad<DatasetTerm<'a>>, DamagedTerm>> + use<'a> {
        let text = match (predicate, object) {
            (Some(DatasetTerm(Inner::Text)), Some(o)) => self.text_of(o, graph_name.flatten()),
            _ => None,
        };
        // 0 is no vertex: a term that is nowhere in the store then matches nothing.
        let id = |t: Option<&DatasetTerm<'a>>| {
            t.map(|t| match &t.0 {
                Inner::Id(id, _) => *id,
                Inner::Other(_) | Inner::Text => NO_VERTEX,
            })
        };
        let (s, p, o) = (id(subject), id(predicate), id(object));
        let asked = match graph_name {
            None => Some(Asked::AnyNamed),
            Some(None) => Some(Asked::Default),
            Some(Some(g)) => match id(Some(g)) {
                Some(g) if g != NO_VERTEX && self.graphs.named_scope().sees(g) => {
                    Some(Asked::One(g))
                }
                _ => None,
            },
        };
        let absent = [s, p, o].contains(&Some(NO_VERTEX)) || asked.is_none();
        let asked = asked.unwrap_or(Asked::Default);
        let (direction, key, neighbour) = match (s, o) {
            (Some(s), o) => (Direction::Out, Some(s), o),
            (None, Some(o)) => (Direction::In, Some(o), None),
            (None, None) => (Direction::Out, None, None),
        };
        let predicates = match (p, key, asked) {
            _ if absent => Vec::new(),
            (Some(p), _, _) => self
                .snapshot
                .predicate_of(VertexId(p))
                .map(|p| p.0)
                .into_iter()
                .collect(),
            (None, Some(k), _) => self.snapshot.predicates_of(k, direction).to_vec(),
            (None, None, Asked::One(g)) => self.snapshot.graph_predicates(g),
            (None, None, _) => (0..self.snapshot.predicate_count()).collect(),
        };
        let quads = Quads {
            data: self.clone(),
            asked,
            direction,
            key,
            neighbour,
            predicates: predicates.into_iter(),
            predicate: 0,
            keys: Vec::new(),
            next_key: 0,
            at_key: 0,
            neighbours: Vec::new(),
            graphs: Vec::new(),
            next: 0,
        };
        text.into_iter().chain(quads)
    }

    fn internal_named_graphs(
        &self,
    ) -> impl Iterator<Item = Result<DatasetTerm<'a>, DamagedTerm>> + use<'a> {
        let mut graphs = self.snapshot.named_graphs();
        graphs.retain(|&g| {
            self.graphs.named_scope().sees(g) && (!self.snapshot.is_patched() || self.has_quad(g))
        });
        let stop = self.stop;
        graphs
            .into_iter()
            .map(move |g| Ok(DatasetTerm::id(g, stop)))
    }

    fn contains_internal_graph_name(
        &self,
        graph_name: &DatasetTerm<'a>,
    ) -> Result<bool, DamagedTerm> {
        Ok(match graph_name.0 {
            Inner::Id(g, _) => {
                g != NO_VERTEX && self.graphs.named_scope().sees(g) && self.has_quad(g)
            }
            Inner::Other(_) | Inner::Text => false,
        })
    }

    fn internalize_term(&self, term: Term) -> Result<DatasetTerm<'a>, DamagedTerm> {
        self.check();
        if matches!(&term, Term::NamedNode(n) if n.as_str() == TEXT) {
            return Ok(DatasetTerm(Inner::Text));
        }
        Ok(match self.snapshot.lookup(&term::encode(&term)) {
            Some(v) => self.term(v.0),
            None => DatasetTerm(Inner::Other(Arc::new(term))),
        })
    }

    fn externalize_term(&self, term: DatasetTerm<'a>) -> Result<Term, DamagedTerm> {
        self.check();
        match term.0 {
            Inner::Other(t) => Ok(Arc::unwrap_or_clone(t)),
            Inner::Text => Ok(NamedNode::new_unchecked(TEXT).into()),
            Inner::Id(id, _) => {
                let mut bytes = Vec::new();
                if !self.snapshot.term(VertexId(id), &mut bytes) {
                    return Err(DamagedTerm(id));
                }
                term::decode(&bytes).ok_or(DamagedTerm(id))
            }
        }
    }
}

impl<'s> SnapshotDataset<'s> {
    /// The edge of [`TEXT`] that ends in a literal or an IRI.
    fn text_of(
        &self,
        object: &DatasetTerm<'s>,
        graph: Option<&DatasetTerm<'s>>,
    ) -> Option<Result<InternalQuad<DatasetTerm<'s>>, DamagedTerm>> {
        let text = match self.externalize_term(object.clone()) {
            Ok(Term::Literal(l)) => l.destruct().0,
            Ok(Term::NamedNode(n)) => n.into_string(),
            Ok(_) => return None,
            Err(e) => return Some(Err(e)),
        };
        Some(
            self.internalize_term(Literal::new_simple_literal(text).into())
                .map(|text| InternalQuad {
                    subject: text,
                    predicate: DatasetTerm(Inner::Text),
                    object: object.clone(),
                    graph_name: graph.cloned(),
                }),
        )
    }

    /// True if a named graph holds a quad at this snapshot.
    fn has_quad(&self, graph: u32) -> bool {
        let mut subjects = Vec::new();
        self.snapshot.graph_predicates(graph).into_iter().any(|p| {
            self.snapshot
                .graph_subjects(graph, PredicateId(p), &mut subjects);
            let edges = self.snapshot.edges(PredicateId(p), Direction::Out);
            let mut scratch = Vec::new();
            subjects
                .iter()
                .any(|&s| !edges.read(s, Scope::Named(graph), &mut scratch).is_empty())
        })
    }
}
