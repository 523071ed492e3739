//! Lookup of quads by their terms, including blank nodes, without a query, as other RDF libraries offer it.

use crate::database::Database;
use crate::options::QueryOptions;
use jindou_dictionary::STRINGS_FILE;
use jindou_engine::{QueryTerms, TermDecoder};
use jindou_graph::segment::GraphScope;
use jindou_model::{
    CancelToken, Charge, DEFAULT_GRAPH, Direction, Error, Holder, PredicateId, Result, VertexId,
    term,
};
use jindou_store::Snapshot;
use oxrdf::{GraphName, NamedOrBlankNode, Quad, Term};
use std::ops::Range;

/// Number of subjects and edges between two checks of the time limit; also the initial capacity of the list of quads.
const CHECK_EVERY: usize = 1 << 10;

/// A pattern of quads, which matches those that have the given terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuadPattern {
    /// The subject; `None` matches any.
    pub subject: Option<Term>,
    /// The predicate; `None` matches any.
    pub predicate: Option<Term>,
    /// The object; `None` matches any.
    pub object: Option<Term>,
    /// The graph; `None` matches any, including the default graph.
    pub graph: Option<GraphName>,
}

impl QuadPattern {
    jindou_model::setters! {
        with_subject: subject = impl Into<Option<Term>>;
        with_predicate: predicate = impl Into<Option<Term>>;
        with_object: object = impl Into<Option<Term>>;
        with_graph: graph = impl Into<Option<GraphName>>;
    }
}

/// The quads of one snapshot that match a pattern, as ids that take 16 bytes per quad and are charged to a query's
/// memory. Terms are decoded when they are read.
pub struct QuadMatches {
    /// Ids of the subject, predicate, object and graph of each quad.
    ids: Vec<[u32; 4]>,
    snapshot: Snapshot,
    _charge: Charge,
}

