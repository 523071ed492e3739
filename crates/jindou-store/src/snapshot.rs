//! The data that a query reads: an immutable base, and the patches over it as of one snapshot number.

mod classes;
mod graphs;
mod shards;

use crate::base::Base;
use crate::delta::OpenMerge;
use crate::requests::Requests;
use crate::revisions::Revisions;
use jindou_graph::delta::{BaseSets, CowVec, TailTerms, VertexDelta};
use jindou_graph::segment::{EdgeView, Patch};
use jindou_graph::shard::Sharded;
use jindou_graph::statistics::{PredicateStatistics, Statistics};
use jindou_graph::{Edges, ObjectTerms, Predicates, Vocabulary};
use jindou_model::prefixes::PrefixTable;
use jindou_model::{
    CancelToken, Direction, FIRST_QUERY_ID, FIRST_TAIL_ID, NO_VERTEX, PredicateId, Result,
    VertexId, Watch, invariant,
};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// The subjects of one predicate in one named graph, from the graph's index vertex.
#[derive(Clone, Copy, Debug)]
pub struct GraphPart<'a> {
    /// Dense predicate id.
    pub predicate: u32,
    /// The subjects that have an edge of this predicate in the graph, ascending, each once.
    pub subjects: &'a [u32],
}

/// One consistent state of the graph. Cheap to clone; keeps its base and patches in memory. [`Snapshot::apply`] creates
/// the next one, which shares all unchanged data.
#[derive(Clone)]
pub struct Snapshot {
    base: Arc<Base>,
    number: u64,
    /// Number of the newest group of a shared log that the snapshot contains; 0 without a shared log.
    group: u64,
    version: u64,
    shape: u64,
    delta: Arc<Delta>,
    /// Access to the other shards, if the base is one of several.
    sharded: Option<Sharded>,
    /// Ids of the named graphs that have a quad; computed when they are first requested, and shared by all copies.
    named_graphs: Arc<OnceLock<Arc<[u32]>>>,
    prefixes: Arc<PrefixTable>,
    new_ids: u32,
}

/// Number of ids that exist for terms added by updates.
const NEW_IDS: u32 = FIRST_QUERY_ID - FIRST_TAIL_ID;

/// All changes that updates made over the base. Cloning is O(1).
#[derive(Clone, Default)]
pub(crate) struct Delta {
    /// Patches, by direction and by dense predicate id.
    pub patches: [CowVec<Option<Arc<Patch>>>; 2],
    pub touched: VertexDelta,
    pub tail: TailTerms,
    /// Terms of the predicates added by updates; their dense ids follow the base's.
    pub predicates: Arc<Vec<u32>>,
    pub predicate_of: Arc<FxHashMap<u32, u32>>,
    pub added: u64,
    pub removed: u64,
    pub revisions: Revisions,
    pub requests: Requests,
    pub open_merge: Option<OpenMerge>,
}

impl Snapshot {
    /// The snapshot that a base contains, without patches.
    #[must_use]
    pub fn of_base(base: Arc<Base>) -> Self {
        let delta = Delta {
            touched: base.merged.touched.clone(),
            tail: base.merged.tail.clone(),
            revisions: base.revisions(),
            requests: base.merged.requests.clone(),
            open_merge: base.merged.open_merge,
            ..Delta::default()
        };
        Self {
            number: base.number(),
            group: 0,
            prefixes: Arc::clone(&base.prefixes),
            base,
            version: 0,
            shape: 0,
            delta: Arc::new(delta),
            sharded: None,
            named_graphs: Arc::default(),
            new_ids: NEW_IDS,
        }
    }

    /// Limit of the number of ids for terms that updates add.
    #[must_use]
    pub fn new_ids(&self) -> u32 {
        self.new_ids
    }

