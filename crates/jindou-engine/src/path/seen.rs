//! The nodes that a search has visited, in the order of the visits; this is also the search's queue.

use crate::batch::OperatorCharge;
use crate::explore::QueryContext;
use jindou_model::{FIRST_TAIL_ID, Holder, Result};
use rustc_hash::FxHashSet;

/// Number of nodes from which on the table is replaced by a bitmap, unless that would be too large.
const BITMAP_FROM: usize = 1 << 10;
/// Capacity from which on memory is freed instead of being kept for the next search.
const KEPT: usize = 1 << 14;

pub(super) struct VisitedSet {
    /// The nodes in the order of their insertion.
    pub order: Vec<u32>,
    /// Nodes beyond the bitmap, or all nodes while there is no bitmap.
    few: FxHashSet<u32>,
    bits: Vec<u64>,
    /// Number of ids that a bitmap would cover.
    span: u32,
    charge: OperatorCharge,
}

impl VisitedSet {
    pub fn new(ctx: &QueryContext<'_>) -> Self {
        Self {
            order: vec![],
            few: FxHashSet::default(),
            bits: vec![],
            span: ctx
                .snapshot
                .dense_ids()
                .saturating_add(1)
                .min(FIRST_TAIL_ID),
            charge: OperatorCharge::for_holder(Holder::Path, ctx.budget),
        }
    }

    /// Removes all nodes. Memory is kept for the next search, unless it is large.
    pub fn clear(&mut self) -> Result<()> {
        if self.order.len() > self.bits.len() {
            self.bits.fill(0);
        } else {
            for &v in &self.order {
                if let Some(word) = self.bits.get_mut((v / 64) as usize) {
                    *word = 0;
                }
            }
        }
        self.order.clear();
        if self.few.capacity() > KEPT {
            self.few = FxHashSet::default();
        }
        self.few.clear();
        if self.order.capacity() > KEPT && self.order.capacity() / 8 > self.bits.len() {
            self.order = vec![];
        }
        self.recharge(0, 0)
    }

    /// Allocates space for this many more nodes. Required before [`Self::insert`].
    #[inline]
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        let want = self.order.len() + more;
        if want > self.order.capacity()
            || (self.bits.is_empty() && self.few.len() + more > self.few.capacity())
        {
            return self.grow(more);
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self, more: usize) -> Result<()> {
        let want = self.order.len() + more;
        // The table takes about 10 bytes per node, the bitmap an eighth of a byte per vertex of the graph.
        if self.bits.is_empty() && want >= BITMAP_FROM && want * 64 >= self.span as usize / 8 {
            let words = (self.span as usize).div_ceil(64);
            self.recharge(0, words * 8)?;
            self.bits = vec![0; words];
            let few = std::mem::take(&mut self.few);
            for v in few {
                match self.bits.get_mut((v / 64) as usize) {
                    Some(word) => *word |= 1 << (v % 64),
                    None => {
                        self.few.insert(v);
                    }
                }
            }
        }
        if want > self.order.capacity() {
            let room = want.max(self.order.capacity() * 2).max(64);
            self.recharge(room, 0)?;
            self.order.reserve_exact(room - self.order.len());
        }
        if self.bits.is_empty() {
            let room = (self.few.len() + more).next_power_of_two();
            self.recharge(0, room * 16)?;
            self.few.reserve(more);
        }
        self.recharge(0, 0)
    }

    /// Charges the memory held, plus that of `nodes` more nodes in `order`, plus `bytes`.
    fn recharge(&mut self, nodes: usize, bytes: usize) -> Result<()> {
        let order = self.order.capacity() + nodes;
        self.charge
            .set(order * 4 + self.few.capacity() * 6 + self.bits.len() * 8 + bytes)
    }

    /// Adds a node; returns true if it is new. Space for it must have been reserved.
    #[inline]
    pub fn insert(&mut self, v: u32) -> bool {
        let new = match self.bits.get_mut((v / 64) as usize) {
            Some(word) => {
                let bit = 1 << (v % 64);
                let new = *word & bit == 0;
                *word |= bit;
                new
            }
            None => self.few.insert(v),
        };
        if new {
            self.order.push(v);
        }
        new
    }

    #[inline]
    pub fn contains(&self, v: u32) -> bool {
        match self.bits.get((v / 64) as usize) {
            Some(word) => word >> (v % 64) & 1 == 1,
            None => self.few.contains(&v),
        }
    }

    /// Appends all nodes to `out`, ascending.
    pub fn sorted(&self, out: &mut Vec<u32>) {
        let at = out.len();
        out.reserve(self.order.len());
        if self.bits.is_empty() || self.order.len() < self.bits.len() / 4 {
            out.extend_from_slice(&self.order);
        } else {
            for (i, &word) in (0u32..).zip(&self.bits) {
                let mut w = word;
                while w != 0 {
                    out.push(i * 64 + w.trailing_zeros());
                    w &= w - 1;
                }
            }
            out.extend(&self.few);
        }
        if let Some(new) = out.get_mut(at..)
            && !new.is_sorted()
        {
            new.sort_unstable();
        }
    }
}
