//! Statistics of a database, as a VoID description publishes them.

use crate::database::Database;
use crate::options::QueryOptions;
use jindou_model::units::grouped;
use jindou_model::{MAX_BASE_VERTICES, PredicateId, VertexId, term};
use jindou_store::{InfoReport, PredicateInfo, Snapshot};
use oxrdf::Term;
use std::collections::HashMap;
use std::fmt;

/// Counts of one snapshot, including updates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of triples in the default graph.
    pub triples: u64,
    /// Number of quads in named graphs.
    pub named_quads: u64,
    /// Number of named graphs.
    pub graphs: u64,
    /// Number of distinct subjects in all graphs, including those that lost all their statements since the last merge.
    pub subjects: u64,
    /// Number of terms that occur as subject, predicate or object.
    pub terms: u64,
    /// Predicate IRIs with the number of their statements (in all graphs), the most frequent first. Predicates without
    /// statements are left out.
    pub predicates: Vec<(String, u64)>,
    /// Class IRIs with the number of their instances, the most frequent first. Classes that are blank nodes are left
    /// out.
    pub classes: Vec<(String, u64)>,
    /// True if queries see the union of all graphs as their default graph.
    pub union_default: bool,
    /// Random number of the load: if it differs, other data was loaded.
    pub epoch: u64,
}

/// Counts of a snapshot's quads by the kind of their graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphCounts {
    /// Number of triples in the default graph.
    pub default: u64,
    /// Number of quads in named graphs.
    pub named: u64,
    /// Number of named graphs.
    pub graphs: u64,
}

impl GraphCounts {
    /// The counts of a snapshot. O(predicates).
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let mut counts = Self {
            graphs: snapshot.named_graphs().len() as u64,
            ..Self::default()
        };
        for p in 0..snapshot.predicate_count() {
            let edges = snapshot.predicate_statistics(PredicateId(p));
            counts.default = counts.default.saturating_add(edges.edges);
            counts.named = counts.named.saturating_add(edges.named_edges);
        }
        counts
    }

    /// True if there are quads, but none in the default graph.
    #[must_use]
    pub fn only_named(&self) -> bool {
        self.default == 0 && self.named > 0
    }
}

/// Text for people, such as `all 144,426 quads are in 41 named graphs`.
impl fmt::Display for GraphCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let graphs = match self.graphs {
            1 => "1 named graph".to_owned(),
            n => format!("{} named graphs", grouped(n)),
        };
        match (self.default, self.named) {
            (0, 1) => write!(f, "the only quad is in a named graph"),
            (0, n) if n > 0 => write!(f, "all {} quads are in {graphs}", grouped(n)),
            (n, 0) => write!(f, "{} quads are in the default graph", grouped(n)),
            (n, named) => write!(
                f,
                "{} quads are in the default graph, {} in {graphs}",
                grouped(n),
                grouped(named)
            ),
        }
    }
}

impl Summary {
    /// The statistics of a snapshot. O(predicates + classes + characteristic sets).
    pub(crate) fn from_snapshot(snapshot: &Snapshot) -> Self {
        let base = snapshot.base();
        fetch_names(snapshot);
        let iri = |v: u32| {
            let mut bytes = Vec::new();
            match snapshot
                .term(VertexId(v), &mut bytes)
                .then(|| term::decode(&bytes))
            {
                Some(Some(Term::NamedNode(n))) => Some(n.into_string()),
                _ => None,
            }
        };
        let sorted = |mut list: Vec<(String, u64)>| {
            list.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            list
        };
        let predicates = || {
            (0..snapshot.predicate_count())
                .map(|p| snapshot.predicate_statistics(jindou_model::PredicateId(p)))
        };
        let add = |n: u64, m: u64| n.saturating_add(m);
        Self {
            triples: predicates().fold(0, |n, p| add(n, p.edges)),
            named_quads: predicates().fold(0, |n, p| add(n, p.named_edges)),
            graphs: snapshot.named_graphs().len() as u64,
            subjects: snapshot.subjects(),
            terms: u64::from(snapshot.terms()),
            predicates: sorted(
                predicates()
                    .map(|p| (p.vertex, add(p.edges, p.named_edges)))
                    .filter(|(_, n)| *n > 0)
                    .filter_map(|(v, n)| Some((iri(v)?, n)))
                    .collect(),
            ),
            classes: sorted(
                snapshot
                    .classes()
                    .into_iter()
                    .filter_map(|(c, n)| Some((iri(c)?, n)))
                    .collect(),
            ),
            union_default: base.union_default(),
            epoch: base.epoch(),
        }
    }
}

