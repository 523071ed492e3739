//! Merging the shards of a store at one snapshot, in two phases, since statistics and class intervals cover the whole
//! store.
//!
//! ```text
//! each shard's segments and changes ─► its hash, its statistics
//! statistics of all shards          ─► each shard's other files, `manifest-next.jd`
//!                                   ─► `cluster.jd` (one rename): the merge is valid
//!                                   ─► `manifest-next.jd` becomes `manifest.jd`
//! ```
//!
//! A process that opens the store in between uses, for each shard, the manifest of the base that `cluster.jd`
//! describes.
//!
//! The files of a shard depend only on the snapshot and the plan. A process may have all shards or some of them.

use super::encode::MAX_BYTES;
use super::output::Pace;
use super::statistics::{self, DroppedEntries, MergeStatistics};
use super::{
    MergeOptions, MergeOutput, MergePlan, MergeReport, Merging, NewBase, rdf_type,
    remove_generation, remove_leftovers, store_changed_error,
};
use crate::base::Base;
use crate::delta::record::damaged;
use crate::delta::{MergeCommitted, ShardResult};
use crate::directory::{IndexBuilder, MANIFEST, Manifest, ManifestState, NEXT_MANIFEST};
use crate::shard::{CLUSTER, Cluster, manifest_of, shard_folder};
use crate::snapshot::Snapshot;
use jindou_graph::delta::TailTerms;
use jindou_graph::statistics::Statistics;
use jindou_log::Files;
use jindou_model::{Error, Progress, Result};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

/// The file layers of a sharded store.
pub struct ShardFiles<'a> {
    /// The store directory.
    pub dir: &'a Path,
    /// Files of the store directory itself.
    pub root: &'a dyn Files,
    /// Files in the folder of each shard that is open in this process.
    pub shards: Vec<Option<&'a dyn Files>>,
}

impl<'a> ShardFiles<'a> {
    fn of(&self, shard: u32) -> Result<&'a dyn Files> {
        let files = self.shards.get(shard as usize).copied().flatten();
        files.ok_or_else(|| Error::Internal(format!("shard {shard} has a base and no files")))
    }

    /// Completes the last merge of a shard in the directory, and removes files of merges that failed.
    fn prepare(&self, shard: u32, base: &Base, cluster: &Cluster, plan: MergePlan) -> Result<()> {
        let files = self.of(shard)?;
        let folder = self.dir.join(shard_folder(shard));
        let named = manifest_of(self.dir, cluster, shard)?;
        if named.merged.newest() >= plan.generation {
            return Err(store_changed_error(self.dir));
        }
        if Manifest::read(&folder)? != ManifestState::Store(named.clone()) {
            // The last merge did not rename this manifest, which must not be overwritten. The rename of `cluster.jd`
            // may not be durable yet.
            let renamed = self.root.sync_directory();
            let renamed = renamed.and_then(|()| files.rename(NEXT_MANIFEST, MANIFEST));
            let done = renamed.and_then(|()| files.sync_directory());
            done.map_err(|e| Error::io(files.path(MANIFEST), e))?;
        }
        remove_leftovers(&folder, files, base, &named)?;
        Ok(())
    }

    /// Removes the files of a generation, unless its merge may be valid: `cluster.jd` must still be as it was before
    /// that merge.
    fn discard(&self, cluster: &Cluster, plan: MergePlan) {
        if Cluster::read(self.dir).is_ok_and(|now| now.as_ref() == Some(cluster)) {
            for files in self.shards.iter().flatten() {
                let _ = files.remove(NEXT_MANIFEST);
                remove_generation(*files, plan.generation);
            }
        }
    }
}

/// The new base of one shard, after the first phase.
struct WrittenShard {
    number: u32,
    old: Arc<Base>,
    new: NewBase,
    result: ShardResult,
    /// Number of bytes written.
    bytes: u64,
}

