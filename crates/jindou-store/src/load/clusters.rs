//! Fourth phase: characteristic sets, and the ids that follow from them.
//!
//! Vertices with the same classes, out-predicates and in-predicates form a cluster, which gets consecutive ids.
//! Clusters are ordered by their classes, then out-predicates, then in-predicates, each list by descending frequency,
//! so that a class or a predicate has few runs of ids. Within a cluster, ids follow the lexicographic order of terms,
//! so that the store does not depend on the order of the input.

use super::partition::Partitioned;
use super::read::on_threads;
use super::trie::{self, Labelling, Trie};
use jindou_model::memory::huge_zeroed;
use jindou_model::sync::lock;
use jindou_model::{Invariant, Result};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// Vertices with the same classes, out-predicates and in-predicates.
#[derive(Clone, Copy, Debug)]
pub(super) struct VertexCluster {
    /// Node of the class set in [`Clusters::classes`].
    pub class_set: u32,
    /// Node of the out-set in [`Clusters::out_sets`].
    pub out_set: u32,
    /// Node of the in-set in [`Clusters::in_sets`].
    pub in_set: u32,
    /// First id of the cluster.
    pub start: u32,
    /// Number of vertices.
    pub len: u32,
}

/// All clusters in the order of their ids, and the sets that define them.
#[derive(Debug)]
pub(super) struct Clusters {
    /// The clusters in the order of their ids.
    pub clusters: Vec<VertexCluster>,
    /// Sets of classes; labels are positions in `class_terms`.
    pub class_sets: Trie,
    /// Sets of out-predicates; labels are dense predicate ids.
    pub out_sets: Trie,
    /// Sets of in-predicates; labels are dense predicate ids.
    pub in_sets: Trie,
    /// Lexicographic indexes of the classes, most frequent first.
    pub class_terms: Vec<u32>,
    /// Vertex id by lexicographic index.
    pub id_of_lex: Vec<u32>,
}

struct Labelled {
    trie: Trie,
    state: Vec<u32>,
    /// Position of each used node of the trie in the order of clusters.
    order: Vec<u32>,
}

impl Labelled {
    fn new(trie: Trie, state: Vec<u32>, frequency: &[u64]) -> Self {
        let mut used = vec![false; trie.len()];
        for &s in &state {
            used[s as usize] = true;
        }
        let order = trie::order(&trie, &used, &trie::rank_by_frequency(frequency));
        Self { trie, state, order }
    }
}

/// Gives every vertex the predicates of which it is a subject (or object) as labels.
fn by_predicate(
    edges: &Partitioned,
    predicates: usize,
    vertices: usize,
    out: bool,
) -> Result<Labelled> {
    let mut l = Labelling::new(vertices);
    let mut frequency = Vec::with_capacity(predicates + 1);
    let shift = if out { 32 } else { 0 };
    for p in 0..predicates {
        frequency.push(l.begin(p as u32));
        edges.default.for_each(p, |part| {
            part.iter().for_each(|&e| l.add((e >> shift) as u32));
        })?;
        edges.named.for_each(p, |part| {
            part.iter().for_each(|e| l.add(e[usize::from(!out)]));
        })?;
    }
    let (trie, state, last) = l.finish();
    frequency.push(last);
    // `begin` returns the number of members of the previous label, so the first value belongs to no label.
    frequency.remove(0);
    Ok(Labelled::new(trie, state, &frequency))
}

/// Instances grouped by class.
struct Instances {
    /// Lexicographic index of each class.
    classes: Vec<u32>,
    /// Start of each class's instances in `subjects`, and the end.
    offsets: Vec<u64>,
    subjects: Vec<u32>,
}

