//! Verification of a whole store: the hash of every block, then the consistency of its parts.

use super::manifest::{BLOCK, CHECKSUMS, Checksums, MANIFEST, Manifest, ManifestState};
use super::{
    BaseLocation, CURRENT, INDEX, NAMED_IN, NAMED_OUT, SEGMENTS_IN, SEGMENTS_OUT, STATISTICS,
    SegmentRecord,
};
use crate::Base;
use crate::shard::{CLUSTER, Cluster};
use jindou_dictionary::index::Indexes;
use jindou_dictionary::{DICTIONARY_FILE, STRINGS_FILE};
use jindou_graph::segment::KeyRows;
use jindou_graph::shard::LocalKey;
use jindou_model::{Error, FIRST_TAIL_ID, Result, VertexId, private};
use std::ops::Range;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Number of damages listed for one file; further ones are only counted.
const LISTED: u64 = 100;
/// Number of terms that are looked up by their bytes; of larger dictionaries, evenly spaced terms are.
const LOOKUPS: u32 = 1 << 20;
/// A fault in a store, as found by [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Name of the file in the store directory.
    pub file: String,
    /// The affected bytes, if they are known.
    pub bytes: Option<Range<u64>>,
    /// Description of the damage, without its location.
    pub what: String,
}

impl Damage {
    /// Damage of a file, at unknown bytes.
    pub fn new(file: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            bytes: None,
            what: what.into(),
        }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.bytes {
            Some(r) => write!(
                f,
                "{}, bytes {} to {}: {}",
                self.file, r.start, r.end, self.what
            ),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// The result of [`check`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Number of files examined.
    pub files: u64,
    /// Number of bytes that were hashed.
    pub bytes: u64,
    /// Number of edges that were read, each direction counted.
    pub edges: u64,
    /// Number of terms that were read.
    pub terms: u64,
    /// All damages found; empty for a sound store.
    pub damages: Vec<Damage>,
    /// Number of damaged places beyond those listed.
    pub unlisted: u64,
}

impl CheckReport {
    /// Returns true for a sound store.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty()
    }

    /// Adds damage at unknown bytes.
    pub(super) fn add(&mut self, file: &str, what: impl Into<String>) {
        self.add_at(file, None, what);
    }

    fn add_at(&mut self, file: &str, bytes: Option<Range<u64>>, what: impl Into<String>) {
        if self.damages.iter().filter(|d| d.file == file).count() as u64 >= LISTED {
            self.unlisted += 1;
            return;
        }
        self.damages.push(Damage {
            file: file.to_owned(),
            bytes,
            what: what.into(),
        });
    }
}

/// Verifies a store: reads all of it. For indexes other than the value ranks, only the hashes of bytes are verified;
/// see [`check_with`].
///
/// # Errors
/// [`Error::NoStore`], [`Error::NotAStore`], [`Error::Version`], [`Error::Io`] when a file cannot be read. Damage is
/// not an error; it is in the report.
pub fn check(dir: &Path) -> Result<CheckReport> {
    check_with(dir, &Indexes::new())
}

/// As [`check`], but also examines the content of the indexes of these kinds.
///
/// # Errors
/// As [`check`].
pub fn check_with(dir: &Path, indexes: &Indexes) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    match Cluster::read(dir) {
        Ok(Some(cluster)) => {
            super::check_shards::shards(dir, &cluster, indexes, &mut report)?;
            return Ok(report);
        }
        Ok(None) => {}
        Err(e) if e.is_of_store() => {
            report.add(CLUSTER, e.to_string());
            return Ok(report);
        }
        Err(e) => return Err(e),
    }
    let folder = match BaseLocation::find(dir) {
        Ok(place) => place.folder(),
        Err(Error::Damaged { .. }) => {
            report.add(
                CURRENT,
                "has changed since it was written; restore the store from a backup",
            );
            return Ok(report);
        }
        Err(e) => return Err(e),
    };
    let dir = folder.as_path();
    let manifest = match Manifest::read(dir)? {
        ManifestState::Store(m) if m.shard.is_none() => m,
        ManifestState::Damaged => {
            report.add(
                MANIFEST,
                "has changed since it was written; load the data again",
            );
            return Ok(report);
        }
        ManifestState::Store(_) | ManifestState::OtherVersion(_) | ManifestState::None => {
            Manifest::of_store(dir)?
        }
    };
    all_hashes(dir, &manifest, &mut report)?;
    match super::open_at(dir, indexes) {
        Ok((base, _)) => structure(&base, &manifest, &mut report),
        Err(e) if e.is_of_store() => report.add(MANIFEST, format!("does not open: {e}")),
        Err(e) => return Err(e),
    }
    Ok(report)
}

