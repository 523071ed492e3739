//! The report that `jindou info` prints.

use super::{Manifest, SegmentInfo};
use crate::base::Base;
use crate::shard::{Cluster, manifest_of, open_shards_with, shard_folder};
use crate::snapshot::Snapshot;
use jindou_dictionary::index::{Indexes, file_of, name_of};
use jindou_graph::segment::FinderKind;
use jindou_graph::statistics::{PredicateStatistics, Statistics};
use jindou_model::{Error, MAX_BASE_VERTICES, Result, VertexId};
use std::path::Path;
use std::sync::Arc;

/// Counts, sizes and shapes of a store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InfoReport {
    /// Id epoch.
    pub epoch: u64,
    /// True if queries see the union of all graphs as default graph.
    pub union_default: bool,
    /// Number of distinct quads.
    pub quads: u64,
    /// Number of quads in named graphs.
    pub named_quads: u64,
    /// Number of terms.
    pub terms: u64,
    /// Number of ids that a load could still have assigned to terms.
    pub ids_left: u64,
    /// Number of ids of terms that updates added and no quad uses any more; the next new terms get these ids.
    pub free_ids: u64,
    /// Named graphs.
    pub graphs: u64,
    /// Number of the last snapshot that is merged into the segments; 0 without a merge.
    pub merged: u64,
    /// Number of generations of files that merges wrote.
    pub generations: u64,
    /// Number of transactions in the log that are not in the segments, and bytes of the log's files.
    /// `jindou::Database::info` sets them.
    pub log: [u64; 2],
    /// True if the counts of quads, graphs, terms, edges and instances include the log's transactions.
    /// `jindou::Database::info` adds them, unless the log cannot be read. Sizes and segments are always those of the
    /// files.
    pub with_log: bool,
    /// Number of quads in the files.
    pub quads_in_files: u64,
    /// Runs of ids with equal characteristic sets.
    pub set_runs: u64,
    /// Number of sets that the planner uses.
    pub planner_sets: u64,
    /// Total size of all files in bytes.
    pub bytes: u64,
    /// (part, bytes): dictionary sections, segments by direction, index, statistics.
    pub parts: Vec<(String, u64)>,
    /// Indexes with a file of their own, or that should have one: name, state in words, bytes.
    pub indexes: Vec<(String, String, u64)>,
    /// All predicates, largest first.
    pub predicates: Vec<PredicateInfo>,
    /// (canonical bytes of the class, instances), largest first.
    pub classes: Vec<(Vec<u8>, u64)>,
}

/// One predicate in [`InfoReport`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PredicateInfo {
    /// Canonical bytes of the predicate's term.
    pub term: Vec<u8>,
    /// Number of edges in the default graph and in named graphs.
    pub edges: [u64; 2],
    /// Number of distinct subjects and objects (in the default graph, or in the named graphs if that has none).
    pub ends: [u64; 2],
    /// Key finders of the out and the in segment (of the same graphs as `ends`).
    pub finders: [FinderKind; 2],
    /// Bytes of the segments, out and in, all graphs.
    pub bytes: [u64; 2],
}

impl PredicateInfo {
    /// A predicate without edges.
    #[must_use]
    pub fn new(term: Vec<u8>) -> Self {
        Self {
            term,
            edges: [0; 2],
            ends: [0; 2],
            finders: [FinderKind::Empty; 2],
            bytes: [0; 2],
        }
    }
}

/// The report on a store. O(predicates + classes).
///
/// # Errors
/// As [`crate::open`].
pub fn info(dir: &Path) -> Result<InfoReport> {
    info_with(dir, &Indexes::new())
}

