//! Sort keys of ids, and the order of ORDER BY between terms: made from value ranks; no string of the base is read.
//!
//! Key of a base term: class (8 bits), rank × 2 + 1 (33 bits), 0 (23 bits). Terms that the base does not
//! have fall between two ranks: rank of the next greater one × 2 (or the same rank, if one is equal), and then
//! their place among each other. Unbound is 0, before everything.

use crate::explore::Run;
use crate::filter::added_term;
use jindou_dictionary::{Dictionary, SortKey};
use jindou_model::{FIRST_QUERY_ID, VertexId};
use jindou_store::{TermDecoding, Vocabulary};
use jindou_values::{DurationKey, Number, Value, value};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::hash_map::Entry;

/// Bits of a key that are 0 in every base term's.
pub(super) const PLACE_BITS: u32 = 23;
/// Bytes of terms that are fetched at once, about.
const FETCHED: usize = 1 << 20;
/// Terms that are fetched at once: the first ones, and at most.
const FEW: usize = 256;
const MANY: usize = 1 << 14;

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
        let mut terms: Vec<(u32, Added<'_>)> = Vec::new();
        // Where the graph has no ranks, its terms may be on other shards.
        let mut fetched: Vec<u32> = Vec::new();
        let ranks = self.vocabulary.ranks();
        for id in ids {
            if let Entry::Vacant(e) = self.added.entry(id) {
                e.insert(u64::MAX);
                if ranks.is_none() && id < FIRST_QUERY_ID {
                    fetched.push(id);
                } else {
                    terms.push((id, Added::new(ranks, added_term(run, id).into())));
                }
            }
        }
        each_term(&mut self.vocabulary.decoding(), &fetched, |at, term| {
            let term = term.unwrap_or(&[]).to_vec();
            terms.push((fetched[at], Added::new(None, term.into())));
        });
        if terms.is_empty() {
            return;
        }
        terms.sort_by(|a, b| a.1.order(&b.1));
        let mut place = 1u64;
        let mut last: Option<&Added<'_>> = None;
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

/// Calls `take` with each id's place and its term, if it has one. Terms of other shards are fetched many at once, about a mebibyte of them.
pub(crate) fn each_term(
    terms: &mut TermDecoding<'_>,
    ids: &[u32],
    mut take: impl FnMut(usize, Option<&[u8]>),
) {
    let (mut at, mut many) = (0, FEW);
    while let Some(now) = ids.get(at..(at + many).min(ids.len()))
        && !now.is_empty()
    {
        terms.prefetch(now);
        let mut bytes = 0;
        for &id in now {
            let term = terms.term(VertexId(id));
            bytes += term.map_or(0, <[u8]>::len);
            take(at, term);
            at += 1;
        }
        // As many as fit if the next ones are as long; long ones among them must not be very many.
        let fit = FETCHED * now.len() / bytes.max(1);
        many = fit.clamp(1, MANY).min(many * 4);
    }
}

fn pack(class: u8, rank: u32, on: bool, place: u64) -> u64 {
    u64::from(class) << 56 | (u64::from(rank) * 2 + u64::from(on)) << PLACE_BITS | place
}

/// The order of ORDER BY between ids one by one, for MIN and MAX.
#[derive(Default)]
pub(crate) struct Places {
    /// Of ids that were compared with a term that the base does not have.
    known: FxHashMap<u32, Added<'static>>,
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
                .or_insert_with(|| Added::new(run.vocabulary.ranks(), added_term(run, id).into()));
        }
        match (self.known.get(&a), self.known.get(&b)) {
            (Some(a), Some(b)) => a.order(b),
            _ => Ordering::Equal,
        }
    }
}

/// A term that the base does not have: where it lies between the base's.
pub(crate) struct Added<'b> {
    /// The first of the base's that is not before it.
    key: SortKey,
    /// True if the value of that term is equal.
    equal: bool,
    by: By<'b>,
}

/// Key that sorts a term among others between the same two terms of the base.
enum By<'b> {
    Number(Number),
    Instant(i128),
    Duration(DurationKey),
    Bytes(Cow<'b, [u8]>),
}

impl<'b> Added<'b> {
    /// The place of a term, given its canonical bytes, between those that have these ranks. Terms without ranks compare by what they say.
    pub fn new(ranks: Option<&Dictionary>, bytes: Cow<'b, [u8]>) -> Self {
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

    /// The same without the bytes that it was made of.
    pub fn into_owned(self) -> Added<'static> {
        let Self { key, equal, by } = self;
        let by = match by {
            By::Number(n) => By::Number(n),
            By::Instant(t) => By::Instant(t),
            By::Duration(d) => By::Duration(d),
            By::Bytes(b) => By::Bytes(Cow::Owned(b.into_owned())),
        };
        Added { key, equal, by }
    }

    /// The order of ORDER BY between two of the same ranks.
    pub fn order(&self, other: &Added<'_>) -> Ordering {
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