/// Compares the files of a load, and of the merges since then, with their hashes.
pub(super) fn all_hashes(dir: &Path, manifest: &Manifest, report: &mut CheckReport) -> Result<()> {
    let load = HashFile {
        name: CHECKSUMS.to_owned(),
        sum: manifest.checksums,
        files: &manifest.files,
    };
    hashes(dir, &load, report)?;
    for group in &manifest.merged.groups {
        let group = HashFile {
            name: group.checksums_name(),
            sum: group.checksums,
            files: &group.files,
        };
        hashes(dir, &group, report)?;
    }
    Ok(())
}

/// A file of hashes, the file's own hash, and the files whose hashes it contains.
struct HashFile<'a> {
    pub name: String,
    pub sum: u64,
    pub files: &'a [(String, u64)],
}

fn hashes(dir: &Path, of: &HashFile<'_>, report: &mut CheckReport) -> Result<()> {
    let path = dir.join(&of.name);
    let sums = match private::read(&path) {
        Ok(bytes) => {
            report.files += 1;
            report.bytes += bytes.len() as u64;
            let sound = xxh3_64(&bytes) == of.sum;
            let sums = Checksums::parse(&bytes, of.files);
            if !sound || sums.is_none() {
                report.add_at(
                    &of.name,
                    Some(0..bytes.len() as u64),
                    "hash differs from the manifest's",
                );
            }
            sums
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            report.add(&of.name, "is missing");
            None
        }
        Err(e) => return Err(Error::io(path, e)),
    };
    let mut present = Vec::new();
    for (i, (name, len)) in of.files.iter().enumerate() {
        let path = dir.join(name);
        match std::fs::metadata(&path) {
            Ok(m) if m.len() == *len => present.push(i),
            Ok(m) => report.add_at(
                name,
                Some(m.len().min(*len)..m.len().max(*len)),
                format!("has {} bytes, expected {len}", m.len()),
            ),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                report.add(name, "is missing");
            }
            Err(e) => return Err(Error::io(path, e)),
        }
    }
    let files: Vec<(String, u64)> = present.iter().map(|&i| of.files[i].clone()).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let found = Checksums::compute(dir, &files, threads)?;
    for ((&i, (name, len)), got) in present.iter().zip(&files).zip(&found.blocks) {
        report.files += 1;
        report.bytes += len;
        let want = sums.as_ref().and_then(|s| s.blocks.get(i));
        for (block, hash) in got.iter().enumerate() {
            if want.is_some_and(|w| w.get(block) != Some(hash)) {
                let start = (block * BLOCK) as u64;
                let range = start..(start + BLOCK as u64).min(*len);
                report.add_at(name, Some(range), "hash differs: bytes have changed");
            }
        }
    }
    Ok(())
}

fn structure(base: &Base, manifest: &Manifest, report: &mut CheckReport) {
    let s = base.statistics();
    let vertices = s.vertices;
    if u64::from(vertices) != manifest.terms || s.quads != manifest.quads {
        report.add(STATISTICS, "counts differ from the manifest's");
    }
    let mut quads = 0u64;
    for (named, names) in SEGMENT_FILES.iter().enumerate() {
        for (file, name) in base.sets[0].files[named].iter().zip(names) {
            let predicates = file.records().len();
            let merged = base.merged() > 0;
            if predicates > s.predicates.len() || !merged && predicates < s.predicates.len() {
                report.add(name, "has other predicates than the statistics");
            }
            if named == 1 && file.graph_ids() != base.index.graph_ids() {
                report.add(name, "has other graphs than the index");
            }
        }
        for (p, statistics) in (0u32..).zip(&s.predicates) {
            let [out, into] = [0, 1].map(|d| walk_segment(base, p, named, d, report));
            if out != into {
                let names = names.map(|n| file_name(base.set_of(p).generation, n));
                report.add(
                    &names[1],
                    format!("segment {p} has other edges than {}", names[0]),
                );
            }
            let want = [statistics.edges, statistics.named_edges][named];
            if out.edges != want {
                report.add(
                    STATISTICS,
                    format!("predicate {p} has {} edges, not {want}", out.edges),
                );
            }
            quads = quads.saturating_add(out.edges);
        }
    }
    if quads != manifest.quads {
        report.add(
            MANIFEST,
            format!("lists {} quads, but there are {quads}", manifest.quads),
        );
    }
    index(base, report);
    dictionary(base, report);
    base.indexes.check(&base.dictionary, &mut |file, what| {
        report.add(file, what);
    });
}

