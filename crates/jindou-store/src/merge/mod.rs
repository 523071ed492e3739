//! Merging: changes made by updates are written into new segments, without changing ids, while the store is read and
//! updated.
//!
//! ```text
//! snapshot S ─► new files of all touched predicates ─► manifest names them (one rename) ─► a new base
//!                                                                                     └─► later snapshots over it
//! ```
//!
//! Existing files are never written to. If a merge does not complete, for whatever reason, no manifest names its files.

mod encode;
mod options;
mod output;
mod rebase;
mod segments;
mod shards;
mod statistics;

use crate::base::{Base, MergedData, SegmentSet};
use crate::directory::{
    CHECKSUMS, CLASSES, DELTA, FileGroup, IndexBuilder, MANIFEST, Manifest, MergedFiles, NAMED_IN,
    NAMED_OUT, NewGroup, SEGMENTS_IN, SEGMENTS_OUT, STATISTICS, file_of, generation_of,
    is_of_a_merge, map_generation, write_state, write_statistics,
};
use crate::load::memory::need_room;
use crate::shard::ShardInfo;
use crate::snapshot::Snapshot;
use crate::threads::on_threads;
use jindou_graph::delta::{TailTerms, VertexDelta};
use jindou_graph::segment::Packing;
use jindou_graph::statistics::Statistics;
use jindou_log::Files;
use jindou_model::sync;
use jindou_model::{Direction, Error, FIRST_TAIL_ID, Invariant, Progress, Resource, Result, term};
pub use options::{MergeOptions, MergePlan, MergeReport};
use output::Pace;
use rustc_hash::FxHashMap;
use segments::MergeJob;
pub use shards::{ShardFiles, ShardMerge};
use statistics::DroppedEntries;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// A merge whose files are in place: the new base, and the data for moving later snapshots of the old base to it.
pub struct Merging {
    then: Snapshot,
    /// The new base; of a sharded store, that of the snapshot's own shard.
    base: Arc<Base>,
    /// The new base of each shard that is open in this process; one entry for an unsharded store.
    bases: Vec<Option<Arc<Base>>>,
    gone: DroppedEntries,
    /// For each base in `bases`, names of the files that were replaced.
    replaced: Vec<Vec<String>>,
    report: MergeReport,
}