/// A merge after its first phase: those files are written that do not depend on shards in other processes.
pub struct ShardMerge {
    snapshot: Snapshot,
    plan: MergePlan,
    /// Content of `cluster.jd` before the merge.
    cluster: Cluster,
    /// The predicates that are written.
    held: Vec<u32>,
    rdf_type: Option<u32>,
    /// The snapshot's new terms, with the text of those alone that the shards in this process keep.
    tail: TailTerms,
    shards: Vec<WrittenShard>,
    begun: Instant,
}

impl ShardMerge {
    /// Writes the edits of `snapshot` over its base into segments of a new generation, for the shards in this process.
    /// `bases` are the snapshot's bases, by shard; one of them is the snapshot's own. The caller must hold the store's
    /// lock. Files of an earlier attempt are removed first. O(edges of changed predicates).
    ///
    /// # Errors
    /// [`Error::Conflict`] for a snapshot that is merged already, and if the directory has another store;
    /// [`Error::Shard`] if another shard cannot be read; [`Error::Cancelled`], [`Error::Limit`], [`Error::Io`],
    /// [`Error::Damaged`]. The store is then unchanged.
    pub fn write(
        files: &ShardFiles<'_>,
        snapshot: &Snapshot,
        bases: &[Option<Arc<Base>>],
        plan: MergePlan,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<Self> {
        if snapshot.number() <= snapshot.base().number() {
            return Err(Error::Conflict("nothing to merge".into()));
        }
        let begun = Instant::now();
        let cluster = Cluster::read(files.dir)?.ok_or_else(|| store_changed_error(files.dir))?;
        let has_own = bases
            .iter()
            .flatten()
            .any(|b| Arc::ptr_eq(b, snapshot.base()));
        if bases.len() != cluster.shards as usize || !has_own {
            return Err(store_changed_error(files.dir));
        }
        let open = || {
            (0..)
                .zip(bases)
                .filter_map(|(n, base)| Some((n, base.as_ref()?)))
        };
        for (number, base) in open() {
            files.prepare(number, base, &cluster, plan)?;
        }
        let snapshot = snapshot.for_new_query().into_owned();
        let here = |shard: u32| bases.get(shard as usize).is_some_and(Option::is_some);
        let shard = snapshot.base().shard.as_ref();
        let tail = match shard.filter(|_| plan.texts_at_owners && bases.iter().any(Option::is_none))
        {
            Some(shard) => shard.texts_of(snapshot.tail(), here),
            None => snapshot.tail().clone(),
        };
        let mut merge = Self {
            rdf_type: rdf_type(&snapshot),
            snapshot,
            tail,
            plan,
            cluster,
            held: Vec::new(),
            shards: Vec::new(),
            begun,
        };
        let mut written = Ok(());
        for (number, base) in open() {
            written = merge.write_shard(files, (number, base), options, progress);
            if written.is_err() {
                break;
            }
        }
        // The result is invalid if a request to another shard failed.
        match written.and_then(|()| merge.snapshot.check_shards()) {
            Ok(()) => Ok(merge),
            Err(e) => {
                files.discard(&merge.cluster, plan);
                Err(e)
            }
        }
    }

    fn write_shard(
        &mut self,
        files: &ShardFiles<'_>,
        (number, old): (u32, &Arc<Base>),
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<()> {
        let pace = Pace::new(files.of(number)?, &options.cancel, options.bytes_per_second);
        let output = self.output(files, (number, old), options, &pace);
        let held = output.held();
        let mut new = output.write_segments(&held, progress)?;
        // Entries without edges are kept: all shards must write the same entries, and a shard does not know which edges
        // the others have. Snapshots drop these entries when the statistics of all shards are known.
        output.write_delta(&mut new, self.snapshot.touched().clone())?;
        let both = [&**old, &new.base];
        let statistics = statistics::gather(&self.snapshot, &held, self.rdf_type, both);
        let limit = MAX_BYTES / self.cluster.shards.max(1) as usize;
        let statistics = statistics.encode_within(limit)?;
        let mut described = Vec::new();
        for group in new.segments.iter_mut().chain([&mut new.state]) {
            group.hash_new(&output.dir, options.threads)?;
            group.describe(&mut described);
        }
        described.extend_from_slice(&statistics);
        self.shards.push(WrittenShard {
            number,
            old: Arc::clone(old),
            new,
            result: ShardResult {
                hash: xxh3_64(&described),
                statistics,
            },
            bytes: pace.written(),
        });
        self.held = held;
        Ok(())
    }

    fn output<'a>(
        &'a self,
        files: &ShardFiles<'_>,
        (number, old): (u32, &'a Arc<Base>),
        options: &'a MergeOptions,
        pace: &'a Pace<'a>,
    ) -> MergeOutput<'a> {
        MergeOutput {
            dir: files.dir.join(shard_folder(number)),
            snapshot: &self.snapshot,
            old,
            options,
            pace,
            plan: self.plan,
            tail: self.tail.clone(),
        }
    }

    /// Number of the last snapshot that the new base contains.
    #[must_use]
    pub fn merged(&self) -> u64 {
        self.snapshot.number()
    }

    /// Number and result of each shard in this process.
    pub fn results(&self) -> impl Iterator<Item = (u32, &ShardResult)> {
        self.shards.iter().map(|s| (s.number, &s.result))
    }

    /// Completes the merge with the statistics of all shards: writes the other files, and makes the new bases current.
    /// `files` must be those given to [`Self::write`].
    ///
    /// # Errors
    /// [`Error::Damaged`] if the committed merge is another one, or a shard in this process has another result than the
    /// committed one; [`Error::Cancelled`], [`Error::Limit`], [`Error::Io`]. The store is then unchanged; if a
    /// directory could not be synced, the next opening finds the store either unchanged or merged.
    pub fn finish(
        self,
        files: &ShardFiles<'_>,
        committed: &MergeCommitted,
        options: &MergeOptions,
    ) -> Result<Merging> {
        let (cluster, plan) = (self.cluster.clone(), self.plan);
        let finished = self.complete(files, committed, options);
        if finished.is_err() {
            files.discard(&cluster, plan);
        }
        finished
    }

    fn complete(
        mut self,
        files: &ShardFiles<'_>,
        committed: &MergeCommitted,
        options: &MergeOptions,
    ) -> Result<Merging> {
        self.check(files.dir, committed)?;
        let held = self.held.len();
        let parts = committed.shards.iter();
        let parts = parts.map(|s| MergeStatistics::decode(&s.statistics, &self.snapshot, held));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        // With a shared log, the commit record removes the entries of terms without edges.
        let gone = match self.snapshot.open_merge() {
            Some(_) => DroppedEntries::default(),
            None => statistics::dropped_by(self.snapshot.touched(), &parts),
        };
        let (statistics, classes) =
            statistics::combine(&self.snapshot, &self.held, self.rdf_type, parts);
        if statistics.quads >= 1 << 48 {
            return Err(damaged("its merge statistics have too many quads"));
        }
        let mut bases = vec![None; self.cluster.shards as usize];
        let mut replaced = vec![Vec::new(); bases.len()];
        let mut own = None;
        let mut report = MergeReport::default();
        for shard in std::mem::take(&mut self.shards) {
            let at = shard.number as usize;
            let is_own = Arc::ptr_eq(&shard.old, self.snapshot.base());
            let (base, names, bytes) =
                self.complete_shard(files, shard, (&statistics, classes.as_ref()), options)?;
            report.bytes += bytes;
            replaced[at] = names;
            if is_own {
                own = Some(Arc::clone(&base));
            }
            bases[at] = Some(base);
        }
        let base = own.ok_or_else(|| store_changed_error(files.dir))?;
        self.put_in_place(files, statistics.quads)?;
        let report = MergeReport {
            snapshot: self.snapshot.number(),
            edits: self.snapshot.edit_count(),
            predicates: self.held.len(),
            edges: 2 * self.held.iter().map(|&p| base.edge_count(p)).sum::<u64>(),
            generations: base.generations(),
            time: self.begun.elapsed(),
            ..report
        };
        Ok(Merging {
            then: self.snapshot,
            base,
            bases,
            gone,
            replaced,
            report,
        })
    }

    /// Checks that `committed` is the commit of this merge, with the same results of the shards in this process.
    fn check(&self, dir: &Path, committed: &MergeCommitted) -> Result<()> {
        let fits = committed.merged == self.snapshot.number()
            && committed.shards.len() == self.cluster.shards as usize;
        if !fits {
            return Err(damaged("it commits a merge of another snapshot or store"));
        }
        for shard in &self.shards {
            if committed.shards.get(shard.number as usize) != Some(&shard.result) {
                return Err(Error::damaged(
                    dir.join(shard_folder(shard.number)),
                    "its merged files are not those of the other servers; fetch the shard from one of them",
                ));
            }
        }
        Ok(())
    }

    /// Completes the base of a shard. Returns it with the names of files that are no longer needed, and the bytes
    /// written in both phases.
    fn complete_shard(
        &self,
        files: &ShardFiles<'_>,
        shard: WrittenShard,
        (statistics, classes): (&Statistics, Option<&IndexBuilder>),
        options: &MergeOptions,
    ) -> Result<(Arc<Base>, Vec<String>, u64)> {
        let WrittenShard {
            number, old, new, ..
        } = shard;
        let pace = Pace::new(files.of(number)?, &options.cancel, options.bytes_per_second);
        let output = self.output(files, (number, &old), options, &pace);
        let (base, replaced) = output.complete(new, statistics.clone(), classes)?;
        output.put_manifest(&base, NEXT_MANIFEST)?;
        output.sync()?;
        Ok((Arc::new(base), replaced, shard.bytes + pace.written()))
    }

    /// Makes the new bases of all shards the current ones.
    fn put_in_place(&self, files: &ShardFiles<'_>, quads: u64) -> Result<()> {
        let merged = Cluster {
            quads,
            merged: self.snapshot.number(),
            hashes: Vec::new(),
            ..self.cluster.clone()
        };
        let put = files.root.put(CLUSTER, merged.to_text().as_bytes());
        put.map_err(|e| Error::io(files.root.path(CLUSTER), e))?;
        for files in files.shards.iter().flatten() {
            // Renames that fail are repeated when the store is opened.
            let _ = files.rename(NEXT_MANIFEST, MANIFEST);
            let _ = files.sync_directory();
        }
        Ok(())
    }
}

impl Merging {
    /// As [`Self::write`], for a sharded store all of whose shards are open in this process; `bases` are their bases,
    /// by shard.
    ///
    /// # Errors
    /// As [`Self::write`]; [`Error::Shard`] if a shard cannot be read, [`Error::Unsupported`] if one is missing.
    pub fn write_shards(
        files: &ShardFiles<'_>,
        snapshot: &Snapshot,
        bases: &[Option<Arc<Base>>],
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<Self> {
        if bases.iter().any(Option::is_none) {
            let what = "merging a store some of whose shards are elsewhere";
            return Err(Error::Unsupported(what.into()));
        }
        let mut plan = MergePlan::next(snapshot.base(), options.generations);
        // An earlier merge may have reported an error although it is valid, and its files may have this generation.
        let cluster = Cluster::read(files.dir)?.ok_or_else(|| store_changed_error(files.dir))?;
        let newest = manifest_of(files.dir, &cluster, 0)?.merged.newest();
        plan.generation = plan.generation.max(newest.saturating_add(1));
        let merge = ShardMerge::write(files, snapshot, bases, plan, options, progress)?;
        let committed = MergeCommitted {
            merged: snapshot.number(),
            shards: merge.results().map(|(_, result)| result.clone()).collect(),
        };
        merge.finish(files, &committed, options)
    }
}
