//! The format of a sharded store: its manifest ([`Cluster`]), the assignment of ids to shards by a load ([`Sharding`]),
//! and each shard's own data ([`OwnData`]).
//!
//! Each shard is a store directory. The keys of its segments are numbers of the vertices that it owns; neighbours are
//! ids of the whole store. Statistics, characteristic sets, class intervals and the block table are the same on every
//! shard, so every shard makes the same plans.

mod blocks_file;
mod cluster;
mod open;
mod own;
mod placement;
mod ranges;

pub use blocks_file::BLOCKS;
pub(crate) use blocks_file::write as write_blocks;
pub use cluster::{CLUSTER, Cluster, shard_folder};
pub use open::{manifest_of, open_shard, open_shards, open_shards_with, tidy_shards};
pub use own::{OwnData, PAGE};
pub use placement::{Placement, Sharding};

use jindou_graph::delta::TailTerms;
use jindou_graph::shard::{Blocks, LocalKey};
use jindou_model::{FIRST_TAIL_ID, NO_VERTEX};
use std::sync::Arc;

/// Data that the base of a shard has about itself and the other shards.
#[derive(Debug)]
pub(crate) struct ShardInfo {
    pub blocks: Arc<Blocks>,
    /// The shard's own number.
    pub number: u32,
    /// Ids of terms that the shard has but does not own. The dictionary numbers them after those that it owns.
    pub foreign: Vec<u32>,
    first_key: LocalKey,
    own_terms: u32,
}

impl ShardInfo {
    pub fn new(blocks: Blocks, number: u32) -> Self {
        Self {
            number,
            foreign: blocks.foreign(number),
            first_key: blocks.first_key(number),
            own_terms: blocks.terms_of(number),
            blocks: Arc::new(blocks),
        }
    }

    /// The number of an id's term in the shard's dictionary; `None` if the term is not in it, as terms of updates.
    pub fn term_number(&self, id: u32) -> Option<u32> {
        if id >= FIRST_TAIL_ID {
            return None;
        }
        let place = self.blocks.place(id)?;
        if place.shard == self.number {
            return Some(place.local.0.wrapping_sub(self.first_key.0).wrapping_add(1));
        }
        let at = self.foreign.binary_search(&id).ok()?;
        self.own_terms.checked_add(at as u32 + 1)
    }

    /// The id of the term with this number in the shard's dictionary; [`NO_VERTEX`] if there is none.
    pub fn term_id(&self, number: u32) -> u32 {
        match number.checked_sub(self.own_terms + 1) {
            Some(at) => self.foreign.get(at as usize).copied().unwrap_or(NO_VERTEX),
            None if number == 0 => NO_VERTEX,
            None => {
                let key = LocalKey(number - 1 + self.first_key.0);
                self.blocks.global(self.number, key)
            }
        }
    }

    /// The same data, for a base with this many merged ids of updates.
    pub fn with_merged(&self, merged: u32) -> Self {
        Self {
            blocks: Arc::new(self.blocks.with_merged(merged)),
            number: self.number,
            foreign: self.foreign.clone(),
            first_key: self.first_key,
            own_terms: self.own_terms,
        }
    }

    /// The new terms with the text of those alone whose owners are wanted, and of those that all shards keep.
    pub fn texts_of(&self, tail: &TailTerms, is_wanted: impl Fn(u32) -> bool) -> TailTerms {
        let owner = |number: u32| self.blocks.assigned(FIRST_TAIL_ID + number);
        tail.with_texts(|number| owner(number).is_some_and(&is_wanted))
    }

    /// The key of a vertex that the shard owns; `None` for other vertices.
    pub fn key(&self, id: u32) -> Option<LocalKey> {
        let place = self.blocks.place(id)?;
        (place.shard == self.number).then_some(place.local)
    }

    /// Number of terms in the shard's dictionary.
    pub fn terms(&self) -> u32 {
        self.own_terms + self.foreign.len() as u32
    }
}
