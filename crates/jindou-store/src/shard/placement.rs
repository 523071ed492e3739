//! Assignment of blocks of ids to shards when a store is loaded.

use super::Blocks;
use super::ranges::ranges;
use jindou_graph::shard::{MAX_SHARDS, MAX_SHIFT};
use jindou_model::{Error, Invariant, Resource, Result, setters};
use std::str::FromStr;

/// Number of blocks above which larger blocks are used; the table then takes at most 10 MiB. Blocks are small because a
/// few ids of one class may have most of a query's triples, like the universities of LUBM.
const MANY_BLOCKS: u32 = 1 << 21;

/// Rule by which blocks are assigned to shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// Each cluster of ids is cut into one piece per shard: instances of every class are spread evenly, and vertices at
    /// the same relative positions of their clusters mostly have the same owner.
    #[default]
    Range,
    /// Assignment by a hash of the block's number.
    Hash,
}

impl Placement {
    /// The rule's name in options and manifests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Hash => "hash",
        }
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(s: &str) -> std::result::Result<Self, String> {
        match s {
            "range" => Ok(Self::Range),
            "hash" => Ok(Self::Hash),
            _ => Err(format!("'{s}' is not a placement: write range or hash")),
        }
    }
}

/// How a load divides a store into shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sharding {
    /// Number of shards, fixed for the store's life; 1 makes an unsharded store.
    pub shards: u32,
    /// Rule by which blocks are assigned to shards.
    pub placement: Placement,
    /// log2 of the ids in a block; `None` to choose it by the number of terms.
    pub block_shift: Option<u32>,
}

impl Sharding {
    /// A division into this many shards by range, with a block size that suits the graph.
    #[must_use]
    pub fn new(shards: u32) -> Self {
        Self {
            shards,
            placement: Placement::Range,
            block_shift: None,
        }
    }

    setters! {
        with_placement: placement = Placement;
        with_block_shift: block_shift = Option<u32>;
    }

    /// log2 of the ids in a block of a store with this many ids.
    pub(crate) fn shift(&self, vertices: u32) -> u32 {
        self.block_shift.unwrap_or_else(|| shift_for(vertices))
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// [`Error::Limit`] for numbers out of range.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::limit(Resource::Numbers, what));
        if self.shards == 0 || self.shards > MAX_SHARDS {
            return wrong(format!(
                "a store has 1 to {MAX_SHARDS} shards, not {}",
                self.shards
            ));
        }
        match self.block_shift {
            Some(shift) if shift > MAX_SHIFT => wrong(format!(
                "a block has at most 2^{MAX_SHIFT} ids, not 2^{shift}"
            )),
            _ => Ok(()),
        }
    }

    /// The block table of a store with the ids `1..=vertices`, in clusters of these lengths. `weights` has the size of
    /// each block of 2^[`Self::shift`] ids, in any unit. [`Self::check`] must have accepted the number of shards.
    pub(crate) fn place(
        &self,
        vertices: u32,
        clusters: impl Iterator<Item = u32>,
        weights: &[u64],
        mut everywhere: Vec<u32>,
    ) -> Blocks {
        let shift = self.shift(vertices);
        let count = (vertices >> shift) + 1;
        let owners = match self.placement {
            Placement::Range => ranges(self.shards, shift, count, clusters, weights),
            Placement::Hash => (0..count)
                .map(|b| (mixed(b) % u64::from(self.shards)) as u8)
                .collect(),
        };
        everywhere.sort_unstable();
        everywhere.dedup();
        Blocks::new([shift, self.shards, vertices], owners, everywhere)
            .invariant("a table of blocks fits its store")
    }
}

/// log2 of the smallest block size that does not result in too many blocks. Blocks of a small graph are single ids, so
/// that even a graph of ten triples is spread over several shards.
fn shift_for(vertices: u32) -> u32 {
    let fits = |&shift: &u32| vertices >> shift < MANY_BLOCKS;
    (0..MAX_SHIFT).find(fits).unwrap_or(MAX_SHIFT)
}

