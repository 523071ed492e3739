//! The block table: which shard owns which ids, and where among its keys they lie.
//!
//! Ids are cut into blocks of 2^shift. A shard numbers the blocks that it owns by rank, ascending, so that its *local keys*,
//! `rank << shift | low bits`, ascend with ids. Block 0 has rank 0, and every other block a rank of at least 1: local key 0 is
//! no vertex, as id 0 is none. Keys of a shard's segments are local, neighbours are ids.

use super::ranges::ranges;
use crate::directory::{Bytes, SectionFile, SectionWriter};
use jindou_model::{Error, NO_VERTEX, Resource, Result, setters};
use std::io::{Seek, Write};
use std::str::FromStr;

/// The file's name in a shard's directory.
pub const BLOCKS: &str = "blocks.jd";
/// Most shards of a store: an owner is one byte.
pub const MAX_SHARDS: u32 = 255;
/// The largest block, as a power of two.
pub const MAX_SHIFT: u32 = 16;

const MAGIC: [u8; 8] = *b"JDBLOCK\n";
const HEAD: u32 = 1;
const OWNERS: u32 = 2;
const RANKS: u32 = 3;
const EVERYWHERE: u32 = 4;

/// Blocks that a table has at most before its blocks are made larger: 10 MiB. They are small because a few ids of one class may have most
/// of a query's triples, as the universities of LUBM have.
const MANY_BLOCKS: u32 = 1 << 21;

/// Rule by which blocks are given to shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// Each cluster of ids is cut into one piece a shard: instances of every class are spread evenly, and what lies together
    /// in several clusters is mostly owned together.
    #[default]
    Range,
    /// By a hash of the block's number.
    Hash,
}

impl Placement {
    /// The word in options and manifests.
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

/// How a load cuts a store into shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sharding {
    /// Number of shards, fixed for the store's life; 1 makes a store that is not sharded.
    pub shards: u32,
    /// Rule by which blocks go to shards.
    pub placement: Placement,
    /// log2 of the ids in a block; `None` chooses by the number of terms.
    pub block_shift: Option<u32>,
}

impl Sharding {
    /// A number of shards, placed by range, with blocks as large as the graph wants them.
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

    /// # Errors
    /// [`Error::Limit`] for numbers that no store can have.
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
}

/// Where an id's edges and string are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The shard that owns the id.
    pub shard: u32,
    /// The key there.
    pub local: u32,
}

/// The table, the same on every shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    shift: u32,
    shards: u32,
    vertices: u32,
    /// By block.
    owners: Vec<u8>,
    /// By block.
    ranks: Vec<u32>,
    /// Ids of terms that every shard has: of predicates, classes and graphs. Ascending.
    everywhere: Vec<u32>,
    /// By shard and rank; [`NO_BLOCK`] for a rank that no block of the shard has.
    owned: Vec<Vec<u32>>,
    /// The first block of each run of blocks that one shard owns.
    runs: Vec<u32>,
}

const NO_BLOCK: u32 = u32::MAX;

/// The block size of a graph: the smallest of which there are not too many. Blocks of a small graph are single ids, so that a
/// graph of ten triples lies on several shards.
fn shift_for(vertices: u32) -> u32 {
    let fits = |&shift: &u32| vertices >> shift < MANY_BLOCKS;
    (0..MAX_SHIFT).find(fits).unwrap_or(MAX_SHIFT)
}

impl Blocks {
    /// The table of a store with the ids `1..=vertices`, in clusters with these lengths. `weights` has the size of each block, in any unit,
    /// for blocks of [`Sharding::shift`].
    pub(crate) fn new(
        sharding: &Sharding,
        vertices: u32,
        clusters: impl Iterator<Item = u32>,
        weights: &[u64],
        mut everywhere: Vec<u32>,
    ) -> Self {
        let shift = sharding.shift(vertices);
        let count = (vertices >> shift) + 1;
        let owners = match sharding.placement {
            Placement::Range => ranges(sharding.shards, shift, count, clusters, weights),
            Placement::Hash => (0..count)
                .map(|b| (mixed(b) % u64::from(sharding.shards)) as u8)
                .collect(),
        };
        everywhere.sort_unstable();
        everywhere.dedup();
        let ranks = ranks_of(sharding.shards, &owners);
        Self::of(shift, sharding.shards, vertices, owners, ranks, everywhere)
    }

