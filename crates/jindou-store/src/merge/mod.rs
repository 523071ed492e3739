//! Merging: changes made by updates are folded into segments, with ids unchanged, while the store is read and changed.
//!
//! ```text
//! snapshot S ─► new files of all touched predicates ─► manifest names them (one rename) ─► a new base
//!                                                                                     └─► later snapshots over it
//! ```
//!
//! Existing files are never written to. A merge that ends early, in whatever way, leaves files that no manifest names.

mod known;
mod output;
mod over;
mod segments;

use crate::base::{Base, MergedData, SegmentSet};
use crate::directory::{
    CHECKSUMS, CLASSES, DELTA, FileGroup, MANIFEST, Manifest, MergedFiles, NAMED_IN, NAMED_OUT,
    SEGMENTS_IN, SEGMENTS_OUT, STATISTICS, file_of, generation_of, is_of_a_merge, map_generation,
    write_state, write_statistics,
};
use crate::load::memory::need_room;
use crate::snapshot::Snapshot;
use jindou_graph::segment::{Packing, fold_behind};
use jindou_log::Files;
use jindou_model::sync;
use jindou_model::{
    CancelToken, Direction, Error, FIRST_TAIL_ID, Invariant, PredicateId, Progress, Resource,
    Result, setters,
};
use known::DroppedEntries;
use output::Pace;
use segments::MergeJob;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Options for merging.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergeOptions {
    /// Bytes of memory that keys of predicates may take while they are written: 16 bytes per key, one predicate per
    /// thread.
    pub memory: u64,
    /// Bytes per second that may be written; `None` for no limit.
    pub bytes_per_second: Option<u64>,
    /// Threads, at least 1; more than 4 are not used.
    pub threads: usize,
    /// Number of generations of files from which all are merged into one.
    pub generations: usize,
    /// Token that ends the merge; the store then stays as it was.
    pub cancel: CancelToken,
}

impl Default for MergeOptions {
    /// 1 GiB, two threads, eight generations.
    fn default() -> Self {
        Self {
            memory: 1 << 30,
            bytes_per_second: None,
            threads: 2,
            generations: 8,
            cancel: CancelToken::new(),
        }
    }
}

impl MergeOptions {
    setters! {
        with_memory: memory = u64;
        with_bytes_per_second: bytes_per_second = impl Into<Option<u64>>;
        with_threads: threads = usize;
        with_generations: generations = usize;
        with_cancel: cancel = CancelToken;
    }
}

/// Counts, sizes and times of a merge.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MergeReport {
    /// The last snapshot that is now in the segments.
    pub snapshot: u64,
    /// Edits that were merged.
    pub edits: u64,
    /// Predicates whose segments were written.
    pub predicates: usize,
    /// Edges written, each direction counted.
    pub edges: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Number of generations besides the load's files.
    pub generations: usize,
    /// Time until the manifest named the new files.
    pub time: Duration,
    /// Time for which updates that arrived meanwhile waited for the new base.
    pub pause: Duration,
}

impl fmt::Display for MergeReport {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bytes == 0 {
            return write!(f, "snapshot {}: nothing to merge", self.snapshot);
        }
        let counted = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        write!(
            f,
            "merged snapshot {}: {}, {} with {}, {} bytes in {:.3} s; updates waited {:.3} ms at the end; {}",
            self.snapshot,
            counted(self.edits, "edit"),
            counted(self.predicates as u64, "predicate"),
            counted(self.edges, "edge"),
            self.bytes,
            self.time.as_secs_f64(),
            self.pause.as_secs_f64() * 1e3,
            counted(self.generations as u64, "generation"),
        )
    }
}

/// A merge whose files are in place: the new base, with the information for moving later snapshots of the old base to
/// it.
pub struct Merging {
    then: Snapshot,
    base: Arc<Base>,
    gone: DroppedEntries,
    replaced: Vec<String>,
    report: MergeReport,
}

impl Merging {
    /// Writes the edits over the base at `snapshot` into segments of a new generation, and names them in the manifest.
    /// `files` must be the file layer of the store directory `dir`, and the caller must hold the store's lock. O(edges
    /// of changed predicates).
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
        let generation = begin(dir, files, snapshot.base())?;
        let written = MergeOutput {
            dir,
            snapshot,
            options,
            pace: &pace,
            generation,
        };
        let mut merging = match written.merge(progress) {
            Ok(merging) => merging,
            Err(e) => {
                // Unless the manifest may name them.
                if names_generation(dir, generation) == Some(false) {
                    remove_generation(files, generation);
                }
                return Err(e);
            }
        };
        merging.report.bytes = pace.written();
        merging.report.time = begun.elapsed();
        Ok(merging)
    }

    /// The base that the merged snapshot lay over.
    #[must_use]
    pub fn before(&self) -> &Arc<Base> {
        self.then.base()
    }

    /// The new base.
    #[must_use]
    pub fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// Counts, sizes and times of this merge.
    #[must_use]
    pub fn report(&self) -> &MergeReport {
        &self.report
    }

    /// Removes the files that the new ones replaced. Readers have them mapped. A file that cannot be removed now is
    /// removed when the store is opened.
    pub fn remove_replaced(&self, files: &dyn Files) {
        for name in &self.replaced {
            let _ = files.remove(name);
        }
    }
}