/// The finalizer of SplitMix64, as a hash of a block's number.
fn mixed(block: u32) -> u64 {
    let x = u64::from(block).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::super::blocks_file;
    use super::*;
    use crate::directory::Bytes;
    use jindou_graph::shard::{IdPlace, LocalKey};
    use jindou_model::FIRST_TAIL_ID;
    use proptest::prelude::*;
    use std::io::Cursor;

    proptest! {
        #[test]
        fn keys_ascend_with_ids_and_come_back(
            lens in prop::collection::vec(1u32..40, 0..20),
            shards in 1u32..14,
            shift in prop::option::of(0u32..6),
            merged in 0u32..9000,
            hash: bool,
        ) {
            let vertices: u32 = lens.iter().sum();
            let sharding = Sharding::new(shards)
                .with_block_shift(shift)
                .with_placement(if hash { Placement::Hash } else { Placement::Range });
            let everywhere = (1..=vertices).step_by(7).collect();
            let b = sharding.place(vertices, lens.iter().copied(), &[], everywhere);
            let mut last = vec![LocalKey(0); shards as usize];
            let mut owned = vec![0; shards as usize];
            for v in 1..=vertices {
                let IdPlace { shard, local } = b.place(v).unwrap();
                prop_assert!(local > last[shard as usize]);
                prop_assert_eq!(b.global(shard, local), v);
                // The owned terms of a shard are numbered without gaps.
                owned[shard as usize] += 1;
                prop_assert_eq!(local.0 - b.first_key(shard).0 + 1, owned[shard as usize]);
                last[shard as usize] = local;
            }
            for s in 0..shards {
                prop_assert_eq!(b.terms_of(s), owned[s as usize]);
                prop_assert_eq!(b.global(s, LocalKey(0)), 0);
            }
            prop_assert_eq!((b.place(0), b.place(vertices + 1)), (None, None));
            if shards == 1 {
                prop_assert!((1..=vertices).all(|v| b.place(v).unwrap().local == LocalKey(v)));
            }
            for s in 0..shards {
                let runs = [[0, vertices / 3], [vertices / 3, vertices / 2], [vertices / 2 + 1, FIRST_TAIL_ID]];
                let parts = b.parts(s, &runs);
                prop_assert!(parts.iter().all(|p| p[0] < p[1]) && parts.windows(2).all(|w| w[0][1] < w[1][0]));
                let found: Vec<u32> = parts.iter().flat_map(|p| p[0]..p[1]).collect();
                let all = (1..=vertices).filter(|&v| v != vertices / 2 || vertices < 2);
                let expected: Vec<u32> = all.filter(|&v| b.owner(v).map(u32::from) == Some(s)).collect();
                prop_assert_eq!(found, expected);
            }
            let with_new = b.with_merged(merged);
            let new = FIRST_TAIL_ID..FIRST_TAIL_ID + merged;
            for v in new.clone() {
                let IdPlace { shard, local } = with_new.place(v).unwrap();
                prop_assert!(local > last[shard as usize] && local.0 < with_new.keys_end(shard));
                prop_assert_eq!(with_new.global(shard, local), v);
                prop_assert_eq!((with_new.assigned(v), b.assigned(v)), (Some(shard), Some(shard)));
                prop_assert_eq!((b.place(v), b.owner(v), b.global(shard, local)), (None, None, 0));
                last[shard as usize] = local;
            }
            prop_assert_eq!(with_new.place(new.end), None);
            let all = [[FIRST_TAIL_ID - 7, FIRST_TAIL_ID + 1500], [FIRST_TAIL_ID + 1501, FIRST_TAIL_ID + 9000]];
            let mut parts: Vec<[u32; 2]> = (0..shards).flat_map(|s| b.parts(s, &all)).collect();
            parts.sort_unstable();
            let found: u32 = parts.iter().map(|p| p[1] - p[0]).sum();
            prop_assert_eq!(found, 9000 - 1);
            prop_assert!(parts.windows(2).all(|w| w[0][1] <= w[1][0]));
            let file = blocks_file::write(&b, shards - 1, Cursor::new(vec![])).unwrap().into_inner();
            prop_assert_eq!(blocks_file::read(Bytes::copy_of(&file)).unwrap(), (b, shards - 1));
        }
    }

    #[test]
    fn ten_terms_lie_on_all_of_three_shards() {
        for placement in [Placement::Range, Placement::Hash] {
            let sharding = Sharding::new(3).with_placement(placement);
            let b = sharding.place(10, [1, 3, 6].into_iter(), &[], vec![]);
            assert!((0..3).all(|s| b.terms_of(s) > 0), "{placement:?}");
        }
        assert_eq!(shift_for((1 << 21) - 1), 0);
        assert_eq!(shift_for(1 << 21), 1);
        assert_eq!(shift_for(jindou_model::MAX_BASE_VERTICES), 11);
    }
}
