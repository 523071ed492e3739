//! Validity of a plan: which snapshots it can run on.

use crate::parameters::placeholder_of;
use jindou_graph::Graph;
use jindou_model::VertexId;
use jindou_syntax::algebra::Canonical;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::ops::Deref;

/// The snapshots that a plan is valid for. Ids stay the same within an epoch, so a plan outlives transactions until
/// they change the graph's *shape* ([`Identity::shape`](jindou_graph::Identity::shape)). A plan that relied on the
/// absence of a term, or on rows of the data, is valid for one version only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Validity {
    /// Id epoch of the base.
    pub epoch: u64,
    /// The shape that a snapshot must have; ignored if `version` is set.
    pub shape: u64,
    /// The only valid version, if the plan depends on data that any transaction may change.
    pub version: Option<u64>,
}

impl Validity {
    /// Validity for this version of the snapshot only.
    #[must_use]
    pub fn for_snapshot(snapshot: &dyn Graph) -> Self {
        let identity = snapshot.identity();
        Self {
            epoch: identity.epoch,
            shape: identity.shape,
            version: Some(identity.version),
        }
    }

    /// Returns true if the plan may run on the snapshot.
    #[must_use]
    pub fn holds(&self, snapshot: &dyn Graph) -> bool {
        let identity = snapshot.identity();
        self.epoch == identity.epoch
            && match self.version {
                Some(version) => version == identity.version,
                None => self.shape == identity.shape,
            }
    }
}

/// The snapshot that a query is planned for. Records whether the plan depends on data that any transaction may change.
pub(crate) struct WatchedSnapshot<'a> {
    snapshot: &'a dyn Graph,
    bound: Cell<bool>,
    /// Results of term lookups.
    found: RefCell<FxHashMap<Canonical, Option<VertexId>>>,
    /// True if placeholders of parameters are looked up as terms, with ids that no vertex has.
    parameters: bool,
}

impl<'a> WatchedSnapshot<'a> {
    pub fn new(snapshot: &'a dyn Graph) -> Self {
        Self {
            snapshot,
            bound: Cell::new(false),
            found: RefCell::default(),
            parameters: false,
        }
    }

    /// As [`Self::new`], for a query whose parameters are placeholders.
    pub fn with_parameters(snapshot: &'a dyn Graph) -> Self {
        Self {
            parameters: true,
            ..Self::new(snapshot)
        }
    }

    pub fn graph(&self) -> &'a dyn Graph {
        self.snapshot
    }

    /// Records that the plan depends on data that any transaction may change.
    pub fn bind(&self) {
        self.bound.set(true);
    }

    /// As [`Graph::lookup`]. If the term is absent, the plan depends on data, since any transaction may add the term.
    pub fn lookup(&self, canonical: &Canonical) -> Option<VertexId> {
        if self.parameters
            && let Some(id) = placeholder_of(canonical)
        {
            return Some(VertexId(id));
        }
        let found = *self
            .found
            .borrow_mut()
            .entry(canonical.clone())
            .or_insert_with(|| self.snapshot.lookup(canonical));
        if found.is_none() {
            self.bind();
        }
        found
    }

    pub fn validity(&self) -> Validity {
        let all = Validity::for_snapshot(self.snapshot);
        Validity {
            version: all.version.filter(|_| self.bound.get()),
            ..all
        }
    }
}

impl<'a> Deref for WatchedSnapshot<'a> {
    type Target = dyn Graph + 'a;

    fn deref(&self) -> &Self::Target {
        self.snapshot
    }
}