impl Database {
    /// Finds the quads that match a pattern. A blank node in it matches the store's blank node with that label, as
    /// returned by queries and by [`QuadMatches::read`]. The time is linear in the number of quads with the subject if
    /// it is given, otherwise with the object, the predicate or the graph, whichever of these is given first.
    ///
    /// ```
    /// use jindou::{Database, QuadPattern, QueryOptions};
    /// use oxrdf::NamedNode;
    ///
    /// let db = Database::in_memory();
    /// db.update("INSERT DATA { _:x <http://e/p> 1 . <http://e/y> <http://e/p> 2 }", &Default::default())?;
    /// let options = QueryOptions::default();
    /// let p = NamedNode::new_unchecked("http://e/p");
    /// let all = db.quads_matching(&QuadPattern::default().with_predicate(oxrdf::Term::from(p)), &options)?;
    /// let mut quads = vec![];
    /// all.read(0..all.len(), &mut quads)?;
    /// assert_eq!(quads.len(), 2);
    /// for quad in quads {
    ///     let of_subject = QuadPattern::default().with_subject(oxrdf::Term::from(quad.subject));
    ///     assert_eq!(db.quads_matching(&of_subject, &options)?.len(), 1);
    /// }
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Cancelled`], [`Error::Limit`] for memory, [`Error::Damaged`] for damaged or
    /// unreadable files.
    pub fn quads_matching(
        &self,
        pattern: &QuadPattern,
        options: &QueryOptions,
    ) -> Result<QuadMatches> {
        let cancel = options.token();
        let snapshot = self.snapshot_for(&cancel)?;
        self.inner.check_for_faults(&snapshot)?;
        let mut charge = Charge::new(Holder::Rest, &self.settle(options).memory);
        let ids = self.inner.computed_from(&snapshot, || {
            let mut search = QuadSearch {
                snapshot: &snapshot,
                cancel: &cancel,
                charge: &mut charge,
                found: Vec::new(),
                keys: 0,
                looked: 0,
            };
            search.run(pattern)?;
            Ok(search.found)
        })?;
        Ok(QuadMatches {
            ids,
            // The snapshot is separate from the query's, since terms may be read after this call's time limit has
            // passed.
            snapshot: snapshot.for_new_query().into_owned(),
            _charge: charge,
        })
    }
}

struct QuadSearch<'a> {
    snapshot: &'a Snapshot,
    cancel: &'a CancelToken,
    charge: &'a mut Charge,
    found: Vec<[u32; 4]>,
    /// Capacity of the current list of subjects, whose memory is charged as well.
    keys: usize,
    looked: usize,
}

impl QuadSearch<'_> {
    /// The ids of the given terms, `None` for a position without a term. The result is `None` if the store lacks one of
    /// the terms.
    fn ids<const N: usize>(&self, terms: [Option<&Term>; N]) -> Option<[Option<u32>; N]> {
        let mut out = [None; N];
        for (id, t) in out.iter_mut().zip(terms) {
            if let Some(t) = t {
                *id = Some(self.snapshot.lookup(&term::encode(t))?.0);
            }
        }
        Some(out)
    }

    fn run(&mut self, pattern: &QuadPattern) -> Result<()> {
        let name = match &pattern.graph {
            Some(GraphName::NamedNode(n)) => Some(Term::from(n.clone())),
            Some(GraphName::BlankNode(b)) => Some(b.clone().into()),
            Some(GraphName::DefaultGraph) | None => None,
        };
        let terms = [
            pattern.subject.as_ref(),
            pattern.predicate.as_ref(),
            pattern.object.as_ref(),
            name.as_ref(),
        ];
        let Some([subject, predicate, object, graph]) = self.ids(terms) else {
            return Ok(());
        };
        let scope = match (&pattern.graph, graph) {
            (Some(GraphName::DefaultGraph), _) => GraphScope::Default,
            (_, Some(graph)) => GraphScope::Named(graph),
            (_, None) => GraphScope::Union,
        };
        let snapshot = self.snapshot;
        let predicates: Vec<u32> = match (predicate, subject, object, graph) {
            (Some(p), ..) => {
                let p = snapshot.predicate_of(VertexId(p));
                p.map(|p| p.0).into_iter().collect()
            }
            (_, Some(s), ..) => snapshot.predicates_of(s, Direction::Out).into_owned(),
            (_, _, Some(o), _) => snapshot.predicates_of(o, Direction::In).into_owned(),
            (_, _, _, Some(graph)) => snapshot.graph_predicates(graph),
            _ => (0..snapshot.predicate_count()).collect(),
        };
        let mut keys = Vec::new();
        for p in predicates.into_iter().map(PredicateId) {
            match (subject, object) {
                (Some(s), _) => self.list(p, Direction::Out, s, object, scope)?,
                (None, Some(o)) => self.list(p, Direction::In, o, None, scope)?,
                (None, None) => {
                    keys.clear();
                    match graph {
                        Some(graph) => snapshot.graph_subjects(graph, p, &mut keys),
                        None => snapshot
                            .edges(p, Direction::Out)
                            .candidate_keys(scope, &mut keys),
                    }
                    self.keys = keys.capacity();
                    self.charged(self.found.capacity())?;
                    for &s in &keys {
                        self.list(p, Direction::Out, s, None, scope)?;
                    }
                }
            }
        }
        // The list of subjects is dropped here, so it is no longer charged.
        self.keys = 0;
        self.charged(self.found.capacity())?;
        self.cancel.check()
    }

    /// Adds the quads of one vertex's edge list; with `only`, just the edge to that vertex.
    fn list(
        &mut self,
        p: PredicateId,
        direction: Direction,
        key: u32,
        only: Option<u32>,
        scope: GraphScope<'_>,
    ) -> Result<()> {
        let predicate = self.snapshot.vertex_of(p).0;
        let edges = self.snapshot.edges(p, direction);
        let mut full = Ok(());
        edges.for_each(key, scope, |other, graph| {
            // After an error, the remaining edges are skipped, since there may be millions of them.
            if only.is_none_or(|only| only == other) && full.is_ok() {
                full = self.push(match direction {
                    Direction::Out => [key, predicate, other, graph],
                    Direction::In => [other, predicate, key, graph],
                });
            }
        });
        full?;
        self.looked += 1;
        if self.looked.is_multiple_of(CHECK_EVERY) {
            self.cancel.check()?;
        }
        Ok(())
    }

    /// Adds a quad; if the list must grow, charges its memory first.
    #[inline]
    fn push(&mut self, quad: [u32; 4]) -> Result<()> {
        if self.found.len() == self.found.capacity() {
            let more = self.found.len().max(CHECK_EVERY);
            self.charged(self.found.len() + more)?;
            self.found.reserve_exact(more);
        }
        self.found.push(quad);
        Ok(())
    }

    /// Sets the charge to the memory of this many quads and of the list of subjects.
    fn charged(&mut self, quads: usize) -> Result<()> {
        let (quads, keys) = (quads as u64, self.keys as u64);
        let bytes = quads * size_of::<[u32; 4]>() as u64 + keys * size_of::<u32>() as u64;
        self.charge.set(bytes)
    }
}

impl QuadMatches {
    /// Number of quads.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True if there are no quads.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Appends the quads at these positions, counted from 0; positions past the last quad are ignored.
    ///
    /// # Errors
    /// [`Error::Damaged`] for an id without a term, and for a file that shrank or cannot be read: the store is damaged.
    pub fn read(&self, range: Range<usize>, out: &mut Vec<Quad>) -> Result<()> {
        let terms = QueryTerms::new();
        let decoder = || TermDecoder::new(&self.snapshot, &terms);
        let mut decoders = [decoder(), decoder(), decoder(), decoder()];
        let end = range.end.min(self.ids.len());
        for ids in self.ids.get(range.start.min(end)..end).unwrap_or(&[]) {
            let mut parts = [None, None, None, None];
            for ((part, decoder), &id) in parts.iter_mut().zip(&mut decoders).zip(ids) {
                *part = match id {
                    DEFAULT_GRAPH => None,
                    id => decoder.term(id)?,
                };
            }
            out.push(quad(parts).ok_or_else(|| {
                Error::damaged(
                    STRINGS_FILE,
                    "damaged: a quad has a literal in a position that cannot hold one; `jindou check` shows where",
                )
            })?);
        }
        self.snapshot.check_files()
    }
}

fn quad([subject, predicate, object, graph]: [Option<Term>; 4]) -> Option<Quad> {
    let subject = match subject? {
        Term::NamedNode(n) => NamedOrBlankNode::from(n),
        Term::BlankNode(b) => b.into(),
        Term::Literal(_) | Term::Triple(_) => return None,
    };
    let Term::NamedNode(predicate) = predicate? else {
        return None;
    };
    let graph = match graph {
        None => GraphName::DefaultGraph,
        Some(Term::NamedNode(n)) => n.into(),
        Some(Term::BlankNode(b)) => b.into(),
        Some(_) => return None,
    };
    Some(Quad::new(subject, predicate, object?, graph))
}

jindou_model::debug_format!(
    QuadMatches,
    |this| "QuadMatches {{ len: {}, .. }}",
    this.ids.len()
);