impl Merging {
    /// Writes the edits of `snapshot` over its base into segments of a new generation, and names the files in the
    /// manifest. `files` must be the file layer of the store directory `dir`, and the caller must hold the store's
    /// lock. O(edges of changed predicates).
    ///
    /// # Errors
    /// [`Error::Conflict`] for a snapshot that is merged already, [`Error::Cancelled`], [`Error::Limit`] for memory or
    /// disk space, [`Error::Io`], [`Error::Damaged`]. The store is then unchanged; if a directory could not be synced,
    /// the next opening finds the store either unchanged or merged.
    pub fn write(
        dir: &Path,
        files: &dyn Files,
        snapshot: &Snapshot,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<Self> {
        if snapshot.number() <= snapshot.base().number() {
            return Err(Error::Conflict("nothing to merge".into()));
        }
        let begun = Instant::now();
        let pace = Pace::new(files, &options.cancel, options.bytes_per_second);
        let manifest = Manifest::of_store(dir)?;
        let plan = MergePlan {
            generation: remove_leftovers(dir, files, snapshot.base(), &manifest)? + 1,
            ..MergePlan::next(snapshot.base(), options.generations)
        };
        let output = MergeOutput {
            dir: dir.to_owned(),
            old: snapshot.base(),
            snapshot,
            options,
            pace: &pace,
            plan,
            tail: snapshot.tail().clone(),
        };
        let merged = output
            .write_all(progress)
            .and_then(|(base, replaced, gone)| Ok((output.put_in_place(base)?, replaced, gone)));
        let (base, replaced, gone) = match merged {
            Ok(merged) => merged,
            Err(e) => {
                // The files are removed unless the manifest may name them.
                if names_generation(dir, plan.generation) == Some(false) {
                    remove_generation(files, plan.generation);
                }
                return Err(e);
            }
        };
        let mut report = output.report(&base);
        report.bytes = pace.written();
        report.time = begun.elapsed();
        let base = Arc::new(base);
        Ok(Self {
            then: snapshot.clone(),
            bases: vec![Some(Arc::clone(&base))],
            base,
            gone,
            replaced: vec![replaced],
            report,
        })
    }

    /// The base of the merged snapshot, before the merge.
    #[must_use]
    pub fn before(&self) -> &Arc<Base> {
        self.then.base()
    }

    /// The new base; of a sharded store, that of the snapshot's own shard.
    #[must_use]
    pub fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// The new base of each shard that is open in this process; one entry for an unsharded store.
    #[must_use]
    pub fn bases(&self) -> &[Option<Arc<Base>>] {
        &self.bases
    }

    /// Counts, sizes and times of this merge.
    #[must_use]
    pub fn report(&self) -> &MergeReport {
        &self.report
    }

    /// Removes the files that were replaced by the new ones. Readers keep them mapped. A file that cannot be removed
    /// now is removed when the store is opened.
    pub fn remove_replaced(&self, files: &dyn Files) {
        self.remove_replaced_in(&[Some(files)]);
    }

    /// As [`Self::remove_replaced`], in the folder of each shard that is open in this process.
    pub fn remove_replaced_in(&self, folders: &[Option<&dyn Files>]) {
        for (files, names) in folders.iter().zip(&self.replaced) {
            let Some(files) = files else { continue };
            for name in names {
                let _ = files.remove(name);
            }
        }
    }
}

/// Removes the files of earlier merges that the manifest `named` does not name. Returns the newest generation of any
/// file.
fn remove_leftovers(dir: &Path, files: &dyn Files, base: &Base, named: &Manifest) -> Result<u32> {
    if (named.epoch, named.checksums) != (base.epoch(), base.manifest.checksums) {
        return Err(store_changed_error(dir));
    }
    let known: BTreeSet<String> = named
        .names()
        .into_iter()
        .chain(base.manifest.names())
        .collect();
    let list = files.list().map_err(|e| Error::io(dir, e))?;
    let mut last = 0;
    for name in list {
        if is_of_a_merge(&name) && !known.contains(&name) {
            let _ = files.remove(&name);
        }
        last = last.max(generation_of(&name).unwrap_or(0));
    }
    Ok(last)
}

/// The error if the store directory no longer has the store that was opened.
fn store_changed_error(dir: &Path) -> Error {
    let dir = dir.display();
    Error::Conflict(format!(
        "the store at {dir} is not the one that was opened; open it again"
    ))
}

/// True if the manifest on disk names files of a generation; `None` if the manifest cannot be read.
fn names_generation(dir: &Path, generation: u32) -> Option<bool> {
    let manifest = Manifest::of_store(dir).ok()?;
    let mut groups = manifest.merged.groups.iter();
    Some(groups.any(|g| g.generation() == generation))
}

fn remove_generation(files: &dyn Files, generation: u32) {
    for name in files.list().unwrap_or_default() {
        if is_of_a_merge(&name) && generation_of(&name) == Some(generation) {
            let _ = files.remove(&name);
        }
    }
}

/// A merge of one base in progress.
struct MergeOutput<'a> {
    dir: PathBuf,
    snapshot: &'a Snapshot,
    /// The base that is merged: the snapshot's, or that of one of its shards.
    old: &'a Arc<Base>,
    options: &'a MergeOptions,
    pace: &'a Pace<'a>,
    plan: MergePlan,
    /// The snapshot's new terms; in a sharded store, with the text of those alone that the shards in this process keep.
    tail: TailTerms,
}

/// A new base of which only some files are written.
struct NewBase {
    base: Base,
    /// The group of new segments; `None` if no segments were written.
    segments: Option<NewGroup>,
    state: NewGroup,
    /// Generations of segments that remain in use.
    kept: Vec<u32>,
}