    /// The same snapshot with a lower limit of [`Self::new_ids`], for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_new_ids(mut self, new_ids: u32) -> Self {
        self.new_ids = new_ids.min(NEW_IDS);
        self
    }

    /// The same snapshot for another query, so that a failure to read other shards in one query does not affect the
    /// next. For an unsharded store, the snapshot itself.
    #[inline]
    #[must_use]
    pub fn for_new_query(&self) -> Cow<'_, Self> {
        match &self.sharded {
            None => Cow::Borrowed(self),
            Some(sharded) => Cow::Owned(Self {
                sharded: Some(sharded.for_new_query()),
                ..self.clone()
            }),
        }
    }

    /// Sets the cancel token that requests to other shards observe, which limits how long they wait. The snapshot must
    /// not be used by another query ([`Self::for_new_query`]).
    #[inline]
    pub fn begin(&self, cancel: &CancelToken) {
        if let Some(sharded) = &self.sharded {
            sharded.others().begin(cancel);
        }
    }

    /// Ok if all requests to other shards so far were answered. Must be called before data that was read is used. Costs
    /// one atomic load.
    ///
    /// # Errors
    /// [`Error::Shard`](jindou_model::Error::Shard) with the first shard that did not answer.
    #[inline]
    pub fn check_shards(&self) -> Result<()> {
        self.sharded.as_ref().map_or(Ok(()), Sharded::check)
    }

    /// Checks both [`Base::check_files`] and [`Self::check_shards`].
    ///
    /// # Errors
    /// The errors of both.
    #[inline]
    pub fn check_files(&self) -> Result<()> {
        self.check_shards()?;
        self.base.check_files()
    }

    /// True if [`Self::check_files`] would succeed.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.check_shards().is_ok() && self.base.are_files_whole()
    }

    /// The watch that ends a query when a file or a shard that it reads has failed.
    #[must_use]
    pub fn watch(&self) -> Arc<dyn Watch> {
        match &self.sharded {
            Some(sharded) => Arc::clone(sharded.others()) as Arc<dyn Watch>,
            None => Arc::clone(&self.base) as Arc<dyn Watch>,
        }
    }

    /// Access to the other shards, if the base is one of several.
    #[inline]
    #[must_use]
    pub fn as_sharded(&self) -> Option<&Sharded> {
        self.sharded.as_ref()
    }

    /// The base under this snapshot.
    #[must_use]
    pub fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// The snapshot number; that of the base alone is [`Base::number`].
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Number of the newest group of a shared log that the snapshot contains; 0 for a store without such a log.
    #[must_use]
    pub fn group(&self) -> u64 {
        self.group
    }

    /// The same snapshot with another [`Self::group`].
    #[must_use]
    pub fn at_group(mut self, group: u64) -> Self {
        self.group = group;
        self
    }

    /// The prefixes of the store.
    #[inline]
    #[must_use]
    pub fn prefixes(&self) -> &Arc<PrefixTable> {
        &self.prefixes
    }

    /// A number that identifies this content of the base. Snapshots that were never published may have the same number
    /// as others, but not the same version. For caches of data that was read.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A number that increases when queries should be planned again: when a predicate is changed for the first time,
    /// when a predicate, a graph or a vertex's set of predicates is new, or when counts change much. Two snapshots of a
    /// base with the same shape are one a successor of the other.
    #[must_use]
    pub fn shape(&self) -> u64 {
        self.shape
    }

    /// True if there are any edits over the base.
    #[must_use]
    pub fn is_patched(&self) -> bool {
        self.delta.patches.iter().any(|p| !p.is_empty())
    }

    /// True if nothing has changed since the load, so that characteristic sets are exact.
    #[must_use]
    pub fn is_as_loaded(&self) -> bool {
        !self.is_patched() && self.base.merged() == 0
    }

    /// Number of predicates.
    #[must_use]
    pub fn predicate_count(&self) -> u32 {
        (self.base.statistics.predicates.len() + self.delta.predicates.len()) as u32
    }

    /// The dense id of a predicate's term.
    #[must_use]
    pub fn predicate_of(&self, v: VertexId) -> Option<PredicateId> {
        self.predicates().of_term(v)
    }

    /// The id of a predicate's term; vertex 0 for an unknown predicate.
    #[must_use]
    pub fn vertex_of(&self, p: PredicateId) -> VertexId {
        let known = &self.base.statistics.predicates;
        let at = p.0 as usize;
        VertexId(match known.get(at) {
            Some(s) => s.vertex,
            None => {
                let new = self.delta.predicates.get(at.wrapping_sub(known.len()));
                new.copied().unwrap_or(0)
            }
        })
    }

    /// The edges of a predicate in one direction.
    #[must_use]
    pub fn edges(&self, p: PredicateId, direction: Direction) -> Edges<'_> {
        match &self.sharded {
            None => {
                self.base.segment_use.count(p.0, direction as usize);
                Edges::Here(self.local_edges(p, direction))
            }
            Some(sharded) => {
                Edges::Sharded(self.shard_edges(sharded, p, direction, self.patch(p.0, direction)))
            }
        }
    }

    /// As [`Self::edges`], for an unsharded store, without dispatch on shards.
    #[inline]
    pub(crate) fn local_edges(&self, p: PredicateId, direction: Direction) -> EdgeView<'_> {
        invariant!(
            self.sharded.is_none(),
            "segments of a shard are read by its own keys"
        );
        // Patch and segment are passed separately: a pair would be copied once more for every step of every query.
        let d = direction as usize;
        let default = self.base.default_segment(p.0, d);
        let named = self.base.named_segment(p.0, d);
        EdgeView::new(default, named, self.patch(p.0, direction).map(|p| &**p))
    }

    /// As [`Self::edges`], without the changes since the last merge.
    fn edges_of_base(&self, p: PredicateId, direction: Direction) -> Edges<'_> {
        match &self.sharded {
            None => {
                let (default, named) = self.base.segments(p.0, direction);
                Edges::Here(EdgeView::new(default, named, None))
            }
            Some(sharded) => Edges::Sharded(self.shard_edges(sharded, p, direction, None)),
        }
    }

    pub(crate) fn patch(&self, p: u32, direction: Direction) -> Option<&Arc<Patch>> {
        let patches = &self.delta.patches[direction as usize];
        patches.get(p as usize).and_then(Option::as_ref)
    }

    /// The statistics of the base. [`Self::predicate_statistics`], [`Self::quads`] and [`Self::vertices`] give counts
    /// that include patches.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.base.statistics
    }

    /// Counts of one predicate, including its patch. The number of edges is exact. The number of keys is the base's
    /// plus new ones; keys that lost all edges are not subtracted. The lengths of the longest lists are upper bounds.
    /// O(1).
    #[must_use]
    pub fn predicate_statistics(&self, p: PredicateId) -> PredicateStatistics {
        let base = self.base.statistics.predicates.get(p.0 as usize);
        let mut s = base.copied().unwrap_or_default();
        let Some(out) = self.patch(p.0, Direction::Out) else {
            return s;
        };
        s.vertex = self.vertex_of(p).0;
        let (added, removed) = out.default_counts();
        let (named_added, named_removed) = out.named_counts();
        s.edges = (s.edges + added).saturating_sub(removed);
        s.named_edges = (s.named_edges + named_added).saturating_sub(named_removed);
        s.subjects = s.subjects.saturating_add(out.more_keys());
        let into = self.patch(p.0, Direction::In).map_or(0, |p| p.more_keys());
        s.objects = s.objects.saturating_add(into);
        let more = u32::try_from(added + named_added).unwrap_or(u32::MAX);
        s.max_out = s.max_out.saturating_add(more);
        s.max_in = s.max_in.saturating_add(more);
        s
    }

    /// Number of quads, including patches. O(1).
    #[must_use]
    pub fn quads(&self) -> u64 {
        (self.base.statistics.quads + self.delta.added).saturating_sub(self.delta.removed)
    }

    /// Number of ids that were assigned to terms; some may be free again. O(1).
    #[must_use]
    pub fn vertices(&self) -> u32 {
        self.base.vertices() + self.delta.tail.len()
    }

    /// Number of terms that have an id. O(1).
    #[must_use]
    pub fn terms(&self) -> u32 {
        self.vertices() - self.delta.tail.free_count()
    }

    /// True if a term has the id. O(1).
    #[must_use]
    pub fn is_known(&self, v: u32) -> bool {
        match v >= FIRST_TAIL_ID {
            true => self.delta.tail.is_assigned(VertexId(v)),
            false => v != NO_VERTEX && v <= self.base.vertices(),
        }
    }

    /// Number of subjects in all graphs. Subjects of the base that lost all of their edges since the last merge are
    /// still counted. O(sets), plus the vertices to which edits since then gave predicates.
    #[must_use]
    pub fn subjects(&self) -> u64 {
        let sets = self.base.statistics.sets.iter();
        let known = sets.fold(0u64, |n, set| n.saturating_add(set.subjects));
        let merged = &self.base.merged;
        let fresh = FIRST_TAIL_ID.saturating_add(merged.tail.len());
        let (mut last, mut more) = (None, 0u64);
        let then = merged.touched.more(Direction::Out);
        let now = self.delta.touched.more(Direction::Out);
        now.for_each_beyond(then, |pair| {
            let v = (pair >> 32) as u32;
            if last != Some(v) {
                last = Some(v);
                let had = || {
                    let sets = self.sets_of_base();
                    let list = merged.touched.predicates_of(sets, v, Direction::Out);
                    !list.is_empty()
                };
                more += u64::from(v >= fresh || !had());
            }
        });
        known.saturating_add(more).min(self.quads())
    }

    pub(crate) fn sets_of_base(&self) -> BaseSets<'_> {
        BaseSets {
            sets: self.base.index.sets(),
            vertices: self.base.vertices(),
        }
    }

    pub(crate) fn touched(&self) -> &VertexDelta {
        &self.delta.touched
    }

    /// As [`Predicates::of_vertex`].
    #[must_use]
    pub fn predicates_of(&self, v: u32, direction: Direction) -> Cow<'_, [u32]> {
        self.predicates().of_vertex(v, direction)
    }

    /// True if a predicate has edits over the base.
    #[must_use]
    pub fn is_predicate_patched(&self, p: PredicateId) -> bool {
        self.patch(p.0, Direction::Out)
            .is_some_and(|p| !p.is_empty())
    }

    /// Kind of terms that includes every object of the predicate, in all graphs; `Any` for a predicate with edits.
    /// O(objects) the first time, O(1) later.
    #[must_use]
    pub fn object_terms(&self, p: PredicateId) -> ObjectTerms {
        if self.is_predicate_patched(p) {
            return ObjectTerms::Any;
        }
        if let Some(sharded) = &self.sharded {
            return sharded.others().object_terms(p);
        }
        self.base.object_terms(p)
    }

    /// The predicates: dense ids by term, and sets of predicates by vertex.
    #[must_use]
    pub fn predicates(&self) -> Predicates<'_> {
        let base = self.sets_of_base();
        Predicates::new(&self.base.predicate_of, base.sets, base.vertices)
            .with_edits(&self.delta.predicate_of, &self.delta.touched)
    }

    /// The terms: ids, canonical bytes and values.
    #[must_use]
    pub fn vocabulary(&self) -> Vocabulary<'_> {
        if let Some(sharded) = &self.sharded {
            return Vocabulary::other_with(&**sharded.others(), &self.delta.tail);
        }
        Vocabulary::stored(&self.base.dictionary, &self.base.indexes, &self.delta.tail)
    }

    /// The instances of a class in the **base** (default and named graphs merged) as intervals, if they are few. Exact for
    /// vertices that no edit of `rdf:type` touches; those must be looked up in the segment.
    #[must_use]
    pub fn class_intervals(&self, class: VertexId) -> Option<&[[u32; 2]]> {
        self.base.class_intervals(class.0)
    }

    /// The id of a term, given its canonical bytes.
    #[must_use]
    pub fn lookup(&self, canonical: &[u8]) -> Option<VertexId> {
        self.vocabulary().lookup(canonical)
    }

    /// Appends the canonical bytes of a base or tail term; false for an unknown id.
    pub fn term(&self, v: VertexId, out: &mut Vec<u8>) -> bool {
        self.vocabulary().term(v, out)
    }

    /// The terms that updates added after the load. In a sharded store, the text of merged terms of other shards is
    /// elsewhere.
    #[must_use]
    pub fn tail(&self) -> &TailTerms {
        &self.delta.tail
    }

    /// Number of edits over the base: quads that were added to it, and quads of it that were removed.
    #[must_use]
    pub fn edit_count(&self) -> u64 {
        let patches = self.delta.patches[Direction::Out as usize].iter();
        patches.flatten().map(|p| p.len() as u64).sum()
    }

    /// Bytes on the heap of all data over the base, including parts shared with other snapshots. O(edits / 100).
    #[must_use]
    pub fn delta_bytes(&self) -> usize {
        self.patch_bytes()
            + self.delta.touched.bytes()
            + self.delta.tail.bytes()
            + self.delta.revisions.bytes()
            + self.delta.requests.bytes()
            + self.delta.predicates.len() * 24
    }

    /// As [`Self::delta_bytes`], but only for data added since the last merge: edits and new terms. Predicates that
    /// vertices gained beyond their characteristic sets are not counted, since a merge does not free them.
    #[must_use]
    pub fn unmerged_bytes(&self) -> usize {
        let merged = self.base.merged.tail.bytes();
        self.patch_bytes() + self.delta.tail.bytes().saturating_sub(merged)
    }

    fn patch_bytes(&self) -> usize {
        let patches = self.delta.patches.iter().flat_map(CowVec::iter).flatten();
        patches.map(|p| p.bytes() + 200).sum()
    }

    pub(crate) fn delta(&self) -> &Delta {
        &self.delta
    }

    /// A copy with this number, to which a transaction is applied; [`Self::finish`] completes it.
    pub(crate) fn successor(&self, number: u64) -> Self {
        Self {
            number,
            delta: Arc::new((*self.delta).clone()),
            ..self.clone()
        }
    }

    fn delta_mut(&mut self) -> &mut Delta {
        match Arc::get_mut(&mut self.named_graphs) {
            Some(own) => drop(own.take()),
            None => self.named_graphs = Arc::default(),
        }
        Arc::make_mut(&mut self.delta)
    }

    pub(crate) fn tail_mut(&mut self) -> &mut TailTerms {
        &mut self.delta_mut().tail
    }

    pub(crate) fn touched_mut(&mut self) -> &mut VertexDelta {
        &mut self.delta_mut().touched
    }

    pub(crate) fn revisions_mut(&mut self) -> &mut Revisions {
        &mut self.delta_mut().revisions
    }

    pub(crate) fn requests_mut(&mut self) -> &mut Requests {
        &mut self.delta_mut().requests
    }

    pub(crate) fn set_open_merge(&mut self, open: Option<OpenMerge>) {
        self.delta_mut().open_merge = open;
    }

    pub(crate) fn set_patch(&mut self, direction: usize, p: u32, patch: Arc<Patch>) {
        self.delta_mut().patches[direction].set(p as usize, Some(patch));
    }

    /// Assigns the next dense predicate id to a term.
    pub(crate) fn add_predicate(&mut self, vertex: u32) {
        let next = self.predicate_count();
        let delta = self.delta_mut();
        Arc::make_mut(&mut delta.predicates).push(vertex);
        Arc::make_mut(&mut delta.predicate_of).insert(vertex, next);
    }

    pub(crate) fn set_prefixes(&mut self, prefixes: PrefixTable) {
        self.prefixes = Arc::new(prefixes);
    }

    /// Updates the counts of quads, and assigns a version. If `moved`, also a new shape, so that cached plans become
    /// invalid.
    pub(crate) fn finish(&mut self, added: u64, removed: u64, moved: bool) {
        let delta = self.delta_mut();
        delta.added += added;
        delta.removed += removed;
        self.version = self.base.next_version();
        if moved {
            self.shape = self.version;
        }
    }
}
