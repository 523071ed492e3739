//! Encoding of the merge statistics of a base, for the log.
//!
//! ```text
//! ids of new terms without edges      runs + 1; runs: start, length
//! edges of each written predicate     count; edges, keys, longest lists
//! classes whose members changed       count; class, members, runs + 1 or 0 without; runs: start, length
//! sets that subjects left             count; number, set
//! sets that subjects joined           count; set
//! set                                 subjects; classes: count, each class, members;
//!                                     predicates: count, each predicate, subjects without it, edges
//! ```
//!
//! Ascending numbers are stored as differences from the previous ones. Decoding accepts any input and returns an error
//! for invalid bytes.

use super::statistics::{CountedClass, EdgeCounts, MergeStatistics, frequency_of};
use crate::delta::record::{damaged, decode_count, put, take, take_u32};
use crate::snapshot::Snapshot;
use jindou_graph::shard::MAX_SHARDS;
use jindou_graph::statistics::{MAX_PLANNER_SETS, PlannerSet, merge_sets};
use jindou_model::{Error, FIRST_QUERY_ID, FIRST_TAIL_ID, Resource, Result};
use std::collections::BTreeMap;

/// Largest size in bytes of the merge statistics of all shards together.
pub(super) const MAX_BYTES: usize = 32 << 20;
/// Upper bound of one shard's counts; a segment has fewer than 2^32 edges. So sums over all shards and predicates stay
/// below 2^48, the largest number of quads of a store.
const MAX_COUNT: u64 = 1 << 34;
const _: () = assert!((MAX_SHARDS as u64) * MAX_COUNT < 1 << 48);

/// Encodes ascending numbers as differences; holds the previous number.
#[derive(Default)]
struct Ascending(u32);

impl Ascending {
    fn put(&mut self, out: &mut Vec<u8>, n: u32) {
        put(out, u64::from(n.wrapping_sub(self.0)));
        self.0 = n;
    }

    /// Decodes the next number, which is at least the previous one.
    fn take(&mut self, from: &mut &[u8]) -> Result<u32> {
        let next = self.0.checked_add(take_u32(from)?);
        self.0 = next.ok_or_else(|| damaged("a number of its merge statistics is too large"))?;
        Ok(self.0)
    }

    /// Decodes the next number, which is greater than the previous one unless it is the first.
    fn take_next(&mut self, from: &mut &[u8], is_first: bool) -> Result<u32> {
        let before = self.0;
        match self.take(from)? {
            n if n > before || is_first => Ok(n),
            _ => Err(damaged("its merge statistics are out of order")),
        }
    }
}

fn take_below(from: &mut &[u8], end: u64) -> Result<u64> {
    match take(from)? {
        n if n < end => Ok(n),
        _ => Err(damaged("a number of its merge statistics is too large")),
    }
}

fn put_runs(out: &mut Vec<u8>, runs: Option<&[[u32; 2]]>) {
    let Some(runs) = runs else {
        return put(out, 0);
    };
    put(out, runs.len() as u64 + 1);
    let mut at = Ascending::default();
    for &[start, end] in runs {
        at.put(out, start);
        at.put(out, end);
    }
}

fn decode_runs(from: &mut &[u8]) -> Result<Option<Vec<[u32; 2]>>> {
    let count = match take(from)? {
        0 => return Ok(None),
        n => n - 1,
    };
    // Each item takes at least two bytes.
    if count > from.len() as u64 / 2 {
        return Err(damaged("a count is larger than the record"));
    }
    let mut at = Ascending::default();
    let mut runs = Vec::with_capacity(count as usize);
    for _ in 0..count {
        runs.push([at.take_next(from, false)?, at.take_next(from, false)?]);
    }
    Ok(Some(runs))
}

fn put_set(out: &mut Vec<u8>, set: &PlannerSet) {
    put(out, set.subjects);
    put(out, set.classes.len() as u64);
    let mut id = Ascending::default();
    for &(class, members) in &set.classes {
        id.put(out, class);
        put(out, members);
    }
    put(out, set.predicates.len() as u64);
    let mut id = Ascending::default();
    for &(p, subjects, edges) in &set.predicates {
        id.put(out, p);
        put(out, set.subjects.saturating_sub(subjects));
        put(out, edges);
    }
}

