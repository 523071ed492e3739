//! Bulk load: from quads to a store directory.
//!
//! ```text
//! read ──► merge terms ──► group by predicate ──► cluster ids ──► dictionary ──► segments ──► index ──► put in place
//! runs     strings.jd      (s, o) pairs           id of a term    dictionary.jd  segments-*.jd  index.jd,
//! statistics.jd
//! ```
//!
//! All intermediate data is bounded by [`LoadOptions::memory`]: runs of terms and quads spill to unlinked files, and so
//! do pairs. A few arrays of 4 bytes per term stay in memory whatever the limit. The result depends only on the set of
//! quads and the prefixes that documents declare, not on the order of quads, the threads or the memory.

mod clusters;
mod index;
pub(crate) mod memory;
mod partition;
mod read;
mod segments;
mod shards;
mod sort;
mod trie;

use crate::directory::{
    Building, Bytes, CHECKSUMS, Checksums, FILES, INDEX, MANIFEST, Manifest, NAMED_IN, NAMED_OUT,
    PREFIXES, SEGMENTS_IN, SEGMENTS_OUT, STATISTICS, SegmentFile, prefixes_text, sync_path,
    write_statistics,
};
use crate::shard::Sharding;
use clusters::Clusters;
use jindou_dictionary::index::{Indexes, build_indexes};
use jindou_dictionary::{
    MergedVocabulary, Strings, StringsWriter, TermRun, merge_runs, write_dictionary,
};
use jindou_graph::shard::Blocks;
use jindou_model::prefixes::PrefixTable;
use jindou_model::spill::SpillDir;
use jindou_model::{
    CancelToken, Error, MAX_BASE_VERTICES, Machine, MemoryBudget, Progress, QuadSource, Resource,
    Result, private, setters, term,
};
use partition::Partitioned;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Names of the phases, by [`Progress::phase`].
pub const PHASES: [&str; 8] = [
    "reading",
    "merging terms",
    "grouping by predicate",
    "clustering",
    "dictionary",
    "segments",
    "index",
    "writing to disk",
];

/// Options of a load.
///
/// ```
/// let options = jindou_store::LoadOptions::default().with_threads(1).with_replace(true);
/// assert!(options.replace && !options.union_default);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Memory limit in bytes. A few arrays of 4 bytes per term are needed in any case and may exceed it.
    pub memory: u64,
    /// Number of threads, at least 1.
    pub threads: usize,
    /// True to replace an existing store.
    pub replace: bool,
    /// True if queries see the union of all graphs as their default graph.
    pub union_default: bool,
    /// Indexes to build. A database uses only the indexes of the kinds that it is opened with.
    pub indexes: Indexes,
    /// Prefixes that the store has in addition to those that the data declares, and before them; used by a
    /// reclustering.
    #[doc(hidden)]
    pub prefixes: Arc<PrefixTable>,
    /// How to split the store into shards; `None`, or one shard, for an unsharded store.
    pub sharding: Option<Sharding>,
}

impl Default for LoadOptions {
    /// Options for this machine's memory and processors, as by [`Self::on`].
    fn default() -> Self {
        Self::on(Machine::read())
    }
}

impl LoadOptions {
    /// Options with two thirds of a machine's memory and all of its processors.
    #[must_use]
    pub fn on(machine: Machine) -> Self {
        Self {
            memory: machine.memory / 3 * 2,
            threads: machine.cores,
            replace: false,
            union_default: false,
            indexes: Indexes::new(),
            prefixes: Arc::default(),
            sharding: None,
        }
    }

    /// Sets [`prefixes`](Self::prefixes).
    #[doc(hidden)]
    #[must_use]
    pub fn with_prefixes(mut self, prefixes: Arc<PrefixTable>) -> Self {
        self.prefixes = prefixes;
        self
    }

    setters! {
        with_memory: memory = u64;
        with_threads: threads = usize;
        with_replace: replace = bool;
        with_union_default: union_default = bool;
        with_indexes: indexes = Indexes;
        with_sharding: sharding = Option<Sharding>;
    }
}

