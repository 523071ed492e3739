//! Verification of a sharded store: each shard on its own, then that the shards match each other.

use super::check::{CheckReport, EdgeSum, SEGMENT_FILES};
use super::check::{all_hashes, dictionary, index, walk_segment};
use super::{MANIFEST, REPLICA, STATISTICS};
use crate::base::Base;
use crate::shard::{CLUSTER, Cluster, manifest_of, open_shard, shard_folder};
use jindou_dictionary::index::Indexes;
use jindou_model::Result;
use std::path::Path;
use std::sync::Arc;

pub(super) fn shards(
    dir: &Path,
    cluster: &Cluster,
    indexes: &Indexes,
    report: &mut CheckReport,
) -> Result<()> {
    report.files += 1;
    report.bytes += cluster.to_text().len() as u64;
    let mut bases = Vec::new();
    for number in 0..cluster.shards {
        let folder = dir.join(shard_folder(number));
        // A server that follows a shared log has only some of the shards.
        if !folder.exists() && dir.join(REPLICA).exists() {
            continue;
        }
        of_shard(number, report, |own| {
            let manifest = match manifest_of(dir, cluster, number) {
                Ok(manifest) => manifest,
                Err(e) if e.is_of_store() => {
                    own.add(MANIFEST, "is missing, or has changed since it was written");
                    return Ok(());
                }
                Err(e) => return Err(e),
            };
            all_hashes(&folder, &manifest, own)?;
            match open_shard(dir, cluster, number, indexes) {
                Ok(base) => {
                    index(&base, own);
                    dictionary(&base, own);
                    base.indexes().check(base.dictionary(), &mut |file, what| {
                        own.add(file, what);
                    });
                    bases.push(base);
                }
                Err(e) if e.is_of_store() => {
                    own.add(MANIFEST, format!("does not open: {e}"));
                }
                Err(e) => return Err(e),
            }
            Ok(())
        })?;
    }
    if bases.len() == cluster.shards as usize {
        edges(&bases, cluster, report)?;
    }
    Ok(())
}

/// Runs a check of one shard, and prefixes the files in the report with the shard's folder.
fn of_shard(
    number: u32,
    report: &mut CheckReport,
    check: impl FnOnce(&mut CheckReport) -> Result<()>,
) -> Result<()> {
    let mut own = CheckReport::default();
    check(&mut own)?;
    for mut damage in own.damages {
        damage.file = format!("{}/{}", shard_folder(number), damage.file);
        report.damages.push(damage);
    }
    report.files += own.files;
    report.bytes += own.bytes;
    report.edges += own.edges;
    report.terms += own.terms;
    report.unlisted += own.unlisted;
    Ok(())
}

/// Reads all segments: an edge that one shard stores by its subject must be stored by its object on some shard.
fn edges(bases: &[Arc<Base>], cluster: &Cluster, report: &mut CheckReport) -> Result<()> {
    let Some(first) = bases.first() else {
        return Ok(());
    };
    let mut quads = 0u64;
    for named in 0..SEGMENT_FILES.len() {
        for (p, statistics) in (0u32..).zip(&first.statistics().predicates) {
            let mut sums = [EdgeSum::default(); 2];
            for (number, base) in (0..).zip(bases) {
                of_shard(number, report, |own| {
                    for (d, sum) in sums.iter_mut().enumerate() {
                        let found = walk_segment(base, p, named, d, own);
                        sum.edges = sum.edges.saturating_add(found.edges);
                        sum.hash = sum.hash.wrapping_add(found.hash);
                    }
                    Ok(())
                })?;
            }
            let want = [statistics.edges, statistics.named_edges][named];
            if sums[0] != sums[1] || sums[0].edges != want {
                report.add(STATISTICS, format!(
                        "predicate {p} has {} edges by subject and {} by object on all shards together, not {want}, or they \
                         are not the same ones",
                        sums[0].edges, sums[1].edges
                    ),
                );
            }
            quads = quads.saturating_add(sums[0].edges);
        }
    }
    if quads != cluster.quads {
        report.add(
            CLUSTER,
            format!("lists {} quads, but there are {quads}", cluster.quads),
        );
    }
    Ok(())
}
