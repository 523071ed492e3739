//! Sort keys of ids, and the order of ORDER BY between terms: made from value ranks; no string of the base is read.
//!
//! Key of a base term: class (8 bits), rank × 2 + 1 (33 bits), 0 (23 bits). Terms that the base does not
//! have fall between two ranks: rank of the next greater one × 2 (or the same rank, if one is equal), and then
//! their place among each other. Unbound is 0, before everything.

use crate::explore::Run;
use crate::filter::{added_term, dictionary};
use jindou_dictionary::value::{Group, TemporalKey};
use jindou_dictionary::{Comparison, Dictionary, Number, SortKey};
use jindou_model::term::{self, Parts};
use jindou_model::{FIRST_QUERY_ID, FIRST_TAIL_ID, VertexId};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::hash_map::Entry;

/// Bits of a key that are 0 in every base term's.
pub(super) const PLACE_BITS: u32 = 23;

/// Sort keys of ids.
pub(super) struct Keys<'r> {
    dictionary: &'r Dictionary,
    /// Of terms that the base does not have.
    added: FxHashMap<u32, u64>,
}

impl<'r> Keys<'r> {
    pub fn new(run: &Run<'r>) -> Self {
        Self {
            dictionary: dictionary(run.snapshot),
            added: FxHashMap::default(),
        }
    }

    #[inline]
    pub fn key(&self, id: u32) -> u64 {
        if id == 0 {
            return 0;
        }
        if id >= FIRST_TAIL_ID {
            return self.added.get(&id).copied().unwrap_or(u64::MAX);
        }
        let SortKey { class, rank } = self.dictionary.sort_key(VertexId(id));
        pack(class, rank, true, 0)
    }

    /// Finds the keys of added terms.
    pub fn place_added(&mut self, run: &Run<'_>, ids: impl Iterator<Item = u32>) {
        let mut terms: Vec<(u32, Added)> = Vec::new();
        for id in ids {
            if let Entry::Vacant(e) = self.added.entry(id) {
                e.insert(u64::MAX);
                terms.push((id, Added::new(self.dictionary, added_term(run, id))));
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
                .insert(*id, pack(term.class, term.rank, term.equal, place));
        }
    }
}

fn pack(class: u8, rank: u32, on: bool, place: u64) -> u64 {
    u64::from(class) << 56 | (u64::from(rank) * 2 + u64::from(on)) << PLACE_BITS | place
}

/// The classes of `Dictionary::sort_key`, for terms that are not in it.
mod class {
    pub(super) const BLANK: u8 = 1;
    pub(super) const IRI: u8 = 2;
    pub(super) const NUMBER: u8 = 3;
    pub(super) const STRING: u8 = 4;
    pub(super) const LANG: u8 = 5;
    pub(super) const BOOLEAN: u8 = 6;
    pub(super) const TEMPORAL: u8 = 7;
    pub(super) const OTHER: u8 = 16;
    pub(super) const TRIPLE: u8 = 17;
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
        let d = dictionary(run.snapshot);
        if a < FIRST_TAIL_ID && b < FIRST_TAIL_ID {
            let key = |id| d.sort_key(VertexId(id)).packed();
            return key(a).cmp(&key(b));
        }
        if self.known.len() >= PLACES {
            self.known.clear();
        }
        for id in [a, b] {
            self.known.entry(id).or_insert_with(|| {
                let mut bytes = Vec::new();
                if id >= FIRST_QUERY_ID {
                    run.terms.term(VertexId(id), &mut bytes);
                } else {
                    run.snapshot.term(VertexId(id), &mut bytes);
                }
                Added::new(d, bytes)
            });
        }
        match (self.known.get(&a), self.known.get(&b)) {
            (Some(a), Some(b)) => a.order(b),
            _ => Ordering::Equal,
        }
    }
}

/// A term that the base does not have: where it lies between the base's.
struct Added {
    class: u8,
    /// Base terms of the class before it.
    rank: u32,
    /// A base term has an equal value.
    equal: bool,
    number: Option<Number>,
    bytes: Vec<u8>,
}

impl Added {
    fn new(d: &Dictionary, bytes: Vec<u8>) -> Self {
        let number = match term::parts(&bytes) {
            Some(Parts::Coded(lexical, code)) => Number::parse(code, lexical),
            _ => None,
        };
        if let Some(n) = &number
            && !n.to_f64().is_nan()
        {
            let less = d.numeric_bounds(Comparison::Less, n).of(n.kind());
            let equal = d.numeric_bounds(Comparison::Equal, n).of(n.kind());
            let rank = less.end;
            return Self {
                class: class::NUMBER,
                rank,
                equal: !equal.is_empty(),
                number,
                bytes,
            };
        }
        let tag = bytes.first().copied().unwrap_or(0);
        if let (Some(Group::Temporal(place)), Some(Parts::Coded(lexical, _))) =
            (Group::of_tag(tag), term::parts(&bytes))
            && let (Some(less), Some(equal), Some(key)) = (
                d.temporal_bounds(tag, Comparison::Less, lexical),
                d.temporal_bounds(tag, Comparison::Equal, lexical),
                TemporalKey::parse(tag, lexical),
            )
        {
            let (less, equal) = if key.unzoned {
                (less.unzoned, equal.unzoned)
            } else {
                (less.zoned, equal.zoned)
            };
            let class = class::TEMPORAL + place;
            return Self {
                class,
                rank: less.end,
                equal: !equal.is_empty(),
                number: None,
                bytes,
            };
        }
        let class = match tag {
            term::BLANK => class::BLANK,
            term::IRI => class::IRI,
            term::STRING => class::STRING,
            term::LANG => class::LANG,
            term::TRIPLE => class::TRIPLE,
            term::BOOLEAN_TAG => class::BOOLEAN,
            _ => class::OTHER,
        };
        let rank = if class == class::BOOLEAN {
            u32::from(bytes.get(1).is_some_and(|&b| b == b't' || b == b'1'))
        } else {
            d.strings().lower_bound(&bytes)
        };
        Self {
            class,
            rank,
            equal: class == class::BOOLEAN,
            number: None,
            bytes,
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        (self.class, self.rank, self.equal)
            .cmp(&(other.class, other.rank, other.equal))
            .then_with(|| match (&self.number, &other.number) {
                (Some(a), Some(b)) => a.to_f64().total_cmp(&b.to_f64()),
                _ => self.bytes.cmp(&other.bytes),
            })
    }
}
