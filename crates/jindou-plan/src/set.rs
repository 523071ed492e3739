//! Sets of slots as bits, inline for the first 128 slots, which suffices for most queries. For slots beyond these, only
//! the words between the smallest and the largest slot are stored, since the slots of a part of a huge query are close
//! together.

use crate::Slot;

/// A set of slots. Operations are O(words).
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotSet {
    low: u128,
    /// Bits of the slots from 128 on: word `first` of the set, and those that follow it. A word is 128 slots.
    high: Vec<u128>,
    /// Number of the first word in `high`; at least 1 if `high` is not empty.
    first: usize,
}

impl SlotSet {
    pub(crate) fn one(slot: Slot) -> Self {
        let mut s = Self::default();
        s.insert(slot);
        s
    }

    fn word(&self, at: usize) -> u128 {
        let high = at.checked_sub(self.first).and_then(|i| self.high.get(i));
        if at == 0 {
            self.low
        } else {
            high.copied().unwrap_or(0)
        }
    }

    /// Extends `high` so that it includes the words `from .. to`; `from` is at least 1.
    fn cover(&mut self, from: usize, to: usize) {
        if self.high.is_empty() {
            self.first = from;
        } else if from < self.first {
            let more = self.first - from;
            self.high.splice(0..0, std::iter::repeat_n(0, more));
            self.first = from;
        }
        if self.high.len() < to - self.first {
            self.high.resize(to - self.first, 0);
        }
    }

    pub(crate) fn insert(&mut self, slot: Slot) {
        let at = usize::from(slot) / 128;
        if at == 0 {
            self.low |= 1 << slot;
        } else {
            self.cover(at, at + 1);
            self.high[at - self.first] |= 1 << (slot % 128);
        }
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        let at = usize::from(slot) / 128;
        if at == 0 {
            self.low &= !(1 << slot);
        } else if let Some(w) = at
            .checked_sub(self.first)
            .and_then(|i| self.high.get_mut(i))
        {
            *w &= !(1 << (slot % 128));
        }
    }

    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.word(usize::from(slot) / 128) >> (slot % 128) & 1 == 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.low == 0 && self.high.iter().all(|w| *w == 0)
    }

    pub(crate) fn len(&self) -> usize {
        let high: u32 = self.high.iter().map(|w| w.count_ones()).sum();
        (self.low.count_ones() + high) as usize
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.low |= other.low;
        if other.high.is_empty() {
            return;
        }
        self.cover(other.first, other.first + other.high.len());
        let from = other.first - self.first;
        for (a, b) in self.high[from..].iter_mut().zip(&other.high) {
            *a |= b;
        }
    }

    pub(crate) fn or(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.add(other);
        out
    }

    /// The words in `high`, with their numbers.
    fn words(&self) -> impl Iterator<Item = (usize, u128)> {
        self.high
            .iter()
            .enumerate()
            .map(|(i, w)| (self.first + i, *w))
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut out = Self {
            low: self.low & other.low,
            ..Self::default()
        };
        for (at, word) in self.words() {
            let both = word & other.word(at);
            if both != 0 {
                out.cover(at, at + 1);
                out.high[at - out.first] = both;
            }
        }
        out
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.low &= !other.low;
        let first = out.first;
        for (i, a) in out.high.iter_mut().enumerate() {
            *a &= !other.word(first + i);
        }
        out
    }

    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.low & !other.low == 0 && self.words().all(|(at, w)| w & !other.word(at) == 0)
    }

    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.low & other.low != 0 || self.words().any(|(at, w)| w & other.word(at) != 0)
    }

    /// The slots in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> {
        std::iter::once((0, self.low))
            .chain(self.words())
            .flat_map(|(at, w)| crate::model::bits(w).map(move |b| b + (at * 128) as Slot))
    }

    pub(crate) fn to_vec(&self) -> Vec<Slot> {
        self.iter().collect()
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Self {
        let mut out = Self::default();
        slots.into_iter().for_each(|s| out.insert(s));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn they_are_sets(
            a in prop::collection::btree_set(0u16..1400, 0..40),
            b in prop::collection::btree_set(900u16..1600, 0..40),
        ) {
            let (x, y): (SlotSet, SlotSet) = (a.iter().copied().collect(), b.iter().copied().collect());
            let set = |s: SlotSet| s.iter().collect::<BTreeSet<Slot>>();
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(set(x.or(&y)), &a | &b);
            prop_assert_eq!(set(x.and(&y)), &a & &b);
            prop_assert_eq!(set(x.minus(&y)), &a - &b);
            prop_assert_eq!(x.is_within(&y), a.is_subset(&b));
            prop_assert_eq!(x.meets(&y), !a.is_disjoint(&b));
            for s in 0..1600 {
                prop_assert_eq!(x.has(s), a.contains(&s));
            }
            let mut z = x.clone();
            if let Some(&s) = a.first() {
                z.remove(s);
                prop_assert!(!z.has(s));
            }
        }
    }
}