/// Counts, times and sizes of a completed load.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LoadReport {
    /// Quads delivered by the source.
    pub quads_read: u64,
    /// Distinct quads.
    pub quads_stored: u64,
    /// Distinct terms.
    pub terms: u64,
    /// Number of the store's prefixes.
    pub prefixes: usize,
    /// True if the data declares more prefixes than a store keeps.
    pub prefixes_left_out: bool,
    /// Name and duration in seconds of each phase, in the order of [`PHASES`].
    pub seconds: Vec<(&'static str, f64)>,
    /// Peak memory of the process, in bytes.
    pub peak_bytes: u64,
    /// Total size of all files in bytes.
    pub store_bytes: u64,
    /// Name and size in bytes of each file.
    pub files: Vec<(String, u64)>,
}

/// Loads a source into a store at `dir`. The store appears there at the end, complete and durable; a failed load leaves
/// the previous content.
///
/// # Errors
/// The source's and the sinks' errors; [`Error::StoreExists`], [`Error::NotAStore`] or [`Error::InUse`] when `dir` has
/// a store, has other content or is being written; [`Error::Limit`] when ids, disk space or edges of one predicate run
/// out; [`Error::Io`].
pub fn load(
    dir: &Path,
    source: &dyn QuadSource,
    options: &LoadOptions,
    progress: &Progress,
) -> Result<LoadReport> {
    if let Some(sharding) = &options.sharding {
        shards::check(sharding, options)?;
    }
    let building = Building::begin(dir, options.replace)?;
    let mut load = LoadRun::new(building.dir(), options, progress);
    load.run(source, options)?;
    let mut report = load.report;
    let clock = load.clock;
    let names: Vec<&str> = report.files.iter().map(|f| f.0.as_str()).collect();
    building.put_in_place(&names)?;
    report
        .seconds
        .push((PHASES[7], clock.elapsed().as_secs_f64()));
    report.peak_bytes = memory::peak_bytes();
    progress.phase_permille.store(1000, Ordering::Relaxed);
    Ok(report)
}

/// Data about the base that a load replaces by a new one.
#[derive(Clone, Copy, Debug)]
pub struct Successor {
    /// Number of the snapshot whose quads the source returns.
    pub snapshot: u64,
    /// Number of times that the store was reclustered, for the epoch: each base of a store has an epoch of its own,
    /// since ids of terms that updates add differ even between bases with the same quads.
    pub number: u64,
}

/// Loads a source into a new folder, as the next base of a store. The files are durable when this returns; after an
/// error the folder is removed. [`LoadOptions::replace`] is ignored. `cancel` is checked while indexes are built; the
/// source must check it itself.
///
/// # Errors
/// The source's errors; an index's errors; [`Error::Limit`] when terms run out or the disk is full; [`Error::Io`].
pub fn load_successor(
    folder: &Path,
    source: &dyn QuadSource,
    of: Successor,
    options: &LoadOptions,
    cancel: &CancelToken,
    progress: &Progress,
) -> Result<LoadReport> {
    if options.sharding.is_some_and(|s| s.shards > 1) {
        return Err(Error::Unsupported(
            "a new base of a store cannot be sharded; load the store again".into(),
        ));
    }
    private::create_folder(folder).map_err(|e| Error::io(folder, e))?;
    let made = || -> Result<LoadReport> {
        let mut load = LoadRun::new(folder, options, progress);
        load.of = Some(of);
        load.cancel = cancel.clone();
        load.run(source, options)?;
        let mut report = load.report;
        for (name, _) in &report.files {
            sync_path(&folder.join(name))?;
        }
        sync_path(folder)?;
        sync_path(folder.parent().unwrap_or(Path::new(".")))?;
        let seconds = load.clock.elapsed().as_secs_f64();
        report.seconds.push((PHASES[7], seconds));
        report.peak_bytes = memory::peak_bytes();
        progress.phase_permille.store(1000, Ordering::Relaxed);
        Ok(report)
    };
    let made = made();
    if made.is_err() {
        // If the removal fails, the folder is removed when the store is opened.
        let _ = std::fs::remove_dir_all(folder);
    }
    made
}

struct LoadRun<'a> {
    dir: &'a Path,
    of: Option<Successor>,
    cancel: CancelToken,
    threads: usize,
    memory: u64,
    progress: &'a Progress,
    clock: Instant,
    prefixes: PrefixTable,
    report: LoadReport,
}

impl<'a> LoadRun<'a> {
    fn new(dir: &'a Path, options: &LoadOptions, progress: &'a Progress) -> Self {
        Self {
            dir,
            of: None,
            cancel: CancelToken::new(),
            threads: options.threads.max(1),
            memory: options.memory,
            progress,
            clock: Instant::now(),
            prefixes: PrefixTable::clone(&options.prefixes),
            report: LoadReport::default(),
        }
    }