/// As [`info`], including the indexes of these kinds.
///
/// # Errors
/// As [`super::open_at`].
pub fn info_with(dir: &Path, indexes: &Indexes) -> Result<InfoReport> {
    let Some(cluster) = Cluster::read(dir)? else {
        let manifest = super::open::current(dir)?.1;
        return info_of(&super::open_at(dir, indexes)?.0, &manifest);
    };
    let mut whole: Option<InfoReport> = None;
    // A server may have only some of the shards.
    let is_here = |&shard: &u32| dir.join(shard_folder(shard)).exists();
    let here: Vec<u32> = (0..cluster.shards).filter(is_here).collect();
    let bases = open_shards_with(dir, &cluster, &here, indexes)?;
    for (shard, base) in here.into_iter().zip(bases.iter().flatten()) {
        let own = info_of(base, &manifest_of(dir, &cluster, shard)?)?;
        match &mut whole {
            Some(whole) => whole.add_shard(own),
            None => whole = Some(own),
        }
    }
    whole.ok_or_else(|| Error::not_a_store(dir, "it has none of the store's shards"))
}

impl InfoReport {
    /// Adds the file sizes of another shard of the same store. Counts are those of the whole store in each shard's
    /// report.
    fn add_shard(&mut self, other: Self) {
        self.bytes += other.bytes;
        for (name, bytes) in other.parts {
            match self.parts.iter_mut().find(|(of, _)| *of == name) {
                Some((_, sum)) => *sum += bytes,
                None => self.parts.push((name, bytes)),
            }
        }
        for (own, other) in self.predicates.iter_mut().zip(other.predicates) {
            own.bytes = [0, 1].map(|i| own.bytes[i] + other.bytes[i]);
        }
    }
}

fn info_of(base: &Arc<Base>, manifest: &Manifest) -> Result<InfoReport> {
    let s = base.statistics();
    // Includes the terms of updates that were merged.
    let all = Snapshot::of_base(Arc::clone(base));
    let term = |v: u32| {
        let mut out = Vec::new();
        match base.own_data() {
            // Every shard has the terms of most predicates and classes.
            Some(own) => drop(own.term(v, &mut out)),
            None => drop(all.term(VertexId(v), &mut out)),
        }
        out
    };
    let segments = segment_infos(base);
    let merged_files = manifest.merged.groups.iter().flat_map(|g| &g.files);
    let merged_bytes: u64 = merged_files.map(|f| f.1).sum();
    let mut by_size: Vec<(u32, u64)> = s.classes.iter().map(|(&c, &n)| (c, n)).collect();
    by_size.sort_unstable_by_key(|&(c, n)| (std::cmp::Reverse(n), c));
    let free_ids = u64::from(all.tail().free_count());
    let terms = (manifest.terms).saturating_add(u64::from(all.tail().len()) - free_ids);
    let report = InfoReport {
        log: [0; 2],
        with_log: false,
        quads_in_files: manifest.quads,
        epoch: manifest.epoch,
        union_default: manifest.union_default,
        quads: manifest.quads,
        named_quads: s
            .predicates
            .iter()
            .fold(0, |n, p| n.saturating_add(p.named_edges)),
        terms,
        ids_left: u64::from(MAX_BASE_VERTICES).saturating_sub(terms),
        free_ids,
        graphs: base.index.graph_ids().len() as u64,
        set_runs: base.index.sets().runs.len() as u64,
        planner_sets: s.sets.len() as u64,
        bytes: manifest.files.iter().map(|f| f.1).sum::<u64>() + merged_bytes,
        indexes: base
            .indexes()
            .states()
            .into_iter()
            .map(|(name, state)| {
                let bytes = file_bytes(manifest, &file_of(&name));
                (name, state, bytes)
            })
            .collect(),
        merged: manifest.merged.number,
        generations: base.generations() as u64,
        parts: part_bytes(base, manifest, &segments),
        predicates: predicate_infos(s, &segments, term),
        classes: by_size.into_iter().map(|(c, n)| (term(c), n)).collect(),
    };
    // The report is invalid if a file failed while it was read.
    base.check_files()?;
    Ok(report)
}