impl Instances {
    fn group(edges: &Partitioned, rdf_type: Option<usize>) -> Result<Self> {
        let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
        let each = |f: &mut dyn FnMut(u32, u32)| -> Result<()> {
            let Some(p) = rdf_type else { return Ok(()) };
            edges.default.for_each(p, |part| {
                part.iter().for_each(|&e| f((e >> 32) as u32, e as u32));
            })?;
            edges.named.for_each(p, |part| {
                part.iter().for_each(|e| f(e[0], e[1]));
            })
        };
        each(&mut |_, class| *counts.entry(class).or_default() += 1)?;
        let mut classes: Vec<u32> = counts.keys().copied().collect();
        classes.sort_unstable();
        let mut offsets = vec![0];
        let mut sum = 0;
        for c in &classes {
            sum += counts[c];
            offsets.push(sum);
        }
        let place: FxHashMap<u32, u32> = (0u32..).zip(&classes).map(|(i, &c)| (c, i)).collect();
        let mut at = offsets.clone();
        let mut subjects = huge_zeroed(sum as usize);
        each(&mut |s, class| {
            let next = &mut at[place[&class] as usize];
            subjects[*next as usize] = s;
            *next += 1;
        })?;
        Ok(Self {
            classes,
            offsets,
            subjects,
        })
    }

    fn of_class(&self, i: usize) -> &[u32] {
        &self.subjects[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }
}

/// Gives every instance its classes as labels; returns the classes, most frequent first.
fn by_class(
    edges: &Partitioned,
    rdf_type: Option<usize>,
    vertices: usize,
) -> Result<(Labelled, Vec<u32>)> {
    let instances = Instances::group(edges, rdf_type)?;
    let n = instances.classes.len();
    // Counts the distinct instances of each class, which decide the order of labels.
    let mut seen: Vec<u64> = vec![0; vertices.div_ceil(64)];
    let mut frequency = vec![0u64; n];
    for (i, f) in frequency.iter_mut().enumerate() {
        for &s in instances.of_class(i) {
            let (word, bit) = (&mut seen[s as usize / 64], 1 << (s % 64));
            *f += u64::from(*word & bit == 0);
            *word |= bit;
        }
        for &s in instances.of_class(i) {
            seen[s as usize / 64] = 0;
        }
    }
    drop(seen);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(frequency[i]));
    let mut l = Labelling::new(vertices);
    for (label, &i) in order.iter().enumerate() {
        l.begin(label as u32);
        for &s in instances.of_class(i) {
            l.add(s);
        }
    }
    let (trie, state, _) = l.finish();
    let descending: Vec<u64> = order.iter().map(|&i| frequency[i]).collect();
    Ok((
        Labelled::new(trie, state, &descending),
        order.iter().map(|&i| instances.classes[i]).collect(),
    ))
}

/// Finds the clusters of all vertices and assigns ids. `rdf_type` is the dense id of that predicate.
pub(super) fn cluster(
    edges: &Partitioned,
    predicates: usize,
    rdf_type: Option<usize>,
    vertices: usize,
    threads: usize,
) -> Result<Clusters> {
    let (out, into, class): (Mutex<Option<_>>, Mutex<Option<_>>, Mutex<Option<_>>) =
        Default::default();
    // The three labellings read the same edges and share nothing else, so they run in parallel.
    let tasks = std::sync::atomic::AtomicUsize::new(0);
    on_threads(threads.min(3), |_| {
        loop {
            match tasks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                0 => *lock(&out) = Some(by_predicate(edges, predicates, vertices, true)?),
                1 => *lock(&into) = Some(by_predicate(edges, predicates, vertices, false)?),
                2 => *lock(&class) = Some(by_class(edges, rdf_type, vertices)?),
                _ => return Ok(()),
            }
        }
    })?;
    const MADE: &str = "each labelling is made";
    let out = lock(&out).take().invariant(MADE);
    let into = lock(&into).take().invariant(MADE);
    let (class, class_terms) = lock(&class).take().invariant(MADE);
    let (clusters, id_of_lex) = number(&out, &into, &class, class.state.len(), threads)?;
    Ok(Clusters {
        clusters,
        class_sets: class.trie,
        out_sets: out.trie,
        in_sets: into.trie,
        class_terms,
        id_of_lex,
    })
}

type Combination = [u32; 3];

/// A range of vertices that one thread numbers.
struct VertexShare<'a> {
    first: usize,
    /// For each vertex, first the local number of its combination of sets, then its id.
    ids: &'a mut [u32],
    combinations: Vec<Combination>,
    /// Number of vertices of each combination; later the next id of each.
    counts: Vec<u32>,
}