    /// Ends a phase: records its time and releases memory.
    fn ended(&mut self, phase: usize) {
        let now = Instant::now();
        let seconds = (now - self.clock).as_secs_f64();
        self.report.seconds.push((PHASES[phase], seconds));
        self.clock = now;
        self.progress.phase_permille.store(0, Ordering::Relaxed);
        self.progress
            .phase
            .store(phase as u64 + 1, Ordering::Relaxed);
        memory::trim();
    }

    fn run(&mut self, source: &dyn QuadSource, options: &LoadOptions) -> Result<()> {
        // While reading, the workers' tables take at most half of the memory; they hold one run each. Closed runs take
        // the rest.
        let interner = (self.memory / 4 / self.threads as u64).clamp(1 << 20, MAX_INTERNER);
        let tables = 2 * interner * self.threads as u64;
        let budget = MemoryBudget::new(self.memory.saturating_sub(tables) * 3 / 4);
        let spill = SpillDir::new(self.dir, budget.clone())?;
        let read = self.read(source, interner as usize, &spill)?;
        self.ended(0);

        let run_terms: u64 = read.terms.iter().map(|r| u64::from(r.terms())).sum();
        let merged = self.merge_terms(read.terms)?;
        let terms = merged.terms;
        self.ended(1);

        // Memory needed in addition to the edges: positions and maps of the runs (temporary), the spilled quads
        // (temporary), and later four arrays of 4 bytes per term.
        let beside = (8 * run_terms).max(20 * u64::from(terms)) + budget.used() / 4;
        let edge_bytes = self.memory.saturating_sub(beside) / 2;
        let predicates = partition::predicates(&read.quads, &merged.maps);
        let edges = self.group_edges(read.quads, merged.maps, &predicates, edge_bytes)?;
        drop(spill);
        let rdf_type = self.find_rdf_type(&predicates)?;
        self.ended(2);

        let n = predicates.len();
        let clusters = clusters::cluster(&edges, n, rdf_type, terms as usize, self.threads)?;
        self.ended(3);

        let (blocks, indexes) = self.write_dictionaries(options, &clusters, &edges, &predicates)?;
        self.ended(4);

        let parts = self.write_segments(edges, &clusters.id_of_lex, blocks.as_ref())?;
        let written = index::SegmentFiles { parts, blocks };
        self.ended(5);

        self.write_index(&clusters, &written, &predicates, rdf_type)?;
        let blocks = written.blocks;
        drop((clusters, written.parts));
        self.ended(6);

        match (blocks, &options.sharding) {
            (Some(blocks), Some(sharding)) => {
                let placement = sharding.placement;
                self.seal_shards(options.union_default, &blocks, placement, &indexes)
            }
            _ => self.seal(options.union_default, indexes),
        }
    }