/// The segments of all predicates, by `named * 2 + direction`. Of each predicate, only the newest segments, without
/// older ones that they replace.
fn segment_infos(base: &Base) -> [Vec<SegmentInfo>; 4] {
    let predicates = 0..base.statistics().predicates.len();
    [0, 1, 2, 3].map(|i| {
        let of_set: Vec<Vec<SegmentInfo>> = base
            .sets
            .iter()
            .map(|set| set.files[i / 2][i % 2].infos().collect())
            .collect();
        let newest = |p: usize| {
            let set = base.place.get(p).copied().unwrap_or(0);
            let found = of_set.get(usize::from(set)).and_then(|f| f.get(p));
            found.copied().unwrap_or(SegmentInfo::EMPTY)
        };
        predicates.clone().map(newest).collect()
    })
}

fn file_bytes(manifest: &Manifest, name: &str) -> u64 {
    let file = manifest.files.iter().find(|f| f.0 == name);
    file.map_or(0, |f| f.1)
}

/// Bytes of the parts of a store's files.
fn part_bytes(
    base: &Base,
    manifest: &Manifest,
    segments: &[Vec<SegmentInfo>; 4],
) -> Vec<(String, u64)> {
    let sections = base.dictionary().sections().into_iter();
    let mut parts: Vec<(String, u64)> = sections
        .map(|(name, n)| (format!("dictionary: {name}"), n))
        .collect();
    for (direction, name) in ["out", "in"].into_iter().enumerate() {
        for (named, kind) in ["segments", "named"].into_iter().enumerate() {
            let infos = &segments[named * 2 + direction];
            let keys = infos.iter().map(|i| i.finder_bytes).sum();
            let edges = infos
                .iter()
                .fold(0u64, |n, i| n.saturating_add(i.edge_bytes));
            parts.push((format!("{kind} {name}: keys"), keys));
            parts.push((format!("{kind} {name}: edges"), edges));
        }
    }
    let (sets, classes, graphs) = base.index.part_bytes();
    parts.push(("index: characteristic sets".into(), sets));
    parts.push(("index: classes".into(), classes));
    parts.push(("index: graphs".into(), graphs));
    let state = manifest.merged.state();
    let statistics = state.and_then(|g| g.length(super::STATISTICS));
    let statistics = statistics.unwrap_or_else(|| file_bytes(manifest, super::STATISTICS));
    parts.push(("statistics".into(), statistics));
    if let Some(delta) = state.and_then(|g| g.length(super::DELTA)) {
        parts.push(("terms and sets of updates".into(), delta));
    }
    for (name, bytes) in &manifest.files {
        if let Some(name) = name_of(name) {
            parts.push((format!("index of terms: {name}"), *bytes));
        }
    }
    parts
}

/// All predicates, largest first.
fn predicate_infos(
    s: &Statistics,
    segments: &[Vec<SegmentInfo>; 4],
    term: impl Fn(u32) -> Vec<u8>,
) -> Vec<PredicateInfo> {
    let info = |(p, x): (usize, &PredicateStatistics)| {
        let kind = usize::from(x.edges == 0) * 2;
        let of = |i: usize| segments[i].get(p);
        let finder = |i: usize| of(i).map_or(FinderKind::Empty, |i| i.kind);
        let bytes = |i: usize| of(i).map_or(0, |i| i.edge_bytes.saturating_add(i.finder_bytes));
        PredicateInfo {
            term: term(x.vertex),
            edges: [x.edges, x.named_edges],
            ends: [x.subjects.into(), x.objects.into()],
            finders: [finder(kind), finder(kind + 1)],
            bytes: [
                bytes(0).saturating_add(bytes(2)),
                bytes(1).saturating_add(bytes(3)),
            ],
        }
    };
    let mut predicates: Vec<PredicateInfo> = s.predicates.iter().enumerate().map(info).collect();
    predicates.sort_by_key(|p| std::cmp::Reverse(p.edges[0].saturating_add(p.edges[1])));
    predicates
}