    fn of(
        shift: u32,
        shards: u32,
        vertices: u32,
        owners: Vec<u8>,
        ranks: Vec<u32>,
        everywhere: Vec<u32>,
    ) -> Self {
        let mut owned = vec![Vec::new(); shards as usize];
        for (b, &owner) in (0..).zip(&owners) {
            if let Some(list) = owned.get_mut(usize::from(owner)) {
                if b > 0 && list.is_empty() {
                    list.push(NO_BLOCK);
                }
                list.push(b);
            }
        }
        let begins = |&b: &u32| b == 0 || owners[b as usize] != owners[b as usize - 1];
        let runs = (0..owners.len() as u32).filter(begins).collect();
        Self {
            shift,
            shards,
            vertices,
            owners,
            ranks,
            everywhere,
            owned,
            runs,
        }
    }

    /// log2 of the ids in a block.
    #[must_use]
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// Number of shards.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// Ids of the terms that every shard has, ascending.
    #[must_use]
    pub fn everywhere(&self) -> &[u32] {
        &self.everywhere
    }

    /// The owner of an id and its key there; `None` for ids that the load did not give out. Two loads; neighbouring ids
    /// share their cache lines.
    #[inline]
    #[must_use]
    pub fn place(&self, v: u32) -> Option<Place> {
        let block = (v >> self.shift) as usize;
        if v == NO_VERTEX || v > self.vertices {
            return None;
        }
        Some(Place {
            shard: u32::from(*self.owners.get(block)?),
            local: self.ranks.get(block)? << self.shift | v & ((1 << self.shift) - 1),
        })
    }

    /// The shard that owns the id, if one does.
    #[inline]
    #[must_use]
    pub fn owner(&self, v: u32) -> Option<u8> {
        if v == NO_VERTEX || v > self.vertices {
            return None;
        }
        self.owners.get((v >> self.shift) as usize).copied()
    }

    /// The parts of ascending runs of ids that a shard owns, O(runs of its blocks among them).
    #[must_use]
    pub fn parts(&self, shard: u32, ids: &[[u32; 2]]) -> Vec<[u32; 2]> {
        let mut out: Vec<[u32; 2]> = Vec::new();
        // After the last id there is no block.
        let end = u64::from(self.vertices) + 1;
        for &[from, to] in ids {
            let (from, to) = (u64::from(from.max(1)), u64::from(to).min(end));
            let at = self
                .runs
                .partition_point(|&b| u64::from(b) << self.shift <= from);
            let mut runs = self.runs.iter().skip(at.saturating_sub(1)).peekable();
            while let Some(&block) = runs.next()
                && u64::from(block) << self.shift < to
            {
                if self
                    .owners
                    .get(block as usize)
                    .is_none_or(|&o| u32::from(o) != shard)
                {
                    continue;
                }
                let a = (u64::from(block) << self.shift).max(from) as u32;
                let b = runs
                    .peek()
                    .map_or(to, |&&next| (u64::from(next) << self.shift).min(to))
                    as u32;
                match out.last_mut() {
                    Some(last) if last[1] == a => last[1] = b,
                    _ if a < b => out.push([a, b]),
                    _ => {}
                }
            }
        }
        out
    }

    /// The id of a shard's key; [`NO_VERTEX`] where it has none.
    #[inline]
    #[must_use]
    pub fn global(&self, shard: u32, local: u32) -> u32 {
        let blocks = self
            .owned
            .get(shard as usize)
            .map_or(&[][..], Vec::as_slice);
        match blocks.get((local >> self.shift) as usize) {
            Some(&block) if block != NO_BLOCK => {
                block << self.shift | local & ((1 << self.shift) - 1)
            }
            _ => NO_VERTEX,
        }
    }