impl MergeOutput<'_> {
    /// Writes all files of an unsharded store's base.
    fn write_all(&self, progress: &Progress) -> Result<(Base, Vec<String>, DroppedEntries)> {
        let held = self.held();
        let mut new = self.write_segments(&held, progress)?;
        let rdf_type = rdf_type(self.snapshot);
        let part = statistics::gather(self.snapshot, &held, rdf_type, [self.old, &new.base]);
        let (statistics, classes) = statistics::combine(self.snapshot, &held, rdf_type, vec![part]);
        let gone = DroppedEntries::at(self.snapshot, &new.base);
        let mut touched = self.snapshot.touched().clone();
        gone.prune(
            &mut touched,
            self.snapshot.sets_of_base(),
            |_, _, _| false,
            |_| false,
        );
        self.write_delta(&mut new, touched)?;
        let (base, replaced) = self.complete(new, statistics, classes.as_ref())?;
        Ok((base, replaced, gone))
    }

    fn report(&self, base: &Base) -> MergeReport {
        let held = self.held();
        MergeReport {
            snapshot: self.snapshot.number(),
            edits: self.snapshot.edit_count(),
            predicates: held.len(),
            edges: 2 * held.iter().map(|&p| base.edge_count(p)).sum::<u64>(),
            generations: base.generations(),
            ..MergeReport::default()
        }
    }

    /// Writes the segments of a new generation.
    fn write_segments(&self, held: &[u32], progress: &Progress) -> Result<NewBase> {
        let (snapshot, old) = (self.snapshot, self.old);
        let mut sets: Vec<Arc<SegmentSet>> = old.sets.clone();
        let shard = old.shard.as_ref();
        let shard = shard.map(|s| Box::new(s.with_merged(snapshot.tail().len())));
        let mut segments = None;
        if !held.is_empty() {
            let new = segments.insert(NewGroup::new(format!("g{}", self.plan.generation)));
            new.group.files = self.segments(held, shard.as_deref(), progress)?;
            sets.push(Arc::new(map_generation(&self.dir, &new.group)?));
        }
        let (sets, kept) = sets_in_use(sets, snapshot.predicate_count() as usize);
        let base = Base {
            epoch: old.epoch,
            union_default: old.union_default,
            dictionary: Arc::clone(&old.dictionary),
            indexes: Arc::clone(&old.indexes),
            place: Base::places(&sets, snapshot.predicate_count() as usize),
            sets,
            statistics: Statistics::default(),
            predicate_of: FxHashMap::default(),
            index: Arc::clone(&old.index),
            merged: MergedData::default(),
            prefixes: Arc::clone(snapshot.prefixes()),
            manifest: old.manifest.clone(),
            versions: Arc::clone(&old.versions),
            segment_use: Arc::clone(&old.segment_use),
            objects: Default::default(),
            kinds: Default::default(),
            shard,
        };
        self.pace.cancel.check()?;
        Ok(NewBase {
            base,
            segments,
            state: NewGroup::new(format!("s{}", self.plan.generation)),
            kept,
        })
    }

    /// Writes the merged changes that are stored outside segments, except for statistics.
    fn write_delta(&self, new: &mut NewBase, touched: VertexDelta) -> Result<()> {
        let snapshot = self.snapshot;
        let delta = snapshot.delta();
        new.base.merged = MergedData {
            number: snapshot.number(),
            tail: self.tail.clone(),
            touched,
            // A table is written if it is not empty, or if it replaces one that was not.
            prefixes: (!snapshot.prefixes().is_empty() || !self.old.prefixes.is_empty())
                .then(|| Arc::clone(snapshot.prefixes())),
            revisions: Some(delta.revisions.clone()),
            requests: delta.requests.clone(),
            open_merge: delta.open_merge,
        };
        let name = file_of(&new.state.group.name, DELTA);
        let (merged, vertices) = (&new.base.merged, self.old.vertices());
        let shard = self
            .old
            .shard
            .as_ref()
            .filter(|_| self.plan.texts_at_owners);
        let own = shard.map(|shard| shard.texts_of(&self.tail, |owner| owner == shard.number));
        let length = self.pace.create(&name, |out| {
            write_state(merged, own.as_ref(), vertices, out)
        })?;
        new.state.group.files.push((name, length));
        Ok(())
    }

    /// Writes statistics and class intervals, and the hashes of all new files. Returns the base with its manifest, and
    /// the names of files that are no longer needed.
    fn complete(
        &self,
        new: NewBase,
        statistics: Statistics,
        classes: Option<&IndexBuilder>,
    ) -> Result<(Base, Vec<String>)> {
        let NewBase {
            mut base,
            mut segments,
            mut state,
            kept,
        } = new;
        base.predicate_of = (0u32..)
            .zip(&statistics.predicates)
            .map(|(p, s)| (s.vertex, p))
            .collect();
        base.statistics = statistics;
        if let (Some(index), Some(new)) = (classes, &mut segments) {
            let name = file_of(&new.group.name, CLASSES);
            let length = self.pace.create(&name, |out| index.clone().write(out))?;
            new.group.files.push((name, length));
            let set = map_generation(&self.dir, &new.group)?;
            if let Some(last) = base.sets.last_mut() {
                *last = Arc::new(set);
            }
        }
        let name = file_of(&state.group.name, STATISTICS);
        let statistics = &base.statistics;
        let length = self
            .pace
            .create(&name, |out| write_statistics(statistics, out))?;
        state.group.files.push((name, length));
        let groups = segments.into_iter().chain([state]);
        let replaced = self.seal(&mut base, groups, &kept)?;
        Ok((base, replaced))
    }

    /// The predicates to write: those with edits, and, if there are many generations, all that were merged before.
    fn held(&self) -> Vec<u32> {
        let merged = |p: u32| self.plan.all && self.old.has_merged_edges(p);
        let edited = |p: u32| {
            let patch = self.snapshot.patch(p, Direction::Out);
            patch.is_some_and(|p| !p.is_empty())
        };
        (0..self.snapshot.predicate_count())
            .filter(|&p| edited(p) || merged(p))
            .collect()
    }

    /// Writes the four files of segments; returns their names and lengths.
    fn segments(
        &self,
        held: &[u32],
        shard: Option<&ShardInfo>,
        progress: &Progress,
    ) -> Result<Vec<(String, u64)>> {
        let snapshot = self.snapshot;
        let (mut keys, mut edges) = (0u64, 0u64);
        for &p in held {
            for d in [Direction::Out, Direction::In] {
                let (default, named) = self.old.segments(p, d);
                let edited = snapshot.patch(p, d).map_or(0, |p| p.len() as u64);
                let most = default.key_count.max(named.key_count);
                keys = keys.max(u64::from(most) + edited);
                edges += default.edge_count() + named.edge_count() + edited;
            }
        }
        let threads = self.segment_threads(keys, edges)?;
        let tail = snapshot.tail();
        let last_id = match tail.len() {
            0 => snapshot.base().vertices(),
            n => FIRST_TAIL_ID + (n - 1),
        };
        let graphs = match shard {
            None => snapshot.named_graphs().to_vec(),
            // Only the owners of its subjects know whether a graph is empty, so graphs without quads may be included.
            Some(_) => snapshot.possible_graphs(),
        };
        let packing = Packing::new(last_id, graphs);
        let group = format!("g{}", self.plan.generation);
        let kinds = [
            (SEGMENTS_OUT, Direction::Out, None),
            (SEGMENTS_IN, Direction::In, None),
            (NAMED_OUT, Direction::Out, Some(&packing)),
            (NAMED_IN, Direction::In, Some(&packing)),
        ];
        let written = AtomicU64::new(0);
        let done = |n: u64| {
            let now = written.fetch_add(n, Ordering::Relaxed) + n;
            progress.done.store(now, Ordering::Relaxed);
            let permille = 1000 * now / edges.max(1);
            progress
                .phase_permille
                .store(permille.min(1000), Ordering::Relaxed);
        };
        let results: [Mutex<Option<Result<u64>>>; 4] = Default::default();
        let next = AtomicUsize::new(0);
        on_threads(threads, |_| {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let (Some(&(name, direction, packing)), Some(slot)) =
                    (kinds.get(at), results.get(at))
                else {
                    return;
                };
                let job = MergeJob {
                    snapshot,
                    old: self.old,
                    shard,
                    held,
                    direction,
                    packing,
                };
                let result = self.pace.create(&file_of(&group, name), |out| {
                    job.write(out, self.pace, &done)
                });
                *sync::lock(slot) = Some(result);
            }
        });
        let mut files = Vec::new();
        for ((name, ..), result) in kinds.iter().zip(results) {
            let result = result
                .into_inner()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let len = result.invariant("each file of a merge is written")?;
            files.push((file_of(&group, name), len));
        }
        Ok(files)
    }

    /// The number of threads that the memory allows if a predicate has at most `keys` keys. `edges` is the number of
    /// edges of all predicates.
    ///
    /// # Errors
    /// [`Error::Limit`] if the memory is too small for one thread, or if the disk has too little space.
    fn segment_threads(&self, keys: u64, edges: u64) -> Result<usize> {
        let need = keys * segments::BYTES_A_KEY;
        if need > self.options.memory {
            return Err(Error::limit(
                Resource::Memory,
                format!(
                    "merging a predicate with {keys} keys needs {} MiB, more than the {} MiB allowed; raise the limit",
                    (need >> 20) + 1,
                    self.options.memory >> 20
                ),
            ));
        }
        // An edge takes 4 bytes in the default graph and at most 9 in a named graph; a key takes at most 12.
        let room = 9 * edges + 12 * keys + 2 * self.snapshot.tail().bytes() as u64;
        need_room(&self.dir, room, "merging")?;
        let fits = self.options.memory.checked_div(need).unwrap_or(u64::MAX);
        Ok((self.options.threads.max(1) as u64).min(fits.max(1)).min(4) as usize)
    }

    /// Writes the groups' hashes, and sets the base's manifest. Returns names of files that are no longer needed.
    fn seal(
        &self,
        base: &mut Base,
        groups: impl Iterator<Item = NewGroup>,
        kept: &[u32],
    ) -> Result<Vec<String>> {
        let old = &self.old.manifest;
        let mut all: Vec<FileGroup> = old
            .merged
            .generations()
            .filter(|g| kept.contains(&g.generation()))
            .cloned()
            .collect();
        for group in groups {
            self.pace.cancel.check()?;
            let (group, sums) = group.seal(&self.dir, self.options.threads)?;
            self.pace.put(&file_of(&group.name, CHECKSUMS), &sums)?;
            all.push(group);
        }
        base.manifest = Manifest {
            quads: base.statistics.quads,
            merged: MergedFiles {
                number: base.merged.number,
                groups: all,
            },
            ..old.clone()
        };
        // The files must be durable before the manifest names them.
        self.sync()?;
        self.pace.cancel.check()?;
        // Checks the files that were read for the merge, and those new files that are already mapped.
        self.old.check_files()?;
        base.check_files()?;
        let now: BTreeSet<String> = base.manifest.names().into_iter().collect();
        Ok(old.merged.names().filter(|n| !now.contains(n)).collect())
    }

    fn sync(&self) -> Result<()> {
        let synced = self.pace.files.sync_directory();
        synced.map_err(|e| Error::io(&self.dir, e))
    }

    fn put_manifest(&self, base: &Base, name: &str) -> Result<()> {
        let text = base.manifest.to_text();
        let put = self.pace.files.put(name, text.as_bytes());
        put.map_err(|e| Error::io(self.pace.path(name), e))
    }

    /// Makes the new base of an unsharded store the current one.
    fn put_in_place(&self, base: Base) -> Result<Base> {
        self.put_manifest(&base, MANIFEST)?;
        Manifest::date(&self.dir);
        Ok(base)
    }
}

/// The dense id of `rdf:type`, if that is a predicate.
fn rdf_type(snapshot: &Snapshot) -> Option<u32> {
    snapshot.statistics().rdf_type.or_else(|| {
        let v = snapshot.lookup(&term::rdf_type())?;
        snapshot.predicate_of(v).map(|p| p.0)
    })
}

/// The sets that contain the newest segments of some predicate, and their generations.
fn sets_in_use(sets: Vec<Arc<SegmentSet>>, predicates: usize) -> (Vec<Arc<SegmentSet>>, Vec<u32>) {
    let place = Base::places(&sets, predicates);
    let used: BTreeSet<usize> = place.iter().map(|&at| usize::from(at)).collect();
    let kept: Vec<Arc<SegmentSet>> = sets
        .into_iter()
        .enumerate()
        .filter(|(at, _)| *at == 0 || used.contains(at))
        .map(|(_, set)| set)
        .collect();
    let generations = kept.iter().map(|s| s.generation).collect();
    (kept, generations)
}