/// Number of a predicate's edges, and a sum over the edges that does not depend on their order. The two directions must
/// agree in both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct EdgeSum {
    pub edges: u64,
    pub hash: u64,
}

/// Names of the files of segments: of the default graph and of named graphs, each by subject and by object.
pub(super) const SEGMENT_FILES: [[&str; 2]; 2] =
    [[SEGMENTS_OUT, SEGMENTS_IN], [NAMED_OUT, NAMED_IN]];

/// A segment that is being read, and the known facts about it.
struct WalkedSegment<'a> {
    name: &'a str,
    p: u32,
    /// True if the keys are objects.
    swapped: bool,
    base: &'a Base,
    record: SegmentRecord,
}

fn file_name(generation: u32, name: &str) -> String {
    match generation {
        0 => name.to_owned(),
        n => super::file_of(&format!("g{n}"), name),
    }
}

/// True for an id that the store has assigned.
fn is_known(base: &Base, v: u32) -> bool {
    match v.checked_sub(FIRST_TAIL_ID) {
        Some(_) => base.merged.tail.is_assigned(VertexId(v)),
        None => v > 0 && v <= base.vertices(),
    }
}

/// Reads the segment of a predicate, in the file at these positions in [`SEGMENT_FILES`].
pub(super) fn walk_segment(
    base: &Base,
    p: u32,
    named: usize,
    d: usize,
    report: &mut CheckReport,
) -> EdgeSum {
    let set = base.set_of(p);
    let file = &set.files[named][d];
    let what = WalkedSegment {
        name: &file_name(set.generation, SEGMENT_FILES[named][d]),
        p,
        swapped: d == 1,
        base,
        record: file.records().get(p as usize).copied().unwrap_or_default(),
    };
    if named == 0 {
        walk(&file.segment(p), &what, report)
    } else {
        walk(&file.named(p), &what, report)
    }
}

fn walk(segment: &impl KeyRows, what: &WalkedSegment<'_>, report: &mut CheckReport) -> EdgeSum {
    let WalkedSegment { name, p, base, .. } = *what;
    let record = &what.record;
    if record.edges != segment.edges() || record.keys != segment.key_count() {
        report.add(name, format!("segment {p} lies outside the file"));
    }
    let mut sum = EdgeSum::default();
    let mut last_key = 0;
    let mut next = 0;
    let mut longest = 0;
    let mut wrong: Option<&str> = None;
    let finder = segment.finder();
    let whole = segment.for_each_key(|k, key| {
        let id = match &base.shard {
            Some(shard) => shard.blocks.global(shard.number, LocalKey(key)),
            None => key,
        };
        if key <= last_key || !is_known(base, id) || finder.find(key) != k {
            wrong = Some("keys are not in order or not found");
        }
        last_key = key;
        let list = segment.range_of(k);
        if list.start != next || list.is_empty() {
            wrong = Some("lists are not contiguous");
        }
        next = list.end;
        longest = longest.max(list.end - list.start);
        let mut last = (0, 0);
        for i in list {
            let (n, g) = segment.edge(i);
            if (n, g) <= last || !is_known(base, n) || g > 0 && !is_known(base, g) {
                wrong = Some("a list is not in order or holds unknown ids");
            }
            last = (n, g);
            let (s, o) = if what.swapped { (n, id) } else { (id, n) };
            sum.edges += 1;
            sum.hash = sum
                .hash
                .wrapping_add(mix(mix(u64::from(s) << 32 | u64::from(o)) ^ u64::from(g)));
        }
    });
    if !whole {
        wrong = Some("keys are missing");
    }
    if next != segment.edges() {
        wrong = wrong.or(Some("edges belong to no key"));
    }
    if longest != u64::from(record.max_degree) {
        wrong = wrong.or(Some("the longest list is not as recorded"));
    }
    if let Some(what) = wrong {
        report.add(name, format!("segment {p}: {what}"));
    }
    report.edges += sum.edges;
    sum
}

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

