//! Numbers of keys and edges without reading keys: of a range of ids, and of several segments together.

use super::{KeyFinder, RankBlock};
use jindou_model::FIRST_TAIL_ID;

/// Largest number of blocks of bitmaps, keys of directories, and words that [`distinct_keys`] reads or writes: about
/// five milliseconds.
const MOST_STEPS: usize = 1 << 22;
/// Largest number of words of [`KeyBits`] (4 MiB).
const MOST_WORDS: usize = 1 << 19;

impl KeyFinder<'_> {
    /// Number of keys below `v`. O(log keys).
    #[must_use]
    pub fn rank(&self, v: u32) -> u32 {
        match *self {
            Self::Empty => 0,
            Self::Intervals(runs) => {
                let at = runs.partition_point(|r| r.start < v);
                let run = at.checked_sub(1).and_then(|i| runs.get(i));
                run.map_or(0, |r| {
                    let inside = v.min(r.end).saturating_sub(r.start);
                    r.base.saturating_add(inside)
                })
            }
            Self::Bitmap { first, blocks } => rank_in_bitmap(first, blocks, v),
            Self::FoldedBitmap {
                fold,
                first,
                blocks,
            } => {
                let at = match v.checked_sub(FIRST_TAIL_ID) {
                    Some(n) => n.saturating_add(fold),
                    None => v.min(fold),
                };
                rank_in_bitmap(first, blocks, at)
            }
            Self::Directory { keys, .. } | Self::FoldedDirectory { keys, .. } => {
                keys.partition_point(|&k| k < v) as u32
            }
        }
    }
}

fn rank_in_bitmap(first: u32, blocks: &[RankBlock], v: u32) -> u32 {
    let Some(d) = v.checked_sub(first) else {
        return 0;
    };
    let (block, bits) = match blocks.get((d / 64) as usize) {
        Some(b) => (b, b.bits & ((1u64 << (d % 64)) - 1)),
        None => match blocks.last() {
            Some(b) => (b, b.bits),
            None => return 0,
        },
    };
    block.rank.saturating_add(bits.count_ones())
}