    /// Makes ids of a shard's keys, in place: ascending ones stay ascending.
    pub fn to_global(&self, shard: u32, keys: &mut [u32]) {
        for k in keys {
            *k = self.global(shard, *k);
        }
    }

    /// The first key of a shard: its dictionary numbers the terms that it owns by `key - first_key + 1`, since its blocks are
    /// full but for block 0, which lacks id 0, and the last one.
    pub(crate) fn first_key(&self, shard: u32) -> u32 {
        match self.owners.first() {
            Some(&owner) if u32::from(owner) == shard => 1,
            _ => 1 << self.shift,
        }
    }

    /// Number of ids that a shard owns.
    #[must_use]
    pub fn terms_of(&self, shard: u32) -> u32 {
        let blocks = self
            .owned
            .get(shard as usize)
            .map_or(&[][..], Vec::as_slice);
        let size = |&b: &u32| {
            let (from, to) = (u64::from(b) << self.shift, (u64::from(b) + 1) << self.shift);
            (to.min(u64::from(self.vertices) + 1) - from.max(1).min(to)) as u32
        };
        blocks.iter().filter(|&&b| b != NO_BLOCK).map(size).sum()
    }

    /// Vertices of [`Self::everywhere`] that a shard does not own.
    pub(crate) fn foreign(&self, shard: u32) -> Vec<u32> {
        let all = self.everywhere.iter().copied();
        all.filter(|&v| self.place(v).is_some_and(|p| p.shard != shard))
            .collect()
    }

    /// Writes `blocks.jd` of a shard.
    pub(crate) fn write<W: Write + Seek>(&self, shard: u32, out: W) -> std::io::Result<W> {
        let mut w = SectionWriter::new(out, MAGIC, 4)?;
        w.section(HEAD, &[self.shift, self.shards, shard, self.vertices])?;
        w.section(OWNERS, &self.owners)?;
        w.section(RANKS, &self.ranks)?;
        w.section(EVERYWHERE, &self.everywhere)?;
        w.finish()
    }

    /// Reads `blocks.jd` into memory: the table, and the number of the shard that it lies in.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a file that is not what [`Self::write`] makes of any table.
    pub(crate) fn read(bytes: Bytes) -> Result<(Self, u32)> {
        let damaged = || {
            Error::damaged(
                BLOCKS,
                "damaged; run `jindou check`, then load the store again",
            )
        };
        let file = SectionFile::open(bytes, &MAGIC, BLOCKS)?;
        let &[shift, shards, shard, vertices] = file.array::<u32>(HEAD) else {
            return Err(damaged());
        };
        let owners = file.array::<u8>(OWNERS).to_vec();
        let ranks = file.array::<u32>(RANKS).to_vec();
        let everywhere = file.array::<u32>(EVERYWHERE).to_vec();
        file.check_file()?;
        let sound = shift <= MAX_SHIFT
            && (1..=MAX_SHARDS).contains(&shards)
            && shard < shards
            && owners.len() as u64 == u64::from(vertices >> shift) + 1
            && owners.iter().all(|&o| u32::from(o) < shards)
            && ranks == ranks_of(shards, &owners)
            && everywhere.windows(2).all(|w| w[0] < w[1]);
        if !sound {
            return Err(damaged());
        }
        Ok((
            Self::of(shift, shards, vertices, owners, ranks, everywhere),
            shard,
        ))
    }
}

/// Places of the blocks among those of their owners: see the head of this file.
fn ranks_of(shards: u32, owners: &[u8]) -> Vec<u32> {
    let mut next = vec![1u32; shards as usize];
    let each = (0u32..).zip(owners).map(|(b, &owner)| {
        if b == 0 {
            return 0;
        }
        match next.get_mut(usize::from(owner)) {
            Some(n) => {
                *n += 1;
                *n - 1
            }
            None => 0,
        }
    });
    each.collect()
}

