//! Sort keys of ids, and the order of ORDER BY between terms: made from value ranks; no string of the base is read.
//!
//! Key of a base term: class (8 bits), rank × 2 + 1 (33 bits), 0 (23 bits). Terms that the base does not
//! have fall between two ranks: rank of the next greater one × 2 (or the same rank, if one is equal), and then
//! their place among each other. Unbound is 0, before everything.

use crate::explore::Run;
use crate::filter::added_term;
use jindou_dictionary::{Dictionary, SortKey};
use jindou_model::VertexId;
use jindou_store::Vocabulary;
use jindou_values::{DurationKey, Number, Value, value};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::hash_map::Entry;

/// Bits of a key that are 0 in every base term's.
pub(super) const PLACE_BITS: u32 = 23;

/// Sort keys of ids.
pub(super) struct Keys<'r> {
    vocabulary: Vocabulary<'r>,
    /// Of terms that have no rank.
    added: FxHashMap<u32, u64>,
}

impl<'r> Keys<'r> {
    pub fn new(run: &Run<'r>) -> Self {
        Self {
            vocabulary: run.vocabulary,
            added: FxHashMap::default(),
        }
    }

    #[inline]
    pub fn key(&self, id: u32) -> u64 {
        if id == 0 {
            return 0;
        }
        let Some(ranks) = self.vocabulary.ranks_of(id) else {
            return self.added.get(&id).copied().unwrap_or(u64::MAX);
        };
        let SortKey { class, rank } = ranks.sort_key(VertexId(id));
        pack(class, rank, true, 0)
    }

    /// Finds the keys of added terms, which compare with those of base terms and with each other: to be called once, with all.
    pub fn place_added(&mut self, run: &Run<'_>, ids: impl Iterator<Item = u32>) {
        let mut terms: Vec<(u32, Added)> = Vec::new();
        for id in ids {
            if let Entry::Vacant(e) = self.added.entry(id) {
                e.insert(u64::MAX);
                terms.push((id, Added::new(self.vocabulary.ranks(), added_term(run, id))));
            }
        }
        if terms.is_empty() {
            return;
        }
        terms.sort_by(|a, b| a.1.order(&b.1));
        let mut place = 1u64;
        let mut last: Option<&Added> = None;
        for (id, term) in &terms {
            // Equal values share a place; so does everything beyond 2^23 of them.
            if last.is_some_and(|l| l.order(term) != Ordering::Equal) {
                place = (place + 1).min((1 << PLACE_BITS) - 1);
            }
            last = Some(term);
            let place = if term.equal { 0 } else { place };
            self.added
                .insert(*id, pack(term.key.class, term.key.rank, term.equal, place));
        }
    }
}

fn pack(class: u8, rank: u32, on: bool, place: u64) -> u64 {
    u64::from(class) << 56 | (u64::from(rank) * 2 + u64::from(on)) << PLACE_BITS | place
}

/// The order of ORDER BY between ids one by one, for MIN and MAX.
#[derive(Default)]
pub(crate) struct Places {
    /// Of ids that were compared with a term that the base does not have.
    known: FxHashMap<u32, Added>,
}

/// Remembered places; beyond, all are forgotten.
const PLACES: usize = 1 << 14;

impl Places {
    /// How two bound ids compare. Between two of the base, two reads of its rank columns.
    pub fn compare(&mut self, run: &Run<'_>, a: u32, b: u32) -> Ordering {
        if let Some(d) = run.vocabulary.ranks_of(a.max(b)) {
            let key = |id| d.sort_key(VertexId(id)).packed();
            return key(a).cmp(&key(b));
        }
        if self.known.len() >= PLACES {
            self.known.clear();
        }
        for id in [a, b] {
            self.known
                .entry(id)
                .or_insert_with(|| Added::new(run.vocabulary.ranks(), added_term(run, id)));
        }
        match (self.known.get(&a), self.known.get(&b)) {
            (Some(a), Some(b)) => a.order(b),
            _ => Ordering::Equal,
        }
    }
}

/// A term that the base does not have: where it lies between the base's.
struct Added {
    /// The first of the base's that is not before it.
    key: SortKey,
    /// True if the value of that term is equal.
    equal: bool,
    by: By,
}

/// Key that sorts a term among others between the same two terms of the base.
enum By {
    Number(Number),
    Instant(i128),
    Duration(DurationKey),
    Bytes(Vec<u8>),
}

impl Added {
    fn new(ranks: Option<&Dictionary>, bytes: Vec<u8>) -> Self {
        let (key, equal) = match ranks {
            Some(d) => d.place(&bytes),
            None => SortKey::alone(&bytes),
        };
        let by = match value(&bytes) {
            Some(Value::Number(n)) => By::Number(n),
            Some(Value::Temporal(t)) => By::Instant(t.instant()),
            Some(Value::Duration(d)) => By::Duration(d.key()),
            _ => By::Bytes(bytes),
        };
        Self { key, equal, by }
    }

    fn order(&self, other: &Self) -> Ordering {
        (self.key, self.equal)
            .cmp(&(other.key, other.equal))
            .then_with(|| {
                // Values that equal one of the base's are equal.
                if self.equal {
                    return Ordering::Equal;
                }
                match (&self.by, &other.by) {
                    (By::Number(a), By::Number(b)) => a.total_order(b),
                    (By::Instant(a), By::Instant(b)) => a.cmp(b),
                    (By::Duration(a), By::Duration(b)) => a.cmp(b),
                    (By::Bytes(a), By::Bytes(b)) => a.cmp(b),
                    _ => Ordering::Equal,
                }
            })
    }
}