impl VertexShare<'_> {
    /// Numbers the combinations of sets that the vertices have, and counts the vertices of each.
    fn count_combinations(&mut self, [class, out, into]: [&Labelled; 3]) {
        let mut numbers: FxHashMap<Combination, u32> = FxHashMap::default();
        let mut last = ([u32::MAX; 3], 0);
        for (i, slot) in self.ids.iter_mut().enumerate() {
            let v = self.first + i;
            let c = [class.state[v], out.state[v], into.state[v]];
            if c != last.0 {
                let new = numbers.len() as u32;
                let number = *numbers.entry(c).or_insert(new);
                if number == new {
                    self.combinations.push(c);
                    self.counts.push(0);
                }
                last = (c, number);
            }
            *slot = last.1;
            self.counts[last.1 as usize] += 1;
        }
    }

    /// Replaces the numbers of combinations by ids.
    fn assign_ids(&mut self) {
        for slot in self.ids.iter_mut() {
            let next = &mut self.counts[*slot as usize];
            *slot = *next;
            *next += 1;
        }
    }
}

/// Assigns ids by a counting sort of the vertices by their combination of sets. Returns the clusters in the order of
/// their ids, and the id of each vertex.
fn number(
    out: &Labelled,
    into: &Labelled,
    class: &Labelled,
    vertices: usize,
    threads: usize,
) -> Result<(Vec<VertexCluster>, Vec<u32>)> {
    let mut ids: Vec<u32> = huge_zeroed(vertices);
    let size = vertices.div_ceil(threads.max(1)).max(1);
    let mut shares: Vec<Mutex<VertexShare<'_>>> = ids
        .chunks_mut(size)
        .enumerate()
        .map(|(i, ids)| {
            Mutex::new(VertexShare {
                first: i * size,
                ids,
                combinations: Vec::new(),
                counts: Vec::new(),
            })
        })
        .collect();
    let sets = [class, out, into];
    for_each_share(&shares, |share| share.count_combinations(sets))?;
    let clusters = place_clusters(&mut shares, sets);
    for_each_share(&shares, |share| share.assign_ids())?;
    drop(shares);
    Ok((clusters, ids))
}

/// Calls `work` with each share, each on a thread of its own.
fn for_each_share(
    shares: &[Mutex<VertexShare<'_>>],
    work: impl Fn(&mut VertexShare<'_>) + Sync,
) -> Result<()> {
    on_threads(shares.len(), |t| {
        if let Some(share) = shares.get(t) {
            work(&mut lock(share));
        }
        Ok(())
    })
}

/// Orders the combinations of all shares, and gives each share the first id of each of its combinations. Returns the
/// clusters in the order of their ids.
fn place_clusters(
    shares: &mut [Mutex<VertexShare<'_>>],
    sets: [&Labelled; 3],
) -> Vec<VertexCluster> {
    let mut shares: Vec<&mut VertexShare<'_>> = shares
        .iter_mut()
        .map(|s| {
            s.get_mut()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        })
        .collect();
    // Entries are `(combination, index of the share, local number in the share)`.
    let mut all: Vec<([u32; 3], u32, u32)> = Vec::new();
    for (t, share) in shares.iter().enumerate() {
        for (i, c) in share.combinations.iter().enumerate() {
            let place = [0, 1, 2].map(|set| sets[set].order[c[set] as usize]);
            all.push((place, t as u32, i as u32));
        }
    }
    all.sort_unstable();
    let mut clusters: Vec<VertexCluster> = Vec::new();
    let mut last = None;
    let mut next = 1u32;
    for (place, t, i) in all {
        let share = &mut shares[t as usize];
        let [class_set, out_set, in_set] = share.combinations[i as usize];
        if last != Some(place) {
            last = Some(place);
            clusters.push(VertexCluster {
                class_set,
                out_set,
                in_set,
                start: next,
                len: 0,
            });
        }
        let len = std::mem::replace(&mut share.counts[i as usize], next);
        next += len;
        if let Some(c) = clusters.last_mut() {
            c.len += len;
        }
    }
    clusters
}
