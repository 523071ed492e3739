//! Sets of slots: bits, inline for the first 128 (which is all that most queries have).

use crate::Slot;

/// A set of slots. Operations are O(largest slot / 128).
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotSet {
    low: u128,
    high: Vec<u128>,
}

impl SlotSet {
    pub(crate) fn one(slot: Slot) -> Self {
        let mut s = Self::default();
        s.insert(slot);
        s
    }

    pub(crate) fn insert(&mut self, slot: Slot) {
        let at = usize::from(slot) / 128;
        if at == 0 {
            self.low |= 1 << slot;
        } else {
            if self.high.len() < at {
                self.high.resize(at, 0);
            }
            self.high[at - 1] |= 1 << (slot % 128);
        }
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        let at = usize::from(slot) / 128;
        if at == 0 {
            self.low &= !(1 << slot);
        } else if let Some(w) = self.high.get_mut(at - 1) {
            *w &= !(1 << (slot % 128));
        }
    }

    pub(crate) fn has(&self, slot: Slot) -> bool {
        let at = usize::from(slot) / 128;
        let word = if at == 0 {
            self.low
        } else {
            self.high.get(at - 1).copied().unwrap_or(0)
        };
        word >> (slot % 128) & 1 == 1
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
        if self.high.len() < other.high.len() {
            self.high.resize(other.high.len(), 0);
        }
        for (a, b) in self.high.iter_mut().zip(&other.high) {
            *a |= b;
        }
    }

    pub(crate) fn or(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.add(other);
        out
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            low: self.low & other.low,
            high: self
                .high
                .iter()
                .zip(&other.high)
                .map(|(a, b)| a & b)
                .collect(),
        }
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.low &= !other.low;
        for (a, b) in out.high.iter_mut().zip(&other.high) {
            *a &= !b;
        }
        out
    }

    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.minus(other).is_empty()
    }

    pub(crate) fn meets(&self, other: &Self) -> bool {
        !self.and(other).is_empty()
    }

    /// Ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> {
        std::iter::once(self.low)
            .chain(self.high.iter().copied())
            .enumerate()
            .flat_map(|(i, w)| crate::model::bits(w).map(move |b| b + (i * 128) as Slot))
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
            a in prop::collection::btree_set(0u16..400, 0..40),
            b in prop::collection::btree_set(0u16..300, 0..40),
        ) {
            let (x, y): (SlotSet, SlotSet) = (a.iter().copied().collect(), b.iter().copied().collect());
            let set = |s: SlotSet| s.iter().collect::<BTreeSet<Slot>>();
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(set(x.or(&y)), &a | &b);
            prop_assert_eq!(set(x.and(&y)), &a & &b);
            prop_assert_eq!(set(x.minus(&y)), &a - &b);
            prop_assert_eq!(x.is_within(&y), a.is_subset(&b));
            prop_assert_eq!(x.meets(&y), !a.is_disjoint(&b));
            for s in 0..400 {
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
