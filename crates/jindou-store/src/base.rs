//! The base: the immutable files of a load, and those that merges have written since.

use crate::delta::OpenMerge;
use crate::directory::{IndexParts, Manifest, SegmentFile};
use crate::requests::Requests;
use crate::revisions::Revisions;
use crate::shard::ShardInfo;
use crate::warm::SegmentUse;
use jindou_dictionary::Dictionary;
use jindou_dictionary::index::OpenIndexes;
use jindou_graph::ObjectTerms;
use jindou_graph::delta::{TailTerms, VertexDelta};
use jindou_graph::kinds::TermKinds;
use jindou_graph::segment::{NamedSegment, Segment};
use jindou_graph::shard::LocalKey;
use jindou_graph::statistics::Statistics;
use jindou_model::prefixes::PrefixTable;
use jindou_model::sync;
use jindou_model::{Direction, PredicateId, Result, VertexId, Watch, term};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The four segment files that a load or one merge wrote together.
#[derive(Debug)]
pub(crate) struct SegmentSet {
    /// 0 for the files of a load. Merges count from 1, and the number is unique within an id epoch.
    pub generation: u32,
    /// Indexed by `[named][direction]`.
    pub files: [[SegmentFile; 2]; 2],
    /// The intervals of the classes, if the set has segments of `rdf:type`.
    pub classes: Option<IndexParts>,
}

/// Data of merged changes that is stored outside the segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct MergedData {
    /// Number of the last snapshot that is in the segments.
    pub number: u64,
    pub tail: TailTerms,
    pub touched: VertexDelta,
    /// The prefixes as of that snapshot; `None` in files of versions that did not know prefixes.
    pub prefixes: Option<Arc<PrefixTable>>,
    /// The revisions as of that snapshot; `None` in files of versions that did not know revisions.
    pub revisions: Option<Revisions>,
    pub requests: Requests,
    /// The merge that was started and not committed as of that snapshot: the one that made this base, if several
    /// servers share the log.
    pub open_merge: Option<OpenMerge>,
}

/// The immutable part of a store: the output of a bulk load, and of merges since. Shared by all snapshots until the
/// next merge.
pub struct Base {
    pub(crate) epoch: u64,
    pub(crate) union_default: bool,
    pub(crate) dictionary: Arc<Dictionary>,
    /// Indexes of the dictionary's terms.
    pub(crate) indexes: Arc<OpenIndexes>,
    /// The segments of the load, then those of each generation, oldest first.
    pub(crate) sets: Vec<Arc<SegmentSet>>,
    /// For each predicate, by dense id, the index in `sets` of the set that contains its segments. Predicates beyond
    /// the end are in the load's set.
    pub(crate) place: Vec<u8>,
    pub(crate) statistics: Statistics,
    /// Dense predicate id by vertex id.
    pub(crate) predicate_of: FxHashMap<u32, u32>,
    pub(crate) index: Arc<IndexParts>,
    pub(crate) merged: MergedData,
    /// The prefixes as of the last snapshot that the base contains.
    pub(crate) prefixes: Arc<PrefixTable>,
    pub(crate) manifest: Manifest,
    /// Source of the versions of snapshots, shared with the bases that merges make of this one.
    pub(crate) versions: Arc<AtomicU64>,
    /// Counts of requests for each segment, shared with the bases that merges make of this one.
    pub(crate) segment_use: Arc<SegmentUse>,
    /// Cached answers of [`Self::object_terms`], by dense predicate id.
    pub(crate) objects: Mutex<FxHashMap<u32, ObjectTerms>>,
    /// Cached answer of [`Self::term_kinds`].
    pub(crate) kinds: OnceLock<TermKinds>,
    /// Data about the other shards; `None` for an unsharded store.
    pub(crate) shard: Option<Box<ShardInfo>>,
}

jindou_model::debug_format!(
    Base,
    |this| "Base {{ epoch: {:?}, merged: {:?}, .. }}",
    this.epoch,
    this.merged.number
);

impl Watch for Base {
    /// As [`Base::check_for_faults`].
    fn check(&self) -> Result<()> {
        self.check_for_faults()
    }
}

/// Number of keys between two checks whether the result is already `Any`.
const CHUNK: u32 = 4096;

impl Base {
    /// Kind of terms that includes all objects of the predicate in all graphs; `Any` as well if an update has added one
    /// of them, merged or not. The result is cached. Otherwise O(objects) unless it is `Any`, which mostly takes O(1).
    pub fn object_terms(&self, p: PredicateId) -> ObjectTerms {
        let p = p.0;
        let known = || sync::lock(&self.objects);
        if let Some(&known) = known().get(&p) {
            return known;
        }
        let default = self.default_segment(p, 1);
        let named = self.named_segment(p, 1);
        let found = self
            .terms_of(default.key_count, |a, b, out| default.keys_into(a, b, out))
            .min(self.terms_of(named.key_count, |a, b, out| named.keys_into(a, b, out)));
        known().insert(p, found);
        found
    }