fn take_set(from: &mut &[u8], predicates: u32) -> Result<PlannerSet> {
    let mut set = PlannerSet {
        subjects: take_below(from, MAX_COUNT)?,
        ..PlannerSet::default()
    };
    let mut id = Ascending::default();
    for i in 0..decode_count(from, 2)? {
        let class = id.take_next(from, i == 0)?;
        set.classes.push((class, take_below(from, MAX_COUNT)?));
    }
    let mut id = Ascending::default();
    for i in 0..decode_count(from, 3)? {
        let p = id.take_next(from, i == 0)?;
        let subjects = set.subjects - take_below(from, set.subjects + 1)?;
        set.predicates
            .push((p, subjects, take_below(from, MAX_COUNT)?));
    }
    match set.predicates.last() {
        Some(&(p, ..)) if p >= predicates => Err(damaged(
            "its merge statistics have a predicate that is unknown",
        )),
        _ => Ok(set),
    }
}

impl MergeStatistics {
    /// Encodes the statistics in at most `limit` bytes. If they are larger, first the ids of terms without edges are
    /// dropped, which the next merge finds again; then the intervals of the classes with the most intervals; then
    /// similar sets are combined, until the result fits.
    ///
    /// # Errors
    /// [`Error::Limit`] if the result is still too large.
    pub fn encode_within(mut self, limit: usize) -> Result<Vec<u8>> {
        let mut bytes = self.encode();
        if bytes.len() > limit {
            self.idle = Vec::new();
            bytes = self.encode();
        }
        if bytes.len() > limit {
            self.drop_runs(bytes.len() - limit);
            bytes = self.encode();
        }
        let mut most = MAX_PLANNER_SETS;
        while bytes.len() > limit && most > 0 {
            self.merge_joined(most);
            bytes = self.encode();
            most /= 2;
        }
        if bytes.len() > limit {
            let (needs, limit) = (bytes.len(), limit);
            let what = format!(
                "the merge statistics of a shard need {needs} bytes, more than the {limit} allowed; load the data into more shards, or with fewer predicates"
            );
            return Err(Error::limit(Resource::Memory, what));
        }
        Ok(bytes)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_runs(&mut out, Some(&self.idle));
        put(&mut out, self.edges.len() as u64);
        for counts in &self.edges {
            counts.edges.iter().for_each(|&n| put(&mut out, n));
            let lists = [counts.keys, counts.longest];
            for &n in lists.as_flattened().as_flattened() {
                put(&mut out, n.into());
            }
        }
        put(&mut out, self.classes.len() as u64);
        let mut id = Ascending::default();
        for c in &self.classes {
            id.put(&mut out, c.class);
            put(&mut out, c.members);
            put_runs(&mut out, c.runs.as_deref());
        }
        put(&mut out, self.left.len() as u64);
        let mut id = Ascending::default();
        for (&number, set) in &self.left {
            id.put(&mut out, number);
            put_set(&mut out, set);
        }
        put(&mut out, self.joined.len() as u64);
        for set in &self.joined {
            put_set(&mut out, set);
        }
        out
    }

    /// Drops the intervals of classes, largest first, until at least `bytes` bytes are saved.
    fn drop_runs(&mut self, bytes: usize) {
        let mut scratch = Vec::new();
        let mut by_size: Vec<(usize, usize)> = Vec::new();
        for (i, c) in self.classes.iter().enumerate() {
            scratch.clear();
            put_runs(&mut scratch, c.runs.as_deref());
            // A dropped list takes one byte.
            by_size.push((scratch.len() - 1, i));
        }
        by_size.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut saved = 0;
        for (size, i) in by_size {
            if saved >= bytes {
                break;
            }
            self.classes[i].runs = None;
            saved += size;
        }
    }

