//! The part of a load that is only needed for several shards: the block table, each shard's terms, and the manifests.

use super::clusters::Clusters;
use super::partition::Partitioned;
use super::read::on_threads;
use super::segments::StoredEdge;
use super::{LoadOptions, LoadRun, create, lengths, put};
use crate::directory::{CHECKSUMS, Checksums, FILES, MANIFEST, Manifest};
use crate::shard::{BLOCKS, CLUSTER, Cluster, Placement, Sharding, shard_folder, write_blocks};
use jindou_dictionary::index::{Indexes, build_indexes};
use jindou_dictionary::{STRINGS_FILE, Strings, split_strings, write_dictionary};
use jindou_graph::shard::Blocks;
use jindou_model::{Error, Result, private};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use xxhash_rust::xxh3::xxh3_64;

/// Approximate bytes of a term in a shard's strings and dictionary.
const TERM: u64 = 16;
/// Bytes of a neighbour in a segment.
const EDGE: u64 = 4;

/// Kinds of indexes to build next to each dictionary, and the memory for each index.
pub(super) struct IndexesToBuild<'a> {
    pub kinds: &'a Indexes,
    pub memory: u64,
}

/// Checks the options of a sharded load.
///
/// # Errors
/// [`Error::Limit`] for an impossible number of shards, [`Error::Unsupported`] for options that shards do not support.
pub(super) fn check(sharding: &Sharding, options: &LoadOptions) -> Result<()> {
    sharding.check()?;
    if sharding.shards > 1
        && let Some(index) = options
            .indexes
            .iter()
            .find(|i| i.has_file() && !i.in_shards())
    {
        return Err(Error::Unsupported(format!(
            "a sharded store cannot have this index of terms; load it without the index {}",
            index.name()
        )));
    }
    Ok(())
}

/// Folders for the files of each shard; only the store's own folder for an unsharded store.
pub(super) fn folders(dir: &Path, blocks: Option<&Blocks>) -> Vec<PathBuf> {
    match blocks {
        None => vec![dir.to_owned()],
        Some(b) => (0..b.shards()).map(|s| dir.join(shard_folder(s))).collect(),
    }
}

