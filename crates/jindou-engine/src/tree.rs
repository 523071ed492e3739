//! The shape of an operator tree: numbers of nodes, and lists of slots.

use jindou_model::{Error, Resource, Result};
use jindou_plan::{Operator, Slot};
use std::borrow::Cow;

/// Depth of the deepest tree that may run.
const MAX_DEPTH: usize = 20_000;

/// The nodes of a tree, numbered in preorder.
pub(crate) struct Nodes {
    /// For each node, the number of nodes in its subtree, including itself.
    sizes: Vec<u32>,
    pub depth: usize,
}

impl Nodes {
    /// # Errors
    /// `Limit` for a tree of more than [`MAX_DEPTH`] levels.
    pub fn from_root(root: &Operator) -> Result<Self> {
        if let Operator::Explore(_) = root {
            // A tree of one node is counted without a walk, since that would take a noticeable part of a light query's
            // time.
            return Ok(Self {
                sizes: vec![1],
                depth: 1,
            });
        }
        let mut depths: Vec<u32> = Vec::new();
        let mut depth = 0;
        let mut open = vec![(root, 1u32)];
        while let Some((op, d)) = open.pop() {
            depths.push(d);
            depth = depth.max(d as usize);
            if depth > MAX_DEPTH {
                return Err(Error::limit(
                    Resource::Form,
                    format!(
                        "the query's plan nests deeper than {MAX_DEPTH} operators; split the query"
                    ),
                ));
            }
            let first = open.len();
            op.each_input(&mut |_, i| open.push((i, d + 1)));
            open[first..].reverse();
        }
        let mut sizes = vec![1u32; depths.len()];
        for at in (0..depths.len()).rev() {
            let mut child = at + 1;
            while depths.get(child).is_some_and(|d| *d == depths[at] + 1) {
                sizes[at] += sizes[child];
                child += sizes[child] as usize;
            }
        }
        Ok(Self { sizes, depth })
    }

    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// The number after those of the subtree of `node`: that of the next input of the same operator, if there is one.
    pub fn after(&self, node: usize) -> usize {
        node + self.sizes[node] as usize
    }
}

/// A list of distinct slots, with the position of each. Adding or finding a slot takes constant time, however long the
/// list is.
#[derive(Default)]
pub(crate) struct SlotList {
    slots: Vec<Slot>,
    /// Position + 1 of each slot; 0 for a slot that is not in the list. Empty while the list is short.
    places: Vec<u32>,
}

impl SlotList {
    /// Largest length for which the list is searched instead.
    const SHORT: usize = 32;

    /// Creates the list from slots, which may repeat.
    pub fn of_all(slots: impl IntoIterator<Item = Slot>) -> Self {
        let mut out = Self::default();
        slots.into_iter().for_each(|s| out.add(s));
        out
    }

    /// Position of the slot; `None` if it is not in the list.
    #[inline]
    pub fn position_of(&self, slot: Slot) -> Option<usize> {
        find(&self.slots, &self.places, slot)
    }

    /// Appends a slot, unless it is in the list.
    pub fn add(&mut self, slot: Slot) {
        if self.position_of(slot).is_some() {
            return;
        }
        self.slots.push(slot);
        if self.places.is_empty() {
            if self.slots.len() > Self::SHORT {
                for (place, s) in (1..).zip(&self.slots) {
                    note(&mut self.places, *s, place);
                }
            }
            return;
        }
        note(&mut self.places, slot, self.slots.len() as u32);
    }

    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub fn into_slots(self) -> Vec<Slot> {
        self.slots
    }
}

/// The position of each slot in a list that may have thousands of slots.
pub(crate) struct SlotLayout<'a> {
    slots: &'a [Slot],
    /// As [`SlotList::places`].
    places: Cow<'a, [u32]>,
}

impl<'a> SlotLayout<'a> {
    pub fn new(slots: &'a [Slot]) -> Self {
        let mut places = vec![];
        if slots.len() > SlotList::SHORT {
            // If a slot is repeated, its first position counts.
            for (place, s) in slots.iter().enumerate().rev() {
                note(&mut places, *s, place as u32 + 1);
            }
        }
        Self {
            slots,
            places: places.into(),
        }
    }

    /// The layout of the first `columns` columns only.
    pub fn first(&self, columns: usize) -> SlotLayout<'_> {
        SlotLayout {
            slots: &self.slots[..columns],
            places: Cow::Borrowed(&self.places),
        }
    }

    /// Column of the slot; `None` if it is not in the list.
    #[inline]
    pub fn position_of(&self, slot: Slot) -> Option<usize> {
        find(self.slots, &self.places, slot).filter(|c| *c < self.slots.len())
    }
}

#[inline]
fn find(slots: &[Slot], places: &[u32], slot: Slot) -> Option<usize> {
    if places.is_empty() {
        return slots.iter().position(|s| *s == slot);
    }
    let place = places.get(usize::from(slot)).copied();
    place.and_then(|p| p.checked_sub(1)).map(|p| p as usize)
}

fn note(places: &mut Vec<u32>, slot: Slot, place: u32) {
    let at = usize::from(slot);
    if places.len() <= at {
        places.resize((at + 1).next_power_of_two(), 0);
    }
    places[at] = place;
}

/// The slots of `wanted` that are also in `there`, without duplicates, in the order of `wanted`.
pub(crate) fn common(wanted: &[Slot], there: &[Slot]) -> Vec<Slot> {
    let there = SlotLayout::new(there);
    let kept = wanted
        .iter()
        .copied()
        .filter(|s| there.position_of(*s).is_some());
    SlotList::of_all(kept).into_slots()
}

/// The slots, followed by those of `more` that are not among them, without duplicates.
pub(crate) fn with(slots: Vec<Slot>, more: impl IntoIterator<Item = Slot>) -> Vec<Slot> {
    let mut out = SlotList::of_all(slots);
    more.into_iter().for_each(|s| out.add(s));
    out.into_slots()
}
