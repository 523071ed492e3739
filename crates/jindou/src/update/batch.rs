//! Batches of changes that a program makes from terms.

use super::operations::Encoded;
use jindou_model::{QuadBatch, term};
use jindou_store::Changes;
use oxrdf::{GraphNameRef, QuadRef, Term};

/// Insertions and removals of quads, in order. Of two changes to the same quad the later one wins. [`Database::apply`]
/// executes a batch as one transaction.
///
/// Labels of blank nodes refer to the store's own blank nodes: the same label is the same node in every batch.
///
/// ```
/// use jindou::oxrdf::{GraphName, NamedNode, Quad};
/// use jindou::{Batch, Database, UpdateOptions};
///
/// let db = Database::in_memory();
/// let iri = |s: &str| NamedNode::new_unchecked(s);
/// let mut batch = Batch::new();
/// batch.insert(Quad::new(iri("http://e/a"), iri("http://e/p"), iri("http://e/b"), GraphName::DefaultGraph).as_ref());
/// assert_eq!(db.apply(&batch, &UpdateOptions::default())?.added, 1);
/// # Ok::<(), jindou::Error>(())
/// ```
///
/// [`Database::apply`]: crate::Database::apply
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(super) changes: Changes,
    quad: Encoded,
}

impl Batch {
    /// A batch without changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the insertion of a quad.
    pub fn insert(&mut self, quad: QuadRef<'_>) {
        self.push(quad, true);
    }

    /// Adds the removal of a quad.
    pub fn remove(&mut self, quad: QuadRef<'_>) {
        self.push(quad, false);
    }

    fn push(&mut self, quad: QuadRef<'_>, insert: bool) {
        let graph = match quad.graph_name {
            GraphNameRef::DefaultGraph => None,
            GraphNameRef::NamedNode(n) => Some(Term::from(n.into_owned())),
            GraphNameRef::BlankNode(b) => Some(b.into_owned().into()),
        };
        let terms = [
            Some(quad.subject.into_owned().into()),
            Some(quad.predicate.into_owned().into()),
            Some(quad.object.into_owned()),
            graph,
        ];
        let Encoded { bytes, ends } = &mut self.quad;
        bytes.clear();
        for (end, t) in ends.iter_mut().zip(&terms) {
            if let Some(t) = t {
                term::push_term(t, bytes);
            }
            *end = bytes.len();
        }
        let ([s, p, o], graph) = self.quad.terms();
        if insert {
            self.changes.insert(s, p, o, graph);
        } else {
            self.changes.remove(s, p, o, graph);
        }
    }

    /// Adds an insertion for each quad of a parsed batch.
    pub fn insert_all(&mut self, quads: &QuadBatch) {
        super::documents::push_all(&mut self.changes, quads);
    }

    /// Number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Heap memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.changes.bytes() + self.quad.bytes.capacity()
    }
}