pub(super) fn index(base: &Base, report: &mut CheckReport) {
    let vertices = base.vertices();
    let sets = base.index.sets();
    let predicates = base.statistics().predicates.len() as u32;
    let count = sets.offsets.len().saturating_sub(1) as u32;
    let starts_ascend = sets.runs.windows(2).all(|w| w[0].start < w[1].start);
    let numbers = |r: &jindou_graph::sets::SetRun| {
        r.out_set < count && r.in_set < count && r.start <= vertices
    };
    if !starts_ascend || !sets.runs.iter().all(numbers) {
        report.add(INDEX, "runs of characteristic sets are not in order");
    }
    if vertices > 0 && sets.runs.first().map(|r| r.start) != Some(1) {
        report.add(
            INDEX,
            "runs of characteristic sets do not begin at the first id",
        );
    }
    let mut total = 0;
    for set in 0..count {
        let list = sets.list(set);
        total += list.len();
        if list.iter().any(|&p| p >= predicates) || list.windows(2).any(|w| w[0] >= w[1]) {
            report.add(INDEX, format!("characteristic set {set} is not in order"));
        }
    }
    if total != sets.predicates.len() {
        report.add(INDEX, "predicates belong to no characteristic set");
    }
    for (&class, &members) in &base.statistics().classes {
        let Some(runs) = base.class_intervals(class) else {
            continue;
        };
        let ordered = runs.windows(2).all(|w| w[0][1] < w[1][0])
            && runs
                .iter()
                .all(|r| r[0] < r[1] && is_known(base, r[0]) && is_known(base, r[1] - 1));
        let sum: u64 = runs
            .iter()
            .map(|r| u64::from(r[1].saturating_sub(r[0])))
            .sum();
        if !ordered || sum != members {
            report.add(INDEX, format!("intervals of class {class} are wrong"));
        }
    }
    let mut last = 0;
    for &graph in base.index.graph_ids() {
        let mut predicate = None;
        let mut sound = graph > last && graph <= vertices;
        last = graph;
        for part in base.index.graph_parts(graph) {
            sound &= predicate.is_none_or(|p| p < part.predicate) && part.predicate < predicates;
            sound &= part.subjects.windows(2).all(|w| w[0] < w[1]);
            sound &= part.subjects.last().is_some_and(|&s| s <= vertices);
            predicate = Some(part.predicate);
        }
        let small = base.index.small_graph_subjects(graph);
        sound &= small.windows(2).all(|w| w[0] < w[1]);
        sound &= small.last().is_none_or(|&s| s <= vertices);
        // In a sharded store, all quads of a graph may be on another shard.
        let none = predicate.is_none() && small.is_empty();
        let both = predicate.is_some() && !small.is_empty();
        if !sound || both || none && base.shard.is_none() {
            report.add(INDEX, format!("the index vertex of graph {graph} is wrong"));
        }
    }
}

pub(super) fn dictionary(base: &Base, report: &mut CheckReport) {
    let d = base.dictionary();
    let n = match &base.shard {
        Some(shard) => shard.terms(),
        None => base.vertices(),
    };
    if d.len() != n {
        report.add(
            DICTIONARY_FILE,
            format!("has {} terms, expected {n}", d.len()),
        );
        return;
    }
    let mut seen = vec![0u64; (n as usize).div_ceil(64)];
    let mut numbered = 0;
    for id in 1..=n {
        if let Some(lex) = d.lex(VertexId(id))
            && let Some(word) = seen.get_mut(lex as usize / 64)
        {
            numbered += u32::from(*word >> (lex % 64) & 1 == 0);
            *word |= 1 << (lex % 64);
        }
    }
    if numbered != n {
        report.add(DICTIONARY_FILE, "ids are not a permutation of the terms");
    }
    let mut last: Vec<u8> = Vec::new();
    let mut terms = 0u64;
    let mut ordered = true;
    let whole = d.strings().for_each(0..n, |_, bytes| {
        ordered &= last.as_slice() < bytes;
        last.clear();
        last.extend_from_slice(bytes);
        terms += 1;
    });
    if !whole || !ordered || terms != u64::from(n) {
        report.add(STRINGS_FILE, "terms are not in order or not readable");
    }
    report.terms += terms;
    let mut term = Vec::new();
    let step = (n / LOOKUPS).max(1);
    for id in (1..=n).step_by(step as usize) {
        term.clear();
        if !d.term(VertexId(id), &mut term) || d.lookup(&term) != Some(VertexId(id)) {
            report.add(
                DICTIONARY_FILE,
                format!("term {id} is not found by its bytes"),
            );
            break;
        }
    }
}
