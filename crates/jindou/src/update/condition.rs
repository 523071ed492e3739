//! Preconditions of updates: compare-and-swap of graphs.

use super::GraphName;
use super::graphs::{TargetGraphs, graph_exists};
use crate::database::Database;
use jindou_model::{Error, Result};
use jindou_store::Snapshot;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A precondition on the content of a graph. The test and the update are one atomic step. If the condition does not
/// hold, nothing is changed ([`Error::Precondition`]).
///
/// ```
/// use jindou::{Condition, Database, Error, GraphName, RevisionSet, UpdateOptions};
///
/// let db = Database::in_memory();
/// let graph = GraphName::Named("http://e/g".into());
/// let insert = "INSERT DATA { GRAPH <http://e/g> { <http://e/a> <http://e/b> 1 } }";
/// db.update(insert, &UpdateOptions::default())?;
/// let seen = db.revision(Some(&graph))?;
/// let unchanged = Condition::on(graph).with_matches(RevisionSet::OneOf(vec![seen]));
/// let options = UpdateOptions::default().with_condition(unchanged);
/// let another = "INSERT DATA { GRAPH <http://e/g> { <http://e/a> <http://e/b> 2 } }";
/// let report = db.update(another, &options)?;
/// assert_ne!(report.revision, Some(seen));
/// assert!(matches!(db.update(another, &options), Err(Error::Precondition(_))));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Condition {
    /// The graph; `None` means the whole store.
    pub graph: Option<GraphName>,
    /// If set, the graph's revision must be in this set.
    pub matches: Option<RevisionSet>,
    /// If set, the graph's revision must not be in this set.
    pub differs: Option<RevisionSet>,
}

/// A set of revisions of a graph.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum RevisionSet {
    /// Any content, if the graph exists. The default graph and the whole store always exist; a named graph exists if it
    /// has a quad.
    Any,
    /// The revisions with these numbers ([`Database::revision`]).
    OneOf(Vec<u64>),
}

impl RevisionSet {
    /// True if the graph exists and `revision` is in this set. `None` stands for a graph that does not exist.
    #[must_use]
    pub fn has(&self, revision: Option<u64>) -> bool {
        match (self, revision) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::OneOf(all), Some(revision)) => all.contains(&revision),
        }
    }
}

impl Condition {
    /// A condition on a graph that always holds. It makes the update report the graph's revision
    /// ([`UpdateReport::revision`](crate::UpdateReport::revision)).
    #[must_use]
    pub fn on(graph: impl Into<Option<GraphName>>) -> Self {
        Self {
            graph: graph.into(),
            ..Self::default()
        }
    }

    jindou_model::setters! {
        with_matches: matches = impl Into<Option<RevisionSet>>;
        with_differs: differs = impl Into<Option<RevisionSet>>;
    }

    /// True if the condition always holds.
    #[must_use]
    pub fn is_always(&self) -> bool {
        self.matches.is_none() && self.differs.is_none()
    }

    /// # Errors
    /// [`Error::Precondition`] if the condition does not hold for a snapshot.
    pub(crate) fn check(&self, snapshot: &Snapshot) -> Result<()> {
        if self.is_always() {
            return Ok(());
        }
        let now = revision_if_exists(snapshot, self.graph.as_ref())?;
        let failed = |why: &str| {
            let what = match &self.graph {
                None => "the store".to_owned(),
                Some(GraphName::Default) => "the default graph".to_owned(),
                Some(GraphName::Named(iri)) => format!("the graph <{iri}>"),
            };
            Err(Error::Precondition(format!(
                "{what} {why}; nothing was changed"
            )))
        };
        match (&self.matches, &self.differs) {
            (Some(set), _) if !set.has(now) => failed(match now.is_some() {
                true => {
                    "has changed since the content that the request expects: read it again, and send the request with its new ETag"
                }
                false => "does not exist, and the request expects it to",
            }),
            (_, Some(set)) if set.has(now) => failed(match set {
                RevisionSet::Any => "exists already",
                RevisionSet::OneOf(_) => "has the content that the request excludes",
            }),
            _ => Ok(()),
        }
    }
}

/// The revision of a graph, or of the whole store, in a snapshot; `None` if the graph does not exist there. At worst
/// O(subjects of the graph).
///
/// # Errors
/// As [`revision`].
pub(super) fn revision_if_exists(
    snapshot: &Snapshot,
    graph: Option<&GraphName>,
) -> Result<Option<u64>> {
    let exists = match graph.map(GraphName::target).transpose()? {
        None | Some(TargetGraphs::Default) => true,
        Some(named) => graph_exists(snapshot, &named),
    };
    match exists {
        true => revision(snapshot, graph).map(Some),
        false => Ok(None),
    }
}

/// The revision of a graph, or of the whole store, in a snapshot.
///
/// # Errors
/// [`Error::Query`] for a name that is not an IRI.
pub(crate) fn revision(snapshot: &Snapshot, graph: Option<&GraphName>) -> Result<u64> {
    Ok(match graph.map(GraphName::target).transpose()? {
        Some(TargetGraphs::Named(name)) => {
            xxh3_64_with_seed(&name, snapshot.graph_revision(Some(&name)))
        }
        Some(_) => xxh3_64_with_seed(b"default", snapshot.graph_revision(None)),
        None => xxh3_64_with_seed(b"all", snapshot.revision()),
    })
}

impl Database {
    /// The revision: a number for the present content of a graph, or of the whole store. Equal numbers mean equal
    /// quads: in this store, in copies of it, and after any restart, merge or restore. Any change results in another
    /// number. Changes of other graphs do not affect it. O(log changed graphs).
    ///
    /// # Errors
    /// [`Error::Query`] for a name that is not an IRI.
    pub fn revision(&self, graph: Option<&GraphName>) -> Result<u64> {
        revision(&self.snapshot(), graph)
    }

    /// Like [`Self::revision`], for a snapshot.
    ///
    /// # Errors
    /// As [`Self::revision`].
    #[doc(hidden)]
    pub fn revision_in(snapshot: &Snapshot, graph: Option<&GraphName>) -> Result<u64> {
        revision(snapshot, graph)
    }
}