/// Removes the remains of earlier merges, and finds a generation number that no file has.
fn begin(dir: &Path, files: &dyn Files, base: &Base) -> Result<u32> {
    let named = Manifest::of_store(dir)?;
    if (named.epoch, named.checksums) != (base.epoch(), base.manifest.checksums) {
        return Err(Error::Conflict(format!(
            "the store at {} is not the one that was opened; open it again",
            dir.display()
        )));
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
    Ok(last + 1)
}

/// Returns whether the manifest on disk names files of a generation; `None` if it cannot be read.
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

/// A merge in progress.
struct MergeOutput<'a> {
    dir: &'a Path,
    snapshot: &'a Snapshot,
    options: &'a MergeOptions,
    pace: &'a Pace<'a>,
    generation: u32,
}

impl MergeOutput<'_> {
    fn merge(&self, progress: &Progress) -> Result<Merging> {
        let snapshot = self.snapshot;
        let old = snapshot.base();
        let held = self.held();
        let mut groups: Vec<FileGroup> = Vec::new();
        let mut sets: Vec<Arc<SegmentSet>> = old.sets.clone();
        let mut edges = 0;
        if !held.is_empty() {
            let (files, written) = self.segments(&held, progress)?;
            edges = written;
            let group = FileGroup {
                name: format!("g{}", self.generation),
                files,
                checksums: 0,
            };
            sets.push(Arc::new(map_generation(self.dir, &group)?));
            groups.push(group);
        }
        let (sets, kept) = without_idle(sets, snapshot.predicate_count() as usize);
        let mut base = Base {
            epoch: old.epoch,
            union_default: old.union_default,
            dictionary: Arc::clone(&old.dictionary),
            indexes: Arc::clone(&old.indexes),
            place: Base::places(&sets, snapshot.predicate_count() as usize),
            sets,
            statistics: old.statistics.clone(),
            predicate_of: old.predicate_of.clone(),
            index: Arc::clone(&old.index),
            merged: MergedData::default(),
            prefixes: Arc::clone(snapshot.prefixes()),
            manifest: old.manifest.clone(),
            versions: Arc::clone(&old.versions),
            segment_use: Arc::clone(&old.segment_use),
            objects: Default::default(),
            shard: None,
        };
        self.pace.cancel.check()?;
        let classes = known::refresh(snapshot, &held, &mut base);
        if let (Some(index), Some(group)) = (classes, groups.last_mut()) {
            let name = file_of(&group.name, CLASSES);
            let len = self.pace.create(&name, |out| index.write(out))?;
            group.files.push((name, len));
            let set = map_generation(self.dir, group)?;
            if let Some(last) = base.sets.last_mut() {
                *last = Arc::new(set);
            }
        }
        let gone = DroppedEntries::at(snapshot, &base);
        let mut touched = snapshot.touched().clone();
        gone.prune(
            &mut touched,
            snapshot.sets_of_base(),
            |_, _, _| false,
            |_| false,
        );
        base.merged = MergedData {
            number: snapshot.number(),
            tail: snapshot.tail().clone(),
            touched,
            // A table that became empty has to be said, too.
            prefixes: (!snapshot.prefixes().is_empty() || !old.prefixes.is_empty())
                .then(|| Arc::clone(snapshot.prefixes())),
            revisions: Some(snapshot.delta().revisions.clone()),
            requests: snapshot.delta().requests.clone(),
        };
        groups.push(self.state(&base)?);
        let replaced = self.put_in_place(&mut base, groups, &kept)?;
        let report = MergeReport {
            snapshot: snapshot.number(),
            edits: snapshot.edit_count(),
            predicates: held.len(),
            edges,
            generations: base.generations(),
            ..MergeReport::default()
        };
        Ok(Merging {
            then: snapshot.clone(),
            base: Arc::new(base),
            gone,
            replaced,
            report,
        })
    }

    /// The predicates to write: those with edits, and all that were merged before when there are many generations.
    fn held(&self) -> Vec<u32> {
        let base = self.snapshot.base();
        let all = base.generations() + 1 >= self.options.generations.max(1);
        let merged = |p: u32| all && base.set_of(p).generation > 0;
        let edited = |p: u32| {
            let patch = self.snapshot.patch(p, Direction::Out);
            patch.is_some_and(|p| !p.is_empty())
        };
        (0..self.snapshot.predicate_count())
            .filter(|&p| edited(p) || merged(p))
            .collect()
    }

    /// Writes the four files of segments; returns their names and lengths, and the number of their edges.
    fn segments(&self, held: &[u32], progress: &Progress) -> Result<(Vec<(String, u64)>, u64)> {
        let snapshot = self.snapshot;
        let (mut keys, mut edges) = (0u64, 0u64);
        for &p in held {
            for d in [Direction::Out, Direction::In] {
                let view = snapshot.local_edges(PredicateId(p), d);
                let edited = view.patch.map_or(0, |p| p.len() as u64);
                let own = u64::from(view.default.key_count) + edited;
                keys = keys.max(own.max(u64::from(view.named.key_count) + edited));
                edges += view.default_edges() + view.named_edges();
            }
        }
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
        let tail = snapshot.tail();
        // An edge of the default graph has 4 bytes, one of a named graph 9 at most; a key at most 12.
        let room = 9 * edges + 12 * keys + 2 * tail.bytes() as u64;
        need_room(self.dir, room, "merging")?;
        let fits = self.options.memory.checked_div(need).unwrap_or(u64::MAX);
        let threads = (self.options.threads.max(1) as u64).min(fits.max(1)).min(4) as usize;
        let last_id = match tail.len() {
            0 => snapshot.base().vertices(),
            n => FIRST_TAIL_ID + (n - 1),
        };
        let packing = Packing::new(last_id, snapshot.named_graphs().to_vec());
        let group = format!("g{}", self.generation);
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
        let fold = fold_behind(snapshot.base().vertices());
        let results: [Mutex<Option<Result<u64>>>; 4] = Default::default();
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let (Some(&(name, direction, packing)), Some(slot)) =
                    (kinds.get(at), results.get(at))
                else {
                    return;
                };
                let job = MergeJob {
                    snapshot,
                    held,
                    direction,
                    packing,
                    fold,
                };
                let result = self.pace.create(&file_of(&group, name), |out| {
                    job.write(out, self.pace, &done)
                });
                *sync::lock(slot) = Some(result);
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            work();
            for t in others {
                if let Err(panic) = t.join() {
                    std::panic::resume_unwind(panic);
                }
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
        Ok((files, written.into_inner()))
    }

    /// Writes the state outside the segments.
    fn state(&self, base: &Base) -> Result<FileGroup> {
        let name = format!("s{}", self.generation);
        let statistics = file_of(&name, STATISTICS);
        let delta = file_of(&name, DELTA);
        let lengths = [
            self.pace
                .create(&statistics, |out| write_statistics(&base.statistics, out))?,
            self.pace.create(&delta, |out| {
                write_state(&base.merged, base.vertices(), out)
            })?,
        ];
        Ok(FileGroup {
            name,
            files: [statistics, delta].into_iter().zip(lengths).collect(),
            checksums: 0,
        })
    }

    /// Writes the groups' hashes and the manifest. Returns names of files that are no longer needed.
    fn put_in_place(
        &self,
        base: &mut Base,
        groups: Vec<FileGroup>,
        kept: &[u32],
    ) -> Result<Vec<String>> {
        let old = &self.snapshot.base().manifest;
        let mut all: Vec<FileGroup> = old
            .merged
            .generations()
            .filter(|g| kept.contains(&g.generation()))
            .cloned()
            .collect();
        for group in groups {
            self.pace.cancel.check()?;
            let (group, sums) =
                FileGroup::seal(self.dir, group.name, group.files, self.options.threads)?;
            self.pace.put(&file_of(&group.name, CHECKSUMS), &sums)?;
            all.push(group);
        }
        let manifest = Manifest {
            quads: base.statistics.quads,
            merged: MergedFiles {
                number: base.merged.number,
                groups: all,
            },
            ..old.clone()
        };
        let files = self.pace.files;
        // Files first, then the manifest that names them.
        files.sync_directory().map_err(|e| Error::io(self.dir, e))?;
        self.pace.cancel.check()?;
        // Checks the files from which the new ones were made, and those of the new ones that are mapped already.
        self.snapshot.base().check_files()?;
        base.check_files()?;
        files
            .put(MANIFEST, manifest.to_text().as_bytes())
            .map_err(|e| Error::io(self.pace.path(MANIFEST), e))?;
        Manifest::date(self.dir);
        let now: BTreeSet<String> = manifest.names().into_iter().collect();
        let before = old.merged.names().filter(|n| !now.contains(n)).collect();
        base.manifest = manifest;
        Ok(before)
    }
}

/// The sets that some predicate is in, and their generations.
fn without_idle(sets: Vec<Arc<SegmentSet>>, predicates: usize) -> (Vec<Arc<SegmentSet>>, Vec<u32>) {
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
