//! Merging all shards of a store at one snapshot.
//!
//! ```text
//! each shard's segments ─► statistics of all of them ─► each shard's other files, `manifest-next.jd`
//!                                                    ─► `cluster.jd` (one rename): the merge is valid
//!                                                    ─► `manifest-next.jd` becomes `manifest.jd`
//! ```
//!
//! A process that opens the store in between takes, for each shard, the manifest of the base that `cluster.jd` describes.

use super::known::{self, DroppedEntries};
use super::output::Pace;
use super::{
    MergeOptions, MergeOutput, MergeReport, Merging, ShardFiles, next_generation, rdf_type,
    remove_generation,
};
use crate::base::Base;
use crate::directory::{MANIFEST, Manifest, ManifestState, NEXT_MANIFEST};
use crate::shard::{CLUSTER, Cluster, manifest_of, shard_folder};
use crate::snapshot::Snapshot;
use jindou_model::{Error, Progress, Result};
use std::sync::Arc;
use std::time::Instant;

impl Merging {
    /// As [`Self::write`], for a sharded store: `bases` are those of all its shards, in their order. The files of a shard
    /// depend on the snapshot alone, and statistics and class intervals are those of the whole store.
    ///
    /// # Errors
    /// As [`Self::write`]; [`Error::Shard`] if another shard cannot be read.
    pub fn write_shards(
        files: &ShardFiles<'_>,
        snapshot: &Snapshot,
        bases: &[Arc<Base>],
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<Self> {
        if snapshot.number() <= snapshot.base().number() {
            return Err(Error::Conflict("nothing to merge".into()));
        }
        let begun = Instant::now();
        let (dir, snapshot) = (files.dir, &*snapshot.for_new_query());
        let changed = || {
            let what = format!(
                "the store at {} is not the one that was opened; open it again",
                dir.display()
            );
            Error::Conflict(what)
        };
        let cluster = Cluster::read(dir)?.ok_or_else(changed)?;
        let own = snapshot.base().own_data().map(|own| own.number() as usize);
        let own = own.filter(|&own| own < bases.len()).ok_or_else(changed)?;
        let mut generation = 0;
        for ((number, base), files) in (0..).zip(bases).zip(&files.shards) {
            let folder = dir.join(shard_folder(number));
            let named = manifest_of(dir, &cluster, number)?;
            if Manifest::read(&folder)? != ManifestState::Store(named.clone()) {
                // The last merge did not complete this, and its manifest must not be overwritten.
                let renamed = files.rename(NEXT_MANIFEST, MANIFEST);
                let done = renamed.and_then(|()| files.sync_directory());
                done.map_err(|e| Error::io(files.path(MANIFEST), e))?;
            }
            generation = generation.max(next_generation(&folder, *files, base, &named)?);
        }
        let paces: Vec<Pace<'_>> = files
            .shards
            .iter()
            .map(|files| Pace::new(*files, &options.cancel, options.bytes_per_second))
            .collect();
        let outputs: Vec<MergeOutput<'_>> = (0..)
            .zip(bases)
            .zip(&paces)
            .map(|((number, old), pace)| MergeOutput {
                dir: dir.join(shard_folder(number)),
                snapshot,
                old,
                options,
                pace,
                generation,
            })
            .collect();
        let merged = write_all(&outputs, files, &cluster, progress);
        let (new, replaced) = match merged {
            Ok(merged) => merged,
            Err(e) => {
                // Unless the merge may be valid.
                if Cluster::read(dir).is_ok_and(|now| now.as_ref() == Some(&cluster)) {
                    for files in &files.shards {
                        let _ = files.remove(NEXT_MANIFEST);
                        remove_generation(*files, generation);
                    }
                }
                return Err(e);
            }
        };
        let mut report: MergeReport = outputs[own].report(&new[own]);
        report.bytes = paces.iter().map(Pace::written).sum();
        report.time = begun.elapsed();
        Ok(Self {
            then: snapshot.clone(),
            bases: new.into_iter().map(Arc::new).collect(),
            own,
            // Every shard has to come to the same result, and no shard knows what the others' segments lack.
            gone: DroppedEntries::default(),
            replaced,
            report,
        })
    }
}

/// The new bases, and the names of the files that they replace in each.
type Written = (Vec<Base>, Vec<Vec<String>>);

fn write_all(
    outputs: &[MergeOutput<'_>],
    files: &ShardFiles<'_>,
    cluster: &Cluster,
    progress: &Progress,
) -> Result<Written> {
    let Some(first) = outputs.first() else {
        return Ok(Written::default());
    };
    let snapshot = first.snapshot;
    let (held, rdf_type) = (first.held(), rdf_type(snapshot));
    let mut parts = Vec::with_capacity(outputs.len());
    let mut new = Vec::with_capacity(outputs.len());
    for output in outputs {
        let base = output.write_segments(&held, progress)?;
        let both = [&**output.old, &base.base];
        parts.push(known::gather(snapshot, &held, rdf_type, both));
        new.push(base);
    }
    let (statistics, classes) = known::combine(snapshot, &held, rdf_type, parts);
    // Of what was read of other shards for this.
    snapshot.check_shards()?;
    let mut all = Written::default();
    for (output, new) in outputs.iter().zip(new) {
        let touched = snapshot.touched().clone();
        let (base, replaced) =
            output.write_state(new, statistics.clone(), classes.clone(), touched)?;
        output.put_manifest(&base, NEXT_MANIFEST)?;
        output.sync()?;
        all.0.push(base);
        all.1.push(replaced);
    }
    let merged = Cluster {
        quads: statistics.quads,
        merged: snapshot.number(),
        hashes: Vec::new(),
        ..cluster.clone()
    };
    let put = files.root.put(CLUSTER, merged.to_text().as_bytes());
    put.map_err(|e| Error::io(files.root.path(CLUSTER), e))?;
    for files in &files.shards {
        // What fails is done when the store is opened.
        let _ = files.rename(NEXT_MANIFEST, MANIFEST);
        let _ = files.sync_directory();
    }
    Ok(all)
}