    /// A function that stores the progress of the current phase, in thousandths.
    fn tick(&self) -> impl Fn(u64) + Sync + 'a {
        let progress = self.progress;
        move |permille| progress.phase_permille.store(permille, Ordering::Relaxed)
    }

    /// Reads the source into runs, and adopts the prefixes that its documents declare.
    fn read(
        &mut self,
        source: &dyn QuadSource,
        interner_bytes: usize,
        spill: &SpillDir,
    ) -> Result<read::Read> {
        let mut read = read::read(source, self.threads, interner_bytes, spill, self.progress)?;
        self.report.quads_read = read.total;
        self.report.prefixes_left_out = read.prefixes.are_left_out();
        let declared = std::mem::take(&mut read.prefixes).into_changes();
        self.prefixes = self.prefixes.with(&declared);
        self.report.prefixes = self.prefixes.len();
        Ok(read)
    }

    /// Merges the terms of all runs, and writes the store's strings.
    fn merge_terms(&mut self, runs: Vec<TermRun>) -> Result<MergedVocabulary> {
        let run_bytes: u64 = runs.iter().map(TermRun::bytes).sum();
        memory::need_room(self.dir, run_bytes, "the store's strings")?;
        let merged = merge_runs(runs, StringsWriter::create(self.dir)?, self.threads)?;
        let terms = merged.terms;
        if terms > MAX_BASE_VERTICES {
            return Err(Error::limit(
                Resource::Numbers,
                format!(
                    "the data has {terms} terms, more than the {MAX_BASE_VERTICES} that a store can number"
                ),
            ));
        }
        self.report.terms = terms.into();
        Ok(merged)
    }

    /// Groups the edges by predicate: in memory if they take at most `memory` bytes, otherwise in a file.
    fn group_edges(
        &self,
        runs: Vec<read::RunQuads>,
        maps: Vec<Vec<u32>>,
        predicates: &[u32],
        memory: u64,
    ) -> Result<Partitioned> {
        let place = partition::EdgeMemory {
            memory,
            folder: self.dir,
        };
        partition::partition(runs, maps, predicates, &place, self.threads, &self.tick())
    }

    /// The dense id of `rdf:type`, if that is one of the predicates.
    fn find_rdf_type(&self, predicates: &[u32]) -> Result<Option<usize>> {
        let strings = Strings::open(self.dir)?;
        let found = strings
            .find(&term::rdf_type())
            .and_then(|lex| predicates.binary_search(&lex).ok());
        strings.check_file()?;
        Ok(found)
    }

    /// Writes dictionary and indexes of terms. For a sharded store, writes those of every shard, and the block tables.
    /// Returns the blocks and the names of the indexes' files.
    fn write_dictionaries(
        &self,
        options: &LoadOptions,
        clusters: &Clusters,
        edges: &Partitioned,
        predicates: &[u32],
    ) -> Result<(Option<Blocks>, Vec<String>)> {
        let ids = &clusters.id_of_lex;
        let terms = ids.len() as u64;
        // Not less than the size of the arrays of ids, which are in memory anyway.
        let free = self.memory.saturating_sub(edges.held_bytes() + 12 * terms);
        let memory = free.max(4 * terms).max(LEAST_FOR_AN_INDEX);
        let kinds = &options.indexes;
        match options.sharding.filter(|s| s.shards > 1) {
            Some(sharding) => {
                let indexes = shards::IndexesToBuild { kinds, memory };
                let (blocks, built) = self.cut(&sharding, clusters, edges, predicates, &indexes)?;
                Ok((Some(blocks), built))
            }
            None => {
                write_dictionary(self.dir, ids, self.threads)?;
                let built = build_indexes(self.dir, kinds, ids, memory, &self.cancel)?;
                Ok((None, built))
            }
        }
    }

    /// Writes the segments into each shard's folder. Returns the files of each shard, `[named][direction]`.
    fn write_segments(
        &self,
        edges: Partitioned,
        ids: &[u32],
        blocks: Option<&Blocks>,
    ) -> Result<Vec<[[SegmentFile; 2]; 2]>> {
        let bytes = 10 * self.report.quads_read;
        memory::need_room(self.dir, bytes, "the store's segments")?;
        let resources = segments::PhaseResources {
            memory: self
                .memory
                .saturating_sub(edges.held_bytes() + 4 * ids.len() as u64),
            threads: self.threads,
            tick: &self.tick(),
        };
        let folders = shards::folders(self.dir, blocks);
        let paths = |names: [&str; 2]| -> Vec<[PathBuf; 2]> {
            folders.iter().map(|f| names.map(|n| f.join(n))).collect()
        };
        let default = paths([SEGMENTS_OUT, SEGMENTS_IN]);
        let named = paths([NAMED_OUT, NAMED_IN]);
        let n = edges.predicates();
        match blocks {
            None => {
                let whole = &segments::Unsplit;
                segments::write(&edges.default, n, ids, &default, whole, &resources)?;
                segments::write(&edges.named, n, ids, &named, whole, &resources)?;
            }
            Some(blocks) => {
                segments::write(&edges.default, n, ids, &default, blocks, &resources)?;
                segments::write(&edges.named, n, ids, &named, blocks, &resources)?;
            }
        }
        drop(edges);
        let open = |path: &Path| SegmentFile::open(Bytes::map(path)?, &path.to_string_lossy());
        let shards = default.iter().zip(&named);
        shards
            .map(|([out, into], [named_out, named_in])| {
                Ok([
                    [open(out)?, open(into)?],
                    [open(named_out)?, open(named_in)?],
                ])
            })
            .collect()
    }

    /// Writes the index and the statistics into each shard's folder.
    fn write_index(
        &mut self,
        clusters: &Clusters,
        written: &index::SegmentFiles,
        predicates: &[u32],
        rdf_type: Option<usize>,
    ) -> Result<()> {
        let n = predicates.len() as u32;
        written.check(n)?;
        let rdf_type = rdf_type.map(|p| p as u32);
        let id = |&lex: &u32| clusters.id_of_lex[lex as usize];
        let vertices: Vec<u32> = predicates.iter().map(id).collect();
        let index = index::index(clusters, written, rdf_type);
        let statistics = index::statistics(clusters, written, &vertices, rdf_type, self.threads);
        let folders = shards::folders(self.dir, written.blocks.as_ref());
        for (shard, folder) in folders.iter().enumerate() {
            let mut index = index.clone();
            index::graphs(written, shard, n, &mut index);
            create(folder, INDEX, |f| index.write(f))?;
            create(folder, STATISTICS, |f| write_statistics(&statistics, f))?;
        }
        self.report.quads_stored = statistics.quads;
        // The index and the statistics are invalid if a file failed while it was read.
        for file in written.parts.iter().flat_map(|p| p.as_flattened()) {
            file.check_file()?;
        }
        Ok(())
    }

    /// Writes the prefixes into a folder, if there are any. Returns the file's name.
    fn write_prefixes(&self, folder: &Path) -> Result<Option<String>> {
        if self.prefixes.is_empty() {
            return Ok(None);
        }
        put(folder, PREFIXES, prefixes_text(&self.prefixes).as_bytes())?;
        Ok(Some(PREFIXES.to_owned()))
    }

    /// Writes checksums and manifest.
    fn seal(&mut self, union_default: bool, indexes: Vec<String>) -> Result<()> {
        let prefixes = self.write_prefixes(self.dir)?;
        let names = FILES.map(str::to_owned).into_iter();
        let names = names.chain(indexes).chain(prefixes);
        let mut files = lengths(self.dir, names)?;
        let mut sums = Checksums::compute(self.dir, &files, self.threads)?;
        let bytes = sums.to_bytes();
        let checksums = xxh3_64(&bytes);
        // The epoch does not depend on indexes and prefixes, which do not assign ids.
        sums.blocks.truncate(FILES.len());
        let numbered = xxh3_64(&sums.to_bytes());
        let manifest = Manifest {
            // Equal data makes equal files, hence equal ids and epochs. Different data has different epochs.
            epoch: match self.of {
                None => numbered,
                Some(of) => xxh3_64_with_seed(&numbered.to_le_bytes(), of.number),
            },
            snapshot: self.of.map_or(0, |of| of.snapshot),
            union_default,
            quads: self.report.quads_stored,
            terms: self.report.terms,
            files: files.clone(),
            checksums,
            merged: crate::directory::MergedFiles::default(),
            shard: None,
        }
        .to_text();
        for (name, bytes) in [(CHECKSUMS, bytes), (MANIFEST, manifest.into_bytes())] {
            put(self.dir, name, &bytes)?;
            files.push((name.to_owned(), bytes.len() as u64));
        }
        Manifest::date(self.dir);
        self.report.store_bytes = files.iter().map(|f| f.1).sum();
        self.report.files = files;
        Ok(())
    }
}

fn create(
    folder: &Path,
    name: &str,
    write: impl FnOnce(BufWriter<File>) -> std::io::Result<BufWriter<File>>,
) -> Result<()> {
    let path = folder.join(name);
    private::create_new(&path)
        .and_then(|f| write(BufWriter::with_capacity(1 << 20, f)))
        .and_then(|mut f| f.flush())
        .map_err(|e| Error::io(path, e))
}

/// Writes a small file.
fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    private::write(&path, bytes).map_err(|e| Error::io(path, e))
}

/// Names and lengths of these files in a folder.
fn lengths(folder: &Path, names: impl Iterator<Item = String>) -> Result<Vec<(String, u64)>> {
    names
        .map(|name| {
            let path = folder.join(&name);
            let found = std::fs::metadata(&path).map_err(|e| Error::io(path, e))?;
            Ok((name, found.len()))
        })
        .collect()
}

/// Least memory in bytes for building an index, even if a load's memory limit is lower.
const LEAST_FOR_AN_INDEX: u64 = 16 << 20;
/// Largest table of terms in bytes. A larger one results in fewer runs to merge, but its random reads miss the caches.
const MAX_INTERNER: u64 = 256 << 20;