impl Database {
    /// Counts of the quads in the default graph and in named graphs. O(predicates).
    ///
    /// ```
    /// use jindou::{Database, UpdateOptions};
    ///
    /// let db = Database::in_memory();
    /// let text = "INSERT DATA { GRAPH <http://e/g> { <http://e/mars> a <http://e/Planet>, <http://e/Red> } }";
    /// db.update(text, &UpdateOptions::default())?;
    /// let counts = db.graph_counts();
    /// assert_eq!((counts.default, counts.named, counts.graphs), (0, 2, 1));
    /// assert_eq!(counts.to_string(), "all 2 quads are in 1 named graph");
    /// # Ok::<(), jindou::Error>(())
    /// ```
    #[must_use]
    pub fn graph_counts(&self) -> GraphCounts {
        GraphCounts::of(&self.snapshot())
    }

    /// True if queries with these options see the union of all graphs as their default graph.
    #[must_use]
    pub fn is_union_default(&self, options: &QueryOptions) -> bool {
        Self::union_default(&self.snapshot(), options)
    }
}

/// Fetches the names of the predicates and classes that other shards have, in one round trip.
fn fetch_names(snapshot: &Snapshot) {
    if let Some(sharded) = snapshot.as_sharded() {
        let predicates = (0..snapshot.predicate_count()).map(PredicateId);
        let classes = snapshot.classes().into_iter().map(|(class, _)| class);
        sharded.fetch_terms(predicates.map(|p| snapshot.vertex_of(p).0).chain(classes));
    }
}

/// Replaces the counts in a report on a store's files by those of a snapshot that includes the log's transactions.
pub(crate) fn add_log(snapshot: &Snapshot, report: &mut InfoReport) {
    fetch_names(snapshot);
    let term = |v: u32| {
        let mut bytes = Vec::new();
        snapshot.term(VertexId(v), &mut bytes);
        bytes
    };
    let mut known: HashMap<Vec<u8>, PredicateInfo> = std::mem::take(&mut report.predicates)
        .into_iter()
        .map(|p| (p.term.clone(), p))
        .collect();
    let mut named = 0u64;
    for p in 0..snapshot.predicate_count() {
        let s = snapshot.predicate_statistics(PredicateId(p));
        named = named.saturating_add(s.named_edges);
        let term = term(s.vertex);
        let mut info = known
            .remove(&term)
            .unwrap_or_else(|| PredicateInfo::new(term));
        info.edges = [s.edges, s.named_edges];
        info.ends = [s.subjects.into(), s.objects.into()];
        report.predicates.push(info);
    }
    report
        .predicates
        .sort_by_key(|p| std::cmp::Reverse(p.edges[0].saturating_add(p.edges[1])));
    let classes = snapshot.classes().into_iter();
    report.classes = classes.map(|(c, n)| (term(c), n)).collect();
    report
        .classes
        .sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    report.quads = snapshot.quads();
    report.named_quads = named;
    report.graphs = snapshot.named_graphs().len() as u64;
    report.terms = u64::from(snapshot.terms());
    report.free_ids = snapshot.tail().free_count().into();
    report.ids_left = u64::from(MAX_BASE_VERTICES).saturating_sub(report.terms);
    report.with_log = true;
}