/// Number of different keys of several segments, given as their finders and numbers of keys. O(intervals log keys), if
/// at most one segment has keys outside of the intervals of the others; otherwise O(blocks of bitmaps + keys of
/// directories). `None` if that is too much.
pub(crate) fn distinct_keys(finders: &[(KeyFinder<'_>, u32)]) -> Option<u64> {
    if let [(_, keys)] = finders {
        return Some(u64::from(*keys));
    }
    let mut runs: Vec<[u32; 2]> = vec![];
    let mut others: Vec<(KeyFinder<'_>, u32)> = vec![];
    for &(finder, keys) in finders {
        match finder {
            KeyFinder::Empty => {}
            KeyFinder::Intervals(list) => runs.extend(list.iter().map(|r| [r.start, r.end])),
            _ => others.push((finder, keys)),
        }
    }
    join_runs(&mut runs);
    let covered: u64 = runs.iter().map(|r| u64::from(r[1] - r[0])).sum();
    if others.len().saturating_mul(runs.len()) > MOST_STEPS {
        return None;
    }
    // Finders with keys outside of the runs, and the number of these keys.
    let mut rest: Vec<(KeyFinder<'_>, u64)> = vec![];
    for (finder, keys) in others {
        let inside = |r: &[u32; 2]| u64::from(finder.rank(r[1]).saturating_sub(finder.rank(r[0])));
        let outside = u64::from(keys).saturating_sub(runs.iter().map(inside).sum());
        if outside > 0 {
            rest.push((finder, outside));
        }
    }
    match rest.as_slice() {
        [] => Some(covered),
        [(_, outside)] => Some(covered + outside),
        _ => {
            let mut bits = KeyBits::default();
            let mut steps = 0;
            for (finder, _) in &rest {
                steps += finder.entries();
                if steps > MOST_STEPS {
                    return None;
                }
                bits.add(finder)?;
            }
            runs.iter().for_each(|r| bits.clear(*r));
            Some(covered + bits.count())
        }
    }
}

/// Sorts runs `[start, end)` and joins those that touch or overlap; drops empty ones.
fn join_runs(runs: &mut Vec<[u32; 2]>) {
    runs.retain(|r| r[0] < r[1]);
    runs.sort_unstable();
    runs.dedup_by(|later, kept| {
        let meets = later[0] <= kept[1];
        if meets {
            kept[1] = kept[1].max(later[1]);
        }
        meets
    });
}

impl KeyFinder<'_> {
    /// Number of blocks of a bitmap, or of keys of a directory.
    fn entries(&self) -> usize {
        match *self {
            Self::Empty | Self::Intervals(_) => 0,
            Self::Bitmap { blocks, .. } | Self::FoldedBitmap { blocks, .. } => blocks.len(),
            Self::Directory { keys, .. } | Self::FoldedDirectory { keys, .. } => keys.len(),
        }
    }
}

/// A set of ids as bits: of ids of the base, and of ids of the tail, which are far above them.
#[derive(Default)]
struct KeyBits([Vec<u64>; 2]);

impl KeyBits {
    /// The part that contains an id, and the id's number there.
    fn place(id: u32) -> (usize, u32) {
        match id.checked_sub(FIRST_TAIL_ID) {
            Some(n) => (1, n),
            None => (0, id),
        }
    }

    /// Adds the bits of 64 ids from `id` (a multiple of 64) on; `None` if too many words are needed.
    fn put(&mut self, id: u32, bits: u64) -> Option<()> {
        if bits == 0 {
            return Some(());
        }
        let (part, n) = Self::place(id);
        let (words, at) = (&mut self.0[part], (n / 64) as usize);
        if at >= words.len() {
            if at >= MOST_WORDS {
                return None;
            }
            words.resize((at + 1).max(2 * words.len()).min(MOST_WORDS), 0);
        }
        words[at] |= bits;
        Some(())
    }

    /// Adds the keys of a bitmap or a directory.
    fn add(&mut self, finder: &KeyFinder<'_>) -> Option<()> {
        match *finder {
            KeyFinder::Empty | KeyFinder::Intervals(_) => Some(()),
            KeyFinder::Bitmap { first, blocks } => self.add_blocks(first, blocks, u32::MAX),
            KeyFinder::FoldedBitmap {
                fold,
                first,
                blocks,
            } => self.add_blocks(first, blocks, fold),
            KeyFinder::Directory { keys, .. } | KeyFinder::FoldedDirectory { keys, .. } => {
                let mut each = keys.iter();
                each.try_for_each(|&k| self.put(k & !63, 1u64 << (k % 64)))
            }
        }
    }

    /// Adds the keys of a bitmap in which the ids from `fold` (a multiple of 64) on stand for those of the tail.
    fn add_blocks(&mut self, first: u32, blocks: &[RankBlock], fold: u32) -> Option<()> {
        for (i, b) in blocks.iter().enumerate() {
            let at = first.saturating_add((i as u32).saturating_mul(64));
            let id = match at.checked_sub(fold) {
                Some(n) => n.saturating_add(FIRST_TAIL_ID),
                None => at,
            };
            self.put(id, b.bits)?;
        }
        Some(())
    }

    /// Removes the ids of a run `[start, end)`.
    fn clear(&mut self, [start, end]: [u32; 2]) {
        let ((part, from), (last_part, last)) = (Self::place(start), Self::place(end - 1));
        if part < last_part {
            self.clear([start, FIRST_TAIL_ID]);
            self.clear([FIRST_TAIL_ID, end]);
            return;
        }
        let words = &mut self.0[part];
        let (first_word, last_word) = ((from / 64) as usize, (last / 64) as usize);
        for at in first_word..=last_word.min(words.len().saturating_sub(1)) {
            let mut gone = u64::MAX;
            if at == first_word {
                gone &= u64::MAX << (from % 64);
            }
            if at == last_word {
                gone &= u64::MAX >> (63 - last % 64);
            }
            if let Some(w) = words.get_mut(at) {
                *w &= !gone;
            }
        }
    }

    fn count(&self) -> u64 {
        let words = self.0.iter().flatten();
        words.map(|w| u64::from(w.count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::finder::build_folded;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Sets of keys for which each kind of finder is chosen.
    fn keys() -> impl Strategy<Value = BTreeSet<u32>> {
        let tail = || prop::collection::btree_set(FIRST_TAIL_ID..FIRST_TAIL_ID + 300, 0..40);
        let runs = prop::collection::vec((1u32..2_000, 1u32..90), 0..6);
        let runs = runs.prop_map(|runs: Vec<(u32, u32)>| {
            let ids = runs.iter().flat_map(|r| r.0..r.0 + r.1);
            ids.collect::<BTreeSet<u32>>()
        });
        prop_oneof![
            runs,
            prop::collection::btree_set(1u32..900, 0..400),
            prop::collection::btree_set(1u32..60_000, 0..60),
            (prop::collection::btree_set(1u32..900, 0..300), tail()).prop_map(|(a, b)| &a | &b),
            (prop::collection::btree_set(1u32..60_000, 0..50), tail()).prop_map(|(a, b)| &a | &b),
        ]
    }

    proptest! {
        #[test]
        fn ranks_and_distinct_keys_are_those_of_sets(
            sets in prop::collection::vec(keys(), 1..5),
            ends in prop::collection::vec(
                prop_oneof![0u32..61_000, FIRST_TAIL_ID - 2..FIRST_TAIL_ID + 310], 1..20),
        ) {
            let arrays: Vec<_> = sets
                .iter()
                .map(|s| build_folded(s.iter().copied().collect(), Some(64_000)))
                .collect();
            let mut finders = vec![];
            for (set, arrays) in sets.iter().zip(&arrays) {
                let finder = arrays.view();
                for &end in &ends {
                    prop_assert_eq!(finder.rank(end) as usize, set.range(..end).count());
                }
                finders.push((finder, set.len() as u32));
            }
            let all: BTreeSet<u32> = sets.iter().flatten().copied().collect();
            prop_assert_eq!(distinct_keys(&finders), Some(all.len() as u64));
        }
    }
}
