//! The distinct ids of a column, and the position of each id among them.

use jindou::VertexId;
use rustc_hash::FxHashMap;

/// Largest number of bytes of the bitmap per row. If there are fewer rows, a hash table is smaller than a bitmap of all
/// possible ids.
const BITS_A_ROW: usize = 64;

/// The distinct ids of a column in ascending order, without 0 (unbound).
pub enum DistinctIds {
    /// A bitmap of the ids up to the largest one, and the number of ones before each word: 1.5 bits per possible id.
    Bits { words: Vec<u64>, before: Vec<u32> },
    /// Position by id, if there are few ids or they are far apart.
    Table(FxHashMap<u32, u32>),
}

impl DistinctIds {
    /// Takes the ids of a column, in parts. O(ids + bits up to the largest id), or O(n log n) in the number of distinct
    /// ids with a hash table.
    pub fn from_columns(ids: &[&[u32]]) -> Self {
        let all = || ids.iter().copied().flatten().copied();
        let rows: usize = ids.iter().map(|ids| ids.len()).sum();
        let largest = all().max().unwrap_or(0) as usize;
        if largest / 8 > rows.saturating_mul(BITS_A_ROW) {
            let mut table: FxHashMap<u32, u32> = FxHashMap::default();
            for id in all().filter(|id| VertexId(*id) != VertexId(0)) {
                table.insert(id, 0);
            }
            let mut sorted: Vec<u32> = table.keys().copied().collect();
            sorted.sort_unstable();
            for (place, id) in sorted.into_iter().enumerate() {
                table.insert(id, place as u32);
            }
            return Self::Table(table);
        }
        let mut words = vec![0_u64; largest / 64 + 1];
        for id in all() {
            if let Some(word) = words.get_mut(id as usize / 64) {
                *word |= 1 << (id % 64);
            }
        }
        // 0 is unbound.
        words[0] &= !1;
        let mut ones = 0;
        let before = words.iter().map(|word| {
            let before = ones;
            ones += word.count_ones();
            before
        });
        let before = before.collect();
        Self::Bits { words, before }
    }

    /// The ids, ascending.
    pub fn ids(&self) -> Vec<u32> {
        match self {
            Self::Bits { words, .. } => {
                let mut out = Vec::new();
                for (place, &word) in words.iter().enumerate() {
                    let mut left = word;
                    while left != 0 {
                        out.push(place as u32 * 64 + left.trailing_zeros());
                        left &= left - 1;
                    }
                }
                out
            }
            Self::Table(table) => {
                let mut out: Vec<u32> = table.keys().copied().collect();
                out.sort_unstable();
                out
            }
        }
    }

    /// The position of an id among the distinct ids.
    pub fn place(&self, id: u32) -> i32 {
        let place = match self {
            Self::Bits { words, before } => {
                let at = id as usize / 64;
                let word = words.get(at).copied().unwrap_or(0);
                let lower = word & ((1 << (id % 64)) - 1);
                before.get(at).copied().unwrap_or(0) + lower.count_ones()
            }
            Self::Table(table) => table.get(&id).copied().unwrap_or(0),
        };
        place as i32
    }
}
