//! Conditions under which an update is made: compare-and-swap of graphs.

use super::GraphName;
use super::graphs::{TargetGraphs, is_there};
use crate::database::Database;
use jindou_model::{Error, Result};
use jindou_store::Snapshot;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A condition on the content of a graph. It is tested in the same step as the update that it belongs to is made, so
/// that no other update comes in between; one that does not hold changes nothing ([`Error::Precondition`]).
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
    /// The graph; `None` for the whole store.
    pub graph: Option<GraphName>,
    /// The graph's content must be one of these.
    pub matches: Option<RevisionSet>,
    /// The graph's content must not be one of these.
    pub differs: Option<RevisionSet>,
}

/// Contents of a graph.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum RevisionSet {
    /// Any content, if the graph exists. The default graph and the store as a whole always exist; a named graph does if it
    /// has a quad.
    Any,
    /// The contents with these numbers ([`Database::revision`]).
    OneOf(Vec<u64>),
}

impl RevisionSet {
    /// True if the graph exists, with one of these contents. `None` stands for a graph that does not exist.
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
    /// A condition on a graph that always holds; with it [`UpdateReport::revision`](crate::UpdateReport::revision) is known.
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

    /// True if it always holds.
    #[must_use]
    pub fn is_always(&self) -> bool {
        self.matches.is_none() && self.differs.is_none()
    }

    /// # Errors
    /// [`Error::Precondition`] if it does not hold for a snapshot.
    pub(crate) fn check(&self, snapshot: &Snapshot) -> Result<()> {
        if self.is_always() {
            return Ok(());
        }
        let now = present(snapshot, self.graph.as_ref())?;
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

/// The number of the content of a graph that exists in a snapshot, or of the store's. O(the graph's subjects) at worst.
///
/// # Errors
/// As [`revision`].
pub(super) fn present(snapshot: &Snapshot, graph: Option<&GraphName>) -> Result<Option<u64>> {
    let exists = match graph.map(GraphName::target).transpose()? {
        None | Some(TargetGraphs::Default) => true,
        Some(named) => is_there(snapshot, &named),
    };
    match exists {
        true => revision(snapshot, graph).map(Some),
        false => Ok(None),
    }
}

/// The number of a graph's content in a snapshot, or of the store's.
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
    /// A number for the present content of a graph, or of the whole store. The same number means the same quads, in
    /// this store, in its copies, and after any restart, merge or restore; any change results in another number.
    /// Changes of other graphs do not affect it. O(log changed graphs).
    ///
    /// # Errors
    /// [`Error::Query`] for a name that is not an IRI.
    pub fn revision(&self, graph: Option<&GraphName>) -> Result<u64> {
        revision(&self.snapshot(), graph)
    }

    /// [`Self::revision`] of a snapshot.
    ///
    /// # Errors
    /// As [`Self::revision`].
    #[doc(hidden)]
    pub fn revision_in(snapshot: &Snapshot, graph: Option<&GraphName>) -> Result<u64> {
        revision(snapshot, graph)
    }
}
