//! Sorting the strings of a run: multikey quicksort with cached keys. Each item carries 7 bytes of its string, so that
//! nearly all comparisons stay inside one array; strings are read once per 7 bytes of the prefix that they share with
//! others, with prefetching.

use super::arena::Arena;

/// Number of bytes of the string in a key. The key's last byte holds how many of them belong to the string.
const STEP: usize = 7;
/// Groups up to this size are sorted by direct comparison.
const SMALL: usize = 8;
/// Items between a prefetch and its use.
const AHEAD: usize = 16;

/// A string that is being sorted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SortItem {
    key: u64,
    /// The string's record in the arena.
    pub(crate) record: u32,
    /// The string's number in order of arrival.
    pub(crate) id: u32,
}

/// The records of an arena, sorted by their terms' bytes, which are distinct.
///
/// O(bytes of shared prefixes + n log n). Takes 16 bytes per string.
pub(crate) fn sorted(arena: &Arena, n: usize) -> Vec<SortItem> {
    let mut items = Vec::with_capacity(n);
    for (id, record) in arena.records().enumerate() {
        items.push(SortItem {
            key: 0,
            record,
            id: id as u32,
        });
    }
    // Groups of strings with the same first `depth` bytes; the leftmost group is on top, so that adjacent items are
    // sorted one after the other.
    let mut groups = vec![(0, items.len(), 0)];
    while let Some((start, end, depth)) = groups.pop() {
        let group = &mut items[start..end];
        if group.len() <= SMALL {
            insertion_sort(arena, group, depth);
            continue;
        }
        if load_keys(arena, group, depth) {
            groups.push((start, end, depth + STEP));
            continue;
        }
        group.sort_unstable_by_key(|i| i.key);
        let mut last = group.len();
        while last > 0 {
            let key = group[last - 1].key;
            let mut first = last - 1;
            while first > 0 && group[first - 1].key == key {
                first -= 1;
            }
            if last - first > 1 && has_more_bytes(key) {
                groups.push((start + first, start + last, depth + STEP));
            }
            last = first;
        }
    }
    items
}

/// True if strings with this key continue after the bytes in the key.
fn has_more_bytes(key: u64) -> bool {
    key & 0xFF > STEP as u64
}

/// Loads the keys of a group at `depth`; true if all keys are equal and their strings continue.
fn load_keys(arena: &Arena, group: &mut [SortItem], depth: usize) -> bool {
    let mut first = None;
    let mut differ = 0;
    for i in 0..group.len() {
        if let Some(ahead) = group.get(i + AHEAD) {
            arena.prefetch(ahead.record, depth);
        }
        let item = &mut group[i];
        item.key = key(arena, item.record, depth);
        differ |= item.key ^ *first.get_or_insert(item.key);
    }
    differ == 0 && first.is_some_and(has_more_bytes)
}

/// The key of a string at `depth`: 7 bytes, padded with zeros, and the number of them that belong to the string (8 =
/// more follow), so that a string sorts before its extensions, including those by zero bytes.
#[inline(always)]
fn key(arena: &Arena, record: u32, depth: usize) -> u64 {
    let word = arena.word_be(record, depth);
    let rest = arena.term_len(record) - depth;
    if rest > STEP {
        return (word & !0xFF) | (STEP as u64 + 1);
    }
    // Clears the bytes after the string's end; `64 - 8 * rest` is at least 8.
    let kept = if rest == 0 {
        0
    } else {
        word & (u64::MAX << (64 - 8 * rest))
    };
    kept | rest as u64
}

fn insertion_sort(arena: &Arena, group: &mut [SortItem], depth: usize) {
    for i in 1..group.len() {
        let item = group[i];
        let term = &arena.term(item.record)[depth..];
        let mut at = i;
        while at > 0 && arena.term(group[at - 1].record)[depth..] > *term {
            group[at] = group[at - 1];
            at -= 1;
        }
        group[at] = item;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(terms: &[Vec<u8>]) {
        let mut arena = Arena::new();
        for (i, t) in terms.iter().enumerate() {
            arena.push(i as u32, t);
        }
        let got: Vec<&[u8]> = sorted(&arena, terms.len())
            .iter()
            .map(|i| arena.term(i.record))
            .collect();
        let mut expected: Vec<&[u8]> = terms.iter().map(Vec::as_slice).collect();
        expected.sort_unstable();
        assert!(got == expected);
    }

    #[test]
    fn strings_that_share_long_prefixes() {
        let mut terms = vec![];
        for i in 0..500u32 {
            terms.push(
                format!(
                    "<http://www.Department{}.University{}.edu/x{i}",
                    i % 3,
                    i % 7
                )
                .into_bytes(),
            );
            terms.push(vec![b'a'; 40 * i as usize]);
            terms.push(vec![0; i as usize + 1]);
        }
        terms.sort_unstable_by_key(|t| {
            t.iter()
                .fold(7u32, |h, &b| h.wrapping_mul(31) + u32::from(b))
        });
        terms.dedup();
        terms.retain({
            let mut seen = std::collections::HashSet::new();
            move |t| seen.insert(t.clone())
        });
        check(&terms);
    }

    proptest! {
        #[test]
        fn like_the_standard_sort(
            set in proptest::collection::hash_set(
                proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..24),
                0..300,
            )
        ) {
            check(&set.into_iter().collect::<Vec<_>>());
        }
    }
}