    /// The kinds of the load's terms. `None` for shards, and if there are too many kinds or the query has ended.
    pub(crate) fn term_kinds(&self) -> Option<&TermKinds> {
        if self.shard.is_some() {
            return None;
        }
        if let Some(known) = self.kinds.get() {
            return Some(known);
        }
        let (rdf_type, end) = (self.statistics.rdf_type, self.statistics.vertices + 1);
        let found = TermKinds::of_load(&self.dictionary, self.index.sets(), rdf_type, end)?;
        Some(self.kinds.get_or_init(|| found))
    }

    fn terms_of(&self, count: u32, keys: impl Fn(u32, u32, &mut Vec<u32>)) -> ObjectTerms {
        let mut some = Vec::new();
        let mut all = ObjectTerms::Resources;
        for from in (0..count).step_by(CHUNK as usize) {
            some.clear();
            keys(from, from.saturating_add(CHUNK).min(count), &mut some);
            for &v in &some {
                let v = match &self.shard {
                    Some(shard) => {
                        let id = shard.blocks.global(shard.number, LocalKey(v));
                        shard.term_number(id).unwrap_or(0)
                    }
                    None => v,
                };
                all = all.min(match self.dictionary.tag(VertexId(v)) {
                    Some(term::IRI | term::BLANK) => ObjectTerms::Resources,
                    Some(term::STRING | term::LANG) => ObjectTerms::Texts,
                    _ => return ObjectTerms::Any,
                });
            }
        }
        all
    }

    /// For each predicate, the newest set that has its segments, as an index.
    pub(crate) fn places(sets: &[Arc<SegmentSet>], predicates: usize) -> Vec<u8> {
        if sets.len() < 2 {
            return Vec::new();
        }
        let mut place = vec![0; predicates];
        for (at, set) in (0u8..).zip(sets).skip(1) {
            for &p in set.files[0][0].held() {
                if let Some(slot) = place.get_mut(p as usize) {
                    *slot = at;
                }
            }
        }
        place
    }

    #[inline]
    pub(crate) fn set_of(&self, p: u32) -> &SegmentSet {
        // `sets` is never empty: the load's set always exists.
        &self.sets[self.segment_file_of(PredicateId(p))]
    }

