//! The block table: the owner of each id, and the id's key in the owner's segments.
//!
//! Ids are divided into blocks of 2^shift. A shard numbers the blocks that it owns by rank, ascending, so that its
//! *local keys*, `rank << shift | low bits`, ascend with ids. Block 0 has rank 0, and every other block a rank of at
//! least 1: so local key 0 is never a vertex, just as id 0 is not one. Keys of a shard's segments are local keys,
//! neighbours are ids.
//!
//! Ids of terms that updates added (*new ids*) are assigned to shards in turn, 1,024 at a time. Their local keys follow
//! those of the shard's blocks, so that these also ascend with ids. A base has edges of a new id only after a merge.

use jindou_model::{FIRST_QUERY_ID, FIRST_TAIL_ID, NO_VERTEX};

/// Largest number of shards of a store: the number of an owner is stored in one byte.
pub const MAX_SHARDS: u32 = 255;
/// log2 of the largest block size.
pub const MAX_SHIFT: u32 = 16;
/// log2 of the number of consecutive new ids that are assigned to the same shard.
const NEW_SHIFT: u32 = 10;

/// Location of an id's edges and string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdPlace {
    /// The shard that owns the id.
    pub shard: u32,
    /// The key in that shard's segments.
    pub local: LocalKey,
}

/// A key of one shard's segments, which is not an id: see the documentation of this module. 0 is not a key.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    bytemuck::Pod,
    bytemuck::Zeroable,
)]
#[repr(transparent)]
pub struct LocalKey(pub u32);

/// The block table, the same on every shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    shift: u32,
    shards: u32,
    vertices: u32,
    /// Number of new ids that the base contains, since they were merged.
    merged: u32,
    /// The owner of each block.
    owners: Vec<u8>,
    /// The rank of each block among its owner's blocks.
    ranks: Vec<u32>,
    /// Ids of terms that every shard has: those of predicates, classes and graphs. Ascending.
    everywhere: Vec<u32>,
    /// Block by shard and rank; [`NO_BLOCK`] for a rank that no block of the shard has.
    owned: Vec<Vec<u32>>,
    /// The first block of each run of consecutive blocks with the same owner.
    runs: Vec<u32>,
}

const NO_BLOCK: u32 = u32::MAX;

impl Blocks {
    /// Creates the table of a store with the ids `1..=vertices` from the owner of each block. `everywhere` has the ids
    /// of the terms that every shard has, ascending. `None` if the arguments are inconsistent. O(blocks).
    #[must_use]
    pub fn new(
        [shift, shards, vertices]: [u32; 3],
        owners: Vec<u8>,
        everywhere: Vec<u32>,
    ) -> Option<Self> {
        let sound = shift <= MAX_SHIFT
            && (1..=MAX_SHARDS).contains(&shards)
            && owners.len() as u64 == u64::from(vertices >> shift) + 1
            && owners.iter().all(|&o| u32::from(o) < shards)
            && everywhere.windows(2).all(|w| w[0] < w[1]);
        if !sound {
            return None;
        }
        let ranks = ranks_of(shards, &owners);
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
        Some(Self {
            shift,
            shards,
            vertices,
            merged: 0,
            owners,
            ranks,
            everywhere,
            owned,
            runs,
        })
    }

    /// The same table for a base that contains the first `merged` new ids.
    #[must_use]
    pub fn with_merged(&self, merged: u32) -> Self {
        Self {
            merged,
            ..self.clone()
        }
    }

    /// log2 of the number of ids in a block.
    #[must_use]
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// Number of shards.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// Number of ids that the load assigned: `1..=vertices`.
    #[must_use]
    pub fn vertices(&self) -> u32 {
        self.vertices
    }

    /// The owner of each block.
    #[must_use]
    pub fn owners(&self) -> &[u8] {
        &self.owners
    }

    /// The rank of each block among its owner's blocks.
    #[must_use]
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// Ids of the terms that every shard has, ascending.
    #[must_use]
    pub fn everywhere(&self) -> &[u32] {
        &self.everywhere
    }

    /// The owner of an id and the id's key there; `None` for ids that the base does not contain, such as new ids before
    /// a merge. Loads two values; those of adjacent ids share cache lines.
    #[inline]
    #[must_use]
    pub fn place(&self, v: u32) -> Option<IdPlace> {
        let block = (v >> self.shift) as usize;
        if v == NO_VERTEX || v > self.vertices {
            return self.merged_place(v);
        }
        Some(IdPlace {
            shard: u32::from(*self.owners.get(block)?),
            local: LocalKey(self.ranks.get(block)? << self.shift | v & ((1 << self.shift) - 1)),
        })
    }