    /// Combines sets that subjects joined, so that at most `most` remain.
    fn merge_joined(&mut self, most: usize) {
        let sets = std::mem::take(&mut self.joined);
        let ends = sets.iter().filter_map(|set| set.predicates.last());
        let predicates = ends.map(|p| p.0 as usize + 1).max().unwrap_or(0);
        let frequency = frequency_of(&sets, predicates);
        self.joined = merge_sets(sets, &frequency, most);
        let list = |set: &PlannerSet| set.predicates.iter().map(|p| p.0).collect::<Vec<u32>>();
        self.joined.sort_by_cached_key(list);
    }

    /// The ids of new terms that have no edges, read from encoded statistics.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes do not begin with such ids.
    pub fn idle_of(mut bytes: &[u8]) -> Result<Vec<[u32; 2]>> {
        Self::take_idle(&mut bytes)
    }

    fn take_idle(from: &mut &[u8]) -> Result<Vec<[u32; 2]>> {
        let idle = decode_runs(from)?.unwrap_or_default();
        let ends = [idle.first().map(|r| r[0]), idle.last().map(|r| r[1])];
        match ends
            .into_iter()
            .flatten()
            .all(|v| (FIRST_TAIL_ID..=FIRST_QUERY_ID).contains(&v))
        {
            true => Ok(idle),
            false => Err(damaged(
                "its merge statistics have an id that is not of a new term",
            )),
        }
    }