impl LoadRun<'_> {
    /// Assigns blocks to shards, and writes each shard's block table, strings, dictionary and indexes. Returns the
    /// blocks, and the names of the indexes' files, which are the same in each shard.
    pub(super) fn cut(
        &self,
        sharding: &Sharding,
        clusters: &Clusters,
        edges: &Partitioned,
        predicates: &[u32],
        indexes: &IndexesToBuild<'_>,
    ) -> Result<(Blocks, Vec<String>)> {
        let ids = &clusters.id_of_lex;
        let graphs = <[u32; 3]>::packing(&edges.named, predicates.len(), ids)?;
        let named = predicates.iter().chain(&clusters.class_terms);
        let mut everywhere: Vec<u32> = named.map(|&lex| ids[lex as usize]).collect();
        everywhere.extend(graphs.map(|p| p.graph_ids()).unwrap_or_default());
        let lens = clusters.clusters.iter().map(|c| c.len);
        let terms = ids.len() as u32;
        let weights = match sharding.placement {
            Placement::Range => self.weights(sharding.shift(terms), ids, edges)?,
            Placement::Hash => Vec::new(),
        };
        let blocks = sharding.place(terms, lens, &weights, everywhere);
        let folders = folders(self.dir, Some(&blocks));
        for (shard, folder) in (0..).zip(&folders) {
            private::create_folder(folder).map_err(|e| Error::io(folder, e))?;
            create(folder, BLOCKS, |f| write_blocks(&blocks, shard, f))?;
        }
        let indexes = self.write_terms(&blocks, ids, &folders, indexes)?;
        Ok((blocks, indexes))
    }

    /// Approximate bytes that each block of ids takes in a shard: for its terms, and for its neighbours in both
    /// directions.
    fn weights(&self, shift: u32, ids: &[u32], edges: &Partitioned) -> Result<Vec<u64>> {
        let count = (ids.len() >> shift) + 1;
        let neighbours: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let one = |lex: u32| {
            let block = ids.get(lex as usize).map(|&id| id >> shift);
            if let Some(n) = block.and_then(|b| neighbours.get(b as usize)) {
                n.fetch_add(1, Ordering::Relaxed);
            }
        };
        let next = AtomicUsize::new(0);
        on_threads(self.threads, |_| {
            loop {
                let p = next.fetch_add(1, Ordering::Relaxed);
                if p >= edges.predicates() {
                    return Ok(());
                }
                edges.default.for_each(p, |part| {
                    part.iter().for_each(|e| {
                        one((e >> 32) as u32);
                        one(*e as u32);
                    });
                })?;
                edges.named.for_each(p, |part| {
                    part.iter().for_each(|&[s, o, _]| {
                        one(s);
                        one(o);
                    });
                })?;
            }
        })?;
        let bytes = |n: AtomicU64| (TERM << shift) + EDGE * n.into_inner();
        Ok(neighbours.into_iter().map(bytes).collect())
    }

    /// Splits `strings.jd` by shard and writes the dictionaries. A shard numbers first the terms that it owns, in the
    /// order of their ids, then the terms that all shards have. Indexes use these numbers.
    fn write_terms(
        &self,
        blocks: &Blocks,
        ids: &[u32],
        folders: &[PathBuf],
        indexes: &IndexesToBuild<'_>,
    ) -> Result<Vec<String>> {
        // For each term, the shards that have it without owning it, and its number in each.
        let mut others: FxHashMap<u32, Vec<(u32, u32)>> = FxHashMap::default();
        for shard in 0..blocks.shards() {
            for (id, number) in blocks
                .foreign(shard)
                .into_iter()
                .zip(blocks.terms_of(shard) + 1..)
            {
                others.entry(id).or_default().push((shard, number));
            }
        }
        let strings = Strings::open(self.dir)?;
        let parts = split_strings(&strings, folders, |lex, give| {
            let Some(&id) = ids.get(lex as usize) else {
                return;
            };
            if let Some(place) = blocks.place(id) {
                give(place.shard as usize);
            }
            for other in others.get(&id).into_iter().flatten() {
                give(other.0 as usize);
            }
        })?;
        drop(strings);
        let whole = self.dir.join(STRINGS_FILE);
        std::fs::remove_file(&whole).map_err(|e| Error::io(whole, e))?;
        let room = |&terms: &u32| Vec::with_capacity(terms as usize);
        let mut numbers: Vec<Vec<u32>> = parts.iter().map(room).collect();
        let first: Vec<u32> = (0..blocks.shards())
            .map(|s| blocks.first_key(s).0)
            .collect();
        for &id in ids {
            if let Some(place) = blocks.place(id) {
                let shard = place.shard as usize;
                numbers[shard].push(place.local.0 - first[shard] + 1);
            }
            for other in others.get(&id).into_iter().flatten() {
                numbers[other.0 as usize].push(other.1);
            }
        }
        let mut built = Vec::new();
        for (folder, numbers) in folders.iter().zip(numbers) {
            write_dictionary(folder, &numbers, self.threads)?;
            built = build_indexes(
                folder,
                indexes.kinds,
                &numbers,
                indexes.memory,
                &self.cancel,
            )?;
        }
        Ok(built)
    }

    /// Writes checksums and manifest of each shard, and the manifest of the whole store.
    pub(super) fn seal_shards(
        &mut self,
        union_default: bool,
        blocks: &Blocks,
        placement: Placement,
        indexes: &[String],
    ) -> Result<()> {
        let folders = folders(self.dir, Some(blocks));
        let mut sealed = Vec::with_capacity(folders.len());
        let mut all = Vec::new();
        for folder in &folders {
            let names = FILES.into_iter().chain([BLOCKS]).map(str::to_owned);
            let names = names.chain(indexes.iter().cloned());
            let names = names.chain(self.write_prefixes(folder)?);
            let files = lengths(folder, names)?;
            let mut sums = Checksums::compute(folder, &files, self.threads)?;
            let bytes = sums.to_bytes();
            // The epoch does not depend on indexes and prefixes, which do not assign ids.
            sums.blocks.truncate(FILES.len() + 1);
            all.extend_from_slice(&xxh3_64(&sums.to_bytes()).to_le_bytes());
            sealed.push((files, bytes));
        }
        // Equal data that is split in the same way makes equal files, hence equal epochs.
        let epoch = xxh3_64(&all);
        let mut cluster = Cluster {
            epoch,
            placement,
            block_shift: blocks.shift(),
            union_default,
            quads: self.report.quads_stored,
            terms: self.report.terms,
            shards: blocks.shards(),
            merged: 0,
            hashes: Vec::with_capacity(folders.len()),
        };
        let mut written = Vec::new();
        for ((shard, folder), (files, sums)) in (0..).zip(&folders).zip(sealed) {
            let manifest = Manifest {
                epoch,
                union_default,
                quads: cluster.quads,
                terms: cluster.terms,
                files: files.clone(),
                checksums: xxh3_64(&sums),
                shard: Some([shard, blocks.shards()]),
                ..Manifest::default()
            };
            let text = manifest.to_text().into_bytes();
            cluster.hashes.push(xxh3_64(&text));
            let own = shard_folder(shard);
            written.extend(
                files
                    .into_iter()
                    .map(|(n, len)| (format!("{own}/{n}"), len)),
            );
            for (name, bytes) in [(CHECKSUMS, sums), (MANIFEST, text)] {
                put(folder, name, &bytes)?;
                written.push((format!("{own}/{name}"), bytes.len() as u64));
            }
            // Listed as a file, so that the folder itself is made durable, too.
            written.push((own, 0));
        }
        let text = cluster.to_text().into_bytes();
        put(self.dir, CLUSTER, &text)?;
        written.push((CLUSTER.to_owned(), text.len() as u64));
        self.report.store_bytes = written.iter().map(|f| f.1).sum();
        self.report.files = written;
        Ok(())
    }
}