/// The finaliser of SplitMix64.
fn mixed(block: u32) -> u64 {
    let x = u64::from(block).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    proptest! {
        #[test]
        fn keys_ascend_with_ids_and_come_back(
            lens in prop::collection::vec(1u32..40, 0..20),
            shards in 1u32..14,
            shift in prop::option::of(0u32..6),
            hash: bool,
        ) {
            let vertices: u32 = lens.iter().sum();
            let sharding = Sharding::new(shards)
                .with_block_shift(shift)
                .with_placement(if hash { Placement::Hash } else { Placement::Range });
            let everywhere = (1..=vertices).step_by(7).collect();
            let b = Blocks::new(&sharding, vertices, lens.iter().copied(), &[], everywhere);
            let mut last = vec![0; shards as usize];
            let mut owned = vec![0; shards as usize];
            for v in 1..=vertices {
                let Place { shard, local } = b.place(v).unwrap();
                prop_assert!(local > last[shard as usize]);
                prop_assert_eq!(b.global(shard, local), v);
                // Terms are numbered without a gap.
                owned[shard as usize] += 1;
                prop_assert_eq!(local - b.first_key(shard) + 1, owned[shard as usize]);
                last[shard as usize] = local;
            }
            for s in 0..shards {
                prop_assert_eq!(b.terms_of(s), owned[s as usize]);
                prop_assert_eq!(b.global(s, 0), 0);
            }
            prop_assert_eq!((b.place(0), b.place(vertices + 1)), (None, None));
            if shards == 1 {
                prop_assert!((1..=vertices).all(|v| b.place(v).unwrap().local == v));
            }
            for s in 0..shards {
                let runs = [[0, vertices / 3], [vertices / 3, vertices / 2], [vertices / 2 + 1, u32::MAX]];
                let parts = b.parts(s, &runs);
                prop_assert!(parts.iter().all(|p| p[0] < p[1]) && parts.windows(2).all(|w| w[0][1] < w[1][0]));
                let found: Vec<u32> = parts.iter().flat_map(|p| p[0]..p[1]).collect();
                let all = (1..=vertices).filter(|&v| v != vertices / 2 || vertices < 2);
                let expected: Vec<u32> = all.filter(|&v| b.owner(v).map(u32::from) == Some(s)).collect();
                prop_assert_eq!(found, expected);
            }
            let file = b.write(shards - 1, Cursor::new(vec![])).unwrap().into_inner();
            prop_assert_eq!(Blocks::read(Bytes::copy_of(&file)).unwrap(), (b, shards - 1));
        }
    }

    #[test]
    fn ten_terms_lie_on_all_of_three_shards() {
        for placement in [Placement::Range, Placement::Hash] {
            let sharding = Sharding::new(3).with_placement(placement);
            let b = Blocks::new(&sharding, 10, [1, 3, 6].into_iter(), &[], vec![]);
            assert!((0..3).all(|s| b.terms_of(s) > 0), "{placement:?}");
        }
        assert_eq!(shift_for((1 << 21) - 1), 0);
        assert_eq!(shift_for(1 << 21), 1);
        assert_eq!(shift_for(jindou_model::MAX_BASE_VERTICES), 11);
    }

    #[test]
    fn damaged_tables_are_refused() {
        let b = Blocks::new(&Sharding::new(3), 40, [40].into_iter(), &[], vec![3, 9]);
        let file = b.write(1, Cursor::new(vec![])).unwrap().into_inner();
        for at in 0..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 0x81;
            if let Ok((read, shard)) = Blocks::read(Bytes::copy_of(&bad)) {
                // Padding, the shard's number, or a list that is as good as the other: nothing that leads out of bounds.
                assert!(shard < 3);
                for v in 0..50 {
                    if let Some(p) = read.place(v) {
                        assert_eq!(read.global(p.shard, p.local), v);
                    }
                }
            }
            assert!(Blocks::read(Bytes::copy_of(&file[..at])).is_err());
        }
    }
}