    /// Decodes the statistics of a merge of this snapshot that wrote `held` predicates.
    ///
    /// # Errors
    /// [`Error::Damaged`] for any other bytes.
    pub fn decode(bytes: &[u8], snapshot: &Snapshot, held: usize) -> Result<Self> {
        let (mut from, predicates) = (bytes, snapshot.predicate_count());
        let b = &mut from;
        let mut read = Self {
            idle: Self::take_idle(b)?,
            ..Self::default()
        };
        if decode_count(b, 10)? != held {
            return Err(damaged("its merge statistics are of other predicates"));
        }
        for _ in 0..held {
            let mut counts = EdgeCounts::default();
            for n in &mut counts.edges {
                *n = take_below(b, 1 << 32)?;
            }
            for list in [&mut counts.keys, &mut counts.longest] {
                for n in list.as_flattened_mut() {
                    *n = take_u32(b)?;
                }
            }
            read.edges.push(counts);
        }
        let mut id = Ascending::default();
        for i in 0..decode_count(b, 3)? {
            read.classes.push(CountedClass {
                class: id.take_next(b, i == 0)?,
                members: take_below(b, 1 << 32)?,
                runs: decode_runs(b)?,
            });
        }
        let sets = snapshot.statistics().sets.len();
        let mut id = Ascending::default();
        let mut left = BTreeMap::new();
        for i in 0..decode_count(b, 4)? {
            let number = id.take_next(b, i == 0)?;
            if number as usize >= sets {
                return Err(damaged("its merge statistics have a set that is unknown"));
            }
            left.insert(number, take_set(b, predicates)?);
        }
        read.left = left;
        for _ in 0..decode_count(b, 3)? {
            read.joined.push(take_set(b, predicates)?);
        }
        match from.is_empty() {
            true => Ok(read),
            false => Err(damaged(
                "its merge statistics are longer than their contents",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{store_of_terms, varied_quads};
    use proptest::prelude::*;

    fn runs() -> impl Strategy<Value = Option<Vec<[u32; 2]>>> {
        let runs = prop::collection::btree_set(1u32..9_000, 0..40);
        prop::option::of(runs.prop_map(|ends| {
            let ends: Vec<u32> = ends.into_iter().collect();
            ends.chunks_exact(2).map(|w| [w[0], w[1]]).collect()
        }))
    }

    fn set(predicates: u32) -> impl Strategy<Value = PlannerSet> {
        let classes = prop::collection::btree_map(0u32..6, 0u64..1 << 28, 0..4);
        let predicates = prop::collection::btree_map(0..predicates, (0u64..9, 0u64..1 << 28), 0..5);
        let parts = (9u64..1 << 28, classes, predicates);
        parts.prop_map(|(subjects, classes, predicates)| PlannerSet {
            subjects,
            classes: classes.into_iter().collect(),
            predicates: predicates
                .into_iter()
                .map(|(p, (without, edges))| (p, subjects - without, edges))
                .collect(),
        })
    }

    fn statistics(sets: u32, predicates: u32) -> impl Strategy<Value = MergeStatistics> {
        let counts = (
            any::<[[u32; 2]; 2]>(),
            any::<[[u32; 2]; 2]>(),
            any::<[u32; 2]>(),
        );
        let counts = counts.prop_map(|(keys, longest, edges)| EdgeCounts {
            edges: edges.map(u64::from),
            keys,
            longest,
        });
        let classes = prop::collection::btree_map(any::<u32>(), (any::<u32>(), runs()), 0..9);
        let parts = (
            prop::collection::vec(counts, 3),
            classes,
            prop::collection::btree_map(0..sets, set(predicates), 0..4),
            prop::collection::vec(set(predicates), 0..30),
            runs(),
        );
        parts.prop_map(|(edges, classes, left, joined, idle)| MergeStatistics {
            idle: idle
                .unwrap_or_default()
                .into_iter()
                .map(|r| r.map(|v| v + FIRST_TAIL_ID))
                .collect(),
            edges,
            classes: classes
                .into_iter()
                .map(|(class, (members, runs))| CountedClass {
                    class,
                    members: members.into(),
                    runs,
                })
                .collect(),
            left,
            joined,
        })
    }

    #[test]
    fn statistics_come_back_and_damage_is_an_error_or_other_numbers() {
        let (_folder, base) = store_of_terms(&varied_quads());
        let snapshot = Snapshot::of_base(base);
        let (sets, predicates) = (
            snapshot.statistics().sets.len() as u32,
            snapshot.predicate_count(),
        );
        assert!(sets > 1 && predicates > 5);
        let decode = |bytes: &[u8]| MergeStatistics::decode(bytes, &snapshot, 3);
        proptest!(|(statistics in statistics(sets, predicates), damage: [prop::sample::Index; 8])| {
            let bytes = statistics.clone().encode_within(MAX_BYTES).unwrap();
            prop_assert_eq!(decode(&bytes).unwrap(), statistics.clone());
            prop_assert!(MergeStatistics::decode(&bytes, &snapshot, 4).is_err());
            prop_assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
            for (bit, at) in damage.iter().enumerate() {
                let at = at.index(bytes.len());
                prop_assert!(decode(&bytes[..at]).is_err());
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                let _ = decode(&bad);
                bad[at] = 0xFF;
                let _ = decode(&bad);
            }
            prop_assert_eq!(MergeStatistics::idle_of(&bytes).unwrap(), statistics.idle.clone());
            // With a lower limit, at first only ids without edges and intervals are dropped.
            let least = MergeStatistics {
                idle: Vec::new(),
                classes: statistics.classes.iter().map(|c| CountedClass { runs: None, ..c.clone() }).collect(),
                ..statistics.clone()
            };
            let least_bytes = least.encode().len();
            for limit in [least_bytes, (least_bytes + bytes.len()) / 2, bytes.len()] {
                let fewer = statistics.clone().encode_within(limit).unwrap();
                prop_assert!(fewer.len() <= limit);
                let fewer = decode(&fewer).unwrap();
                for (got, want) in fewer.classes.iter().zip(&statistics.classes) {
                    prop_assert!(got.runs.is_none() || got.runs == want.runs);
                }
                prop_assert_eq!(&fewer.joined, &statistics.joined);
                prop_assert_eq!(fewer.edges.len() + fewer.classes.len(), 3 + statistics.classes.len());
            }
            // With an even lower limit, sets are combined, and their sums are preserved.
            let one = MergeStatistics { joined: Vec::new(), ..least };
            let limit = one.encode().len() + 300;
            let merged = decode(&statistics.clone().encode_within(limit).unwrap()).unwrap();
            let sum = |sets: &[PlannerSet]| sets.iter().map(|s| s.subjects).sum::<u64>();
            prop_assert_eq!(sum(&merged.joined), sum(&statistics.joined));
            let all = |sets: &[PlannerSet]| frequency_of(sets, predicates as usize);
            prop_assert_eq!(all(&merged.joined), all(&statistics.joined));
        });
        let none = MergeStatistics::default();
        assert!(matches!(none.encode_within(3), Err(Error::Limit(_))));
    }
}