    /// [`Self::place`] of a new id.
    fn merged_place(&self, v: u32) -> Option<IdPlace> {
        let number = v.checked_sub(FIRST_TAIL_ID).filter(|&n| n < self.merged)?;
        let group = number >> NEW_SHIFT;
        let shard = group % self.shards;
        let low = number & ((1 << NEW_SHIFT) - 1);
        let local = self.end(shard) + ((group / self.shards) << NEW_SHIFT | low);
        Some(IdPlace {
            shard,
            local: LocalKey(local),
        })
    }

    /// The first number after all keys of a shard.
    #[must_use]
    pub fn keys_end(&self, shard: u32) -> u32 {
        let groups = self.merged.div_ceil(1 << NEW_SHIFT);
        self.end(shard)
            .saturating_add(groups.div_ceil(self.shards) << NEW_SHIFT)
    }

    /// The first key after those of a shard's blocks: the key of the shard's first new id.
    fn end(&self, shard: u32) -> u32 {
        let blocks = self.owned.get(shard as usize).map_or(0, Vec::len);
        (blocks.max(1) as u32) << self.shift
    }

    /// The shard that owns the id; `None` if the base does not contain the id.
    #[inline]
    #[must_use]
    pub fn owner(&self, v: u32) -> Option<u8> {
        if v == NO_VERTEX || v > self.vertices {
            return self.merged_place(v).map(|place| place.shard as u8);
        }
        self.owners.get((v >> self.shift) as usize).copied()
    }

    /// The shard that an id is assigned to, even if the base does not contain the id yet. If an exploration starts at
    /// an id, this shard runs the start.
    #[inline]
    #[must_use]
    pub fn assigned(&self, v: u32) -> Option<u32> {
        match v {
            FIRST_TAIL_ID..FIRST_QUERY_ID => Some(((v - FIRST_TAIL_ID) >> NEW_SHIFT) % self.shards),
            _ => self.owner(v).map(u32::from),
        }
    }

    /// The parts of ascending intervals of ids that are [assigned](Self::assigned) to a shard. O(runs of the shard's
    /// blocks in the intervals, and its groups of new ids).
    #[must_use]
    pub fn parts(&self, shard: u32, ids: &[[u32; 2]]) -> Vec<[u32; 2]> {
        let mut out: Vec<[u32; 2]> = Vec::new();
        let mut push = |a: u32, b: u32| match out.last_mut() {
            Some(last) if last[1] == a => last[1] = b,
            _ if a < b => out.push([a, b]),
            _ => {}
        };
        // Later ids are in no block.
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
                push(a, b);
            }
        }
        for &[from, to] in ids {
            let (mut from, to) = (from.max(FIRST_TAIL_ID), to.min(FIRST_QUERY_ID));
            while from < to {
                let next = ((((from - FIRST_TAIL_ID) >> NEW_SHIFT) + 1) << NEW_SHIFT)
                    .saturating_add(FIRST_TAIL_ID)
                    .min(to);
                if self.assigned(from) == Some(shard) {
                    push(from, next);
                }
                from = next;
            }
        }
        out
    }

    /// The id of a shard's key; [`NO_VERTEX`] if the shard has no such key.
    #[inline]
    #[must_use]
    pub fn global(&self, shard: u32, local: LocalKey) -> u32 {
        let local = local.0;
        let blocks = self
            .owned
            .get(shard as usize)
            .map_or(&[][..], Vec::as_slice);
        match blocks.get((local >> self.shift) as usize) {
            Some(&block) if block != NO_BLOCK => {
                block << self.shift | local & ((1 << self.shift) - 1)
            }
            Some(_) => NO_VERTEX,
            None => self.merged_id(shard, local).unwrap_or(NO_VERTEX),
        }
    }

    /// [`Self::global`] of a key after those of the shard's blocks, which is one of a new id.
    fn merged_id(&self, shard: u32, local: u32) -> Option<u32> {
        let key = local.checked_sub(self.end(shard))?;
        let group = (key >> NEW_SHIFT)
            .checked_mul(self.shards)?
            .checked_add(shard)?;
        let low = key & ((1 << NEW_SHIFT) - 1);
        let number = u64::from(group) << NEW_SHIFT | u64::from(low);
        (number < u64::from(self.merged)).then(|| FIRST_TAIL_ID + number as u32)
    }

    /// The first key of a shard. Its dictionary stores the term of `key` under the id `key - first_key + 1`. This has
    /// no gaps: all its blocks are full, except for block 0, which lacks id 0, and the last one.
    #[must_use]
    pub fn first_key(&self, shard: u32) -> LocalKey {
        LocalKey(match self.owners.first() {
            Some(&owner) if u32::from(owner) == shard => 1,
            _ => 1 << self.shift,
        })
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

    /// The vertices in [`Self::everywhere`] that a shard does not own.
    #[must_use]
    pub fn foreign(&self, shard: u32) -> Vec<u32> {
        let all = self.everywhere.iter().copied();
        all.filter(|&v| self.place(v).is_some_and(|p| p.shard != shard))
            .collect()
    }
}

/// The rank of each block among its owner's blocks: see the documentation of this module.
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