    #[inline]
    pub(crate) fn default_segment(&self, p: u32, direction: usize) -> Segment<'_> {
        self.set_of(p).files[0][direction].segment(p)
    }

    #[inline]
    pub(crate) fn named_segment(&self, p: u32, direction: usize) -> NamedSegment<'_> {
        self.set_of(p).files[1][direction].named(p)
    }

    /// The segments of a predicate in one direction, of the default graph and of named graphs.
    #[inline]
    pub(crate) fn segments(&self, p: u32, direction: Direction) -> (Segment<'_>, NamedSegment<'_>) {
        let d = direction as usize;
        (self.default_segment(p, d), self.named_segment(p, d))
    }

    /// The key of a vertex in the segments; `None` if another shard owns the vertex.
    pub(crate) fn key_of(&self, v: u32) -> Option<u32> {
        match &self.shard {
            None => Some(v),
            Some(shard) => shard.key(v).map(|key| key.0),
        }
    }

    /// The predicates of the base's own subjects in one graph, in no particular order.
    pub(crate) fn graph_predicates(&self, graph: u32) -> Vec<u32> {
        let parts = self.index.graph_parts(graph);
        let mut out: Vec<u32> = parts.map(|p| p.predicate).collect();
        for &s in self.index.small_graph_subjects(graph) {
            let Some(key) = self.key_of(s) else {
                continue;
            };
            for &p in self.index.sets().out_predicates(s) {
                if !out.contains(&p) && self.named_segment(p, 0).has(key, graph) {
                    out.push(p);
                }
            }
        }
        out
    }

    /// Appends the base's own subjects of one graph with a predicate, ascending.
    pub(crate) fn graph_subjects(&self, graph: u32, predicate: PredicateId, out: &mut Vec<u32>) {
        if let Some(part) = self.index.graph_part(graph, predicate.0) {
            out.extend_from_slice(part.subjects);
            return;
        }
        let named = self.named_segment(predicate.0, 0);
        let small = self.index.small_graph_subjects(graph).iter().copied();
        out.extend(small.filter(|&s| self.key_of(s).is_some_and(|key| named.has(key, graph))));
    }

    pub(crate) fn class_intervals(&self, class: u32) -> Option<&[[u32; 2]]> {
        let merged = self.statistics.rdf_type.map(|p| self.set_of(p));
        match merged.filter(|s| s.generation > 0) {
            Some(set) => set.classes.as_ref()?.class_intervals(class),
            None => self.index.class_intervals(class),
        }
    }

    /// Checks that the base's mapped files still had their original content whenever they were read. Must be called
    /// before an answer is complete, and before anything computed from the data is written: a file that shrinks or
    /// cannot be read at that time reads as zeros. O(files), about a nanosecond each.
    ///
    /// # Errors
    /// [`Error::Damaged`](jindou_model::Error::Damaged) with the file, the cause, and the remedy: permanently, once a
    /// file has failed.
    #[inline]
    pub fn check_files(&self) -> Result<()> {
        if self.are_files_whole() {
            return Ok(());
        }
        self.failed_file()
    }

    /// As [`Self::check_files`], but does not notice files that were truncated inside their last page, since those
    /// raise no fault. Costs one load while no file of this process has failed. Called between batches, in addition to
    /// [`Self::check_files`] at the end.
    ///
    /// # Errors
    /// As [`Self::check_files`].
    #[inline]
    pub fn check_for_faults(&self) -> Result<()> {
        if jindou_model::mapped::any_failed() {
            self.check_files()
        } else {
            Ok(())
        }
    }

    /// Returns true if [`Self::check_files`] succeeds.
    pub(crate) fn are_files_whole(&self) -> bool {
        let is_set_whole = |set: &SegmentSet| {
            set.files.as_flattened().iter().all(SegmentFile::is_whole)
                && set.classes.as_ref().is_none_or(IndexParts::is_whole)
        };
        self.dictionary.are_files_whole()
            && self.indexes.are_files_whole()
            && self.index.is_whole()
            && self.sets.iter().all(|set| is_set_whole(set))
    }

    #[cold]
    fn failed_file(&self) -> Result<()> {
        self.dictionary.check_files()?;
        self.indexes.check_files()?;
        self.index.check_file()?;
        for set in &self.sets {
            for file in set.files.as_flattened() {
                file.check_file()?;
            }
            if let Some(classes) = &set.classes {
                classes.check_file()?;
            }
        }
        Ok(())
    }

    /// The manifest of the base's files.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub(crate) fn next_version(&self) -> u64 {
        self.versions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The id epoch: two bases with different epochs number vertices differently.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Number of the load's vertices; terms that updates added have ids of their own, merged or not.
    #[must_use]
    pub fn vertices(&self) -> u32 {
        self.statistics.vertices
    }

    /// Returns true if the store was loaded to answer queries over the union of all graphs.
    #[must_use]
    pub fn union_default(&self) -> bool {
        self.union_default
    }

    /// The dictionary of the load's terms.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The indexes of the load's terms.
    #[must_use]
    pub fn indexes(&self) -> &OpenIndexes {
        &self.indexes
    }

    /// The statistics of the base, without patches.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Number of the last snapshot that the base contains; 0 for the base of a load.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.manifest.snapshot.max(self.merged.number)
    }

    /// Total length of the base's files in bytes, without manifests.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        let merged = self.manifest.merged.groups.iter();
        let files = self
            .manifest
            .files
            .iter()
            .chain(merged.flat_map(|g| &g.files));
        files.map(|(_, length)| length).sum()
    }

    /// The revisions of the base's graphs. If the files do not store revisions, they derive from the id epoch and the
    /// merges' checksums, which are the same in all shards and copies of the store.
    pub(crate) fn revisions(&self) -> Revisions {
        match &self.merged.revisions {
            Some(revisions) => revisions.clone(),
            None => {
                let merged = self.manifest.merged.groups.iter().map(|g| g.checksums);
                Revisions::of_files([self.epoch].into_iter().chain(merged))
            }
        }
    }

    /// Number of the last snapshot that was merged into the segments; 0 if there was no merge since the base was made.
    #[must_use]
    pub fn merged(&self) -> u64 {
        self.merged.number
    }

    /// The generation of the files that contain a predicate's segments: 0 for the load's. Together with epoch,
    /// predicate and direction, the generation identifies a segment's content permanently.
    #[must_use]
    pub fn generation_of(&self, p: PredicateId) -> u32 {
        self.set_of(p.0).generation
    }

    /// A file of the default graph's segments in one direction. Number 0 is the load's file; the generations' files
    /// follow, oldest first.
    #[must_use]
    pub fn segment_file(&self, number: usize, direction: Direction) -> Option<&SegmentFile> {
        let set = self.sets.get(number)?;
        Some(&set.files[0][direction as usize])
    }

    /// The number of the [file](Self::segment_file) that contains a predicate's segments.
    #[must_use]
    #[inline]
    pub fn segment_file_of(&self, p: PredicateId) -> usize {
        let at = self.place.get(p.0 as usize).copied().unwrap_or(0);
        usize::from(at).min(self.sets.len() - 1)
    }

    /// Number of keys in a predicate's segment of named graphs.
    #[must_use]
    pub fn named_keys(&self, p: PredicateId, direction: Direction) -> u32 {
        self.named_segment(p.0, direction as usize).key_count
    }

    /// Number of generations that contain segments in use, without the load's.
    #[must_use]
    pub fn generations(&self) -> usize {
        self.sets.len() - 1
    }
}
