//! Radix sort of edges. Edges are small fixed-size records of 32-bit words, ids are dense, and all edges of a segment
//! are sorted by the same words: so a counting sort by the bits that vary is faster than comparisons.

/// A record of 32-bit words that [`sort`] can order by.
pub(super) trait SortWords: Copy + Default + Send + Sync + bytemuck::Pod {
    /// Word `i`.
    fn word(&self, i: usize) -> u32;
}

/// An edge of the default graph, `key << 32 | neighbour`: word 0 is the neighbour, word 1 the key.
impl SortWords for u64 {
    #[inline(always)]
    fn word(&self, i: usize) -> u32 {
        (self >> (32 * i)) as u32
    }
}

/// An edge of a named graph: subject, object, graph.
impl SortWords for [u32; 3] {
    #[inline(always)]
    fn word(&self, i: usize) -> u32 {
        self[i]
    }
}

/// Number of bits sorted by one counting pass: 2^9 write streams of a cache line each fit the first-level cache.
const DIGIT_BITS: u32 = 9;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Length below which a comparison sort is faster than clearing histograms.
const SMALL: usize = 512;

/// Stably sorts `data` by `words`, of which the least significant comes first. `scratch` is overwritten, and may be
/// swapped with `data`. O(n × varying bits / 9).
pub(super) fn sort<T: SortWords>(data: &mut Vec<T>, scratch: &mut Vec<T>, words: &[usize]) {
    let key = |e: &T| {
        words
            .iter()
            .rev()
            .fold(0u128, |k, &w| k << 32 | u128::from(e.word(w)))
    };
    if data.windows(2).all(|w| key(&w[0]) <= key(&w[1])) {
        return;
    }
    if data.len() < SMALL {
        data.sort_by_key(key);
        return;
    }
    if scratch.len() < data.len() {
        *scratch = jindou_model::memory::huge_zeroed(data.len());
    } else {
        scratch.truncate(data.len());
    }
    for &w in words {
        let (mut all, mut any) = (u32::MAX, 0);
        for e in data.iter() {
            all &= e.word(w);
            any |= e.word(w);
        }
        let mut vary = all ^ any;
        while vary != 0 {
            let shift = vary.trailing_zeros();
            counting_pass(data, scratch, w, shift);
            std::mem::swap(data, scratch);
            let done = shift + DIGIT_BITS;
            vary = if done >= 32 { 0 } else { vary >> done << done };
        }
    }
}

fn counting_pass<T: SortWords>(from: &[T], to: &mut [T], w: usize, shift: u32) {
    let digit = |e: &T| (e.word(w) >> shift) as usize & (DIGITS - 1);
    let mut at = [0usize; DIGITS];
    for e in from {
        at[digit(e)] += 1;
    }
    let mut sum = 0;
    for a in &mut at {
        sum += std::mem::replace(a, sum);
    }
    for e in from {
        let place = &mut at[digit(e)];
        to[*place] = *e;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_standard_sort(
            seed in prop::collection::vec((0u32..3000, any::<u32>(), 0u32..5), 0..1500),
        ) {
            let mut triples: Vec<[u32; 3]> = seed.iter().map(|&(a, b, c)| [a, b, c]).collect();
            let mut want = triples.clone();
            want.sort_by_key(|t| (t[1], t[0], t[2]));
            sort(&mut triples, &mut vec![], &[2, 0, 1]);
            prop_assert_eq!(triples, want);

            let mut pairs: Vec<u64> =
                seed.iter().map(|&(a, b, _)| u64::from(b) << 32 | u64::from(a)).collect();
            let mut want = pairs.clone();
            want.sort();
            let mut scratch = vec![];
            sort(&mut pairs, &mut scratch, &[0, 1]);
            prop_assert_eq!(&pairs, &want);
            // Sorted by the low half alone; being stable, the sort keeps the ascending high halves within equal low
            // halves.
            want.sort_by_key(|&e| (e as u32, e >> 32));
            sort(&mut pairs, &mut scratch, &[0]);
            prop_assert_eq!(pairs, want);
        }
    }
}
