//! Sort keys of ids, in the order of ORDER BY. They are made from value ranks, so no string of the base is read.
//!
//! Key of a base term: class (8 bits), rank × 2 + 1 (33 bits), 0 (23 bits). A term that the base does not have (an
//! *added* term) has the rank of the next greater base term × 2 (× 2 + 1 if a base term is equal), followed by its
//! position among the added terms. Triple terms, which are compared part by part, are treated as added terms. Unbound
//! has key 0 and sorts first.

use crate::batch::OperatorCharge;
use crate::eval::EvalContext;
use crate::filter::added_term;
use jindou_dictionary::{Dictionary, SortKey};
use jindou_graph::{TermDecoding, Vocabulary};
use jindou_model::scope::worked;
use jindou_model::term::{self, Parts};
use jindou_model::{FIRST_QUERY_ID, Holder, Result, VertexId};
use jindou_values::{DurationKey, Number, Value, value};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::hash_map::Entry;

/// Number of lowest bits of a key that are 0 for every base term.
pub(crate) const PLACE_BITS: u32 = 23;
/// Approximate bytes of terms that are fetched in one round.
const FETCHED: usize = 1 << 20;
/// Number of terms that are fetched in the first round, and the largest number in later ones.
const FEW: usize = 256;
const MANY: usize = 1 << 14;

/// Tells which ids need their terms to be read for a key: those without ranks, triple terms and literals of derived
/// types.
#[derive(Clone, Copy)]
pub(crate) struct Looked<'r> {
    end: u32,
    /// The base's dictionary, if it has literals of derived types or triple terms, which are ordered by value.
    by_value: Option<&'r Dictionary>,
}

impl<'r> Looked<'r> {
    pub fn new(ctx: &EvalContext<'r>) -> Self {
        Self {
            end: ctx.vocabulary.ranked_end(),
            by_value: ctx
                .vocabulary
                .ranks()
                .filter(|d| d.has_terms_ordered_by_value()),
        }
    }

    #[inline]
    pub fn has(self, id: u32) -> bool {
        let is_by_value = |d: &Dictionary| d.is_ordered_by_value(VertexId(id));
        id >= self.end || self.by_value.is_some_and(is_by_value)
    }
}

/// Sort keys of ids.
pub(crate) struct SortKeys<'r> {
    vocabulary: Vocabulary<'r>,
    /// Keys of the terms given to [`Self::place_added`].
    added: FxHashMap<u32, u64>,
}

impl<'r> SortKeys<'r> {
    pub fn new(ctx: &EvalContext<'r>) -> Self {
        Self {
            vocabulary: ctx.vocabulary,
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
        let key = ranks.sort_key(VertexId(id));
        if key.is_triple() || key.is_derived() {
            return self.added.get(&id).copied().unwrap_or(u64::MAX);
        }
        pack(key.class, key.rank, true, 0)
    }

    /// Computes the keys of [`Looked`] terms, so that they compare with the keys of all other terms. Must be called
    /// only once, with all of them, since a position depends on all added terms.
    ///
    /// # Errors
    /// `Limit` without memory for the terms.
    pub fn place_added(
        &mut self,
        ctx: &EvalContext<'_>,
        ids: impl Iterator<Item = u32>,
    ) -> Result<()> {
        let mut charge = OperatorCharge::for_holder(Holder::OrderBy, ctx.budget);
        let mut held = 0;
        let mut terms: Vec<(u32, Added<'_>)> = Vec::new();
        // If the graph has no ranks, it is sharded, and terms may be on other shards.
        let mut fetched: Vec<u32> = Vec::new();
        let ranks = self.vocabulary.ranks();
        for id in ids {
            if let Entry::Vacant(e) = self.added.entry(id) {
                e.insert(u64::MAX);
                if ranks.is_none() && id < FIRST_QUERY_ID {
                    fetched.push(id);
                } else {
                    let length = ctx.terms.with(VertexId(id), <[u8]>::len).unwrap_or(0);
                    worked(EACH + 8 * length)?;
                    // Memory in the vector, which may double, and in the map.
                    held += length + 2 * size_of::<(u32, Added<'_>)>() + 32;
                    if held as u64 > charge.bytes() {
                        charge.set(held + held / 8 + STEP)?;
                    }
                    terms.push((id, Added::new(ranks, added_term(ctx, id).into())));
                }
            }
        }
        each_term(&mut self.vocabulary.decoding(), &fetched, |at, term| {
            let term = term.unwrap_or(&[]).to_vec();
            terms.push((fetched[at], Added::new(None, term.into())));
        });
        if terms.is_empty() {
            return Ok(());
        }
        let terms = sorted(terms, |a, b| {
            worked(EACH + ORDER_WORK * a.1.bytes().min(b.1.bytes()))?;
            Ok(a.1.order(&b.1))
        })?;
        let mut place = 1u64;
        let mut last: Option<&Added<'_>> = None;
        for (id, term) in &terms {
            // Equal values have the same position, as do all values beyond the 2^23rd.
            if let Some(last) = last {
                worked(EACH + ORDER_WORK * last.bytes().min(term.bytes()))?;
                if last.order(term) != Ordering::Equal {
                    place = (place + 1).min((1 << PLACE_BITS) - 1);
                }
            }
            last = Some(term);
            let place = if term.equal { 0 } else { place };
            self.added
                .insert(*id, pack(term.key.class, term.key.rank, term.equal, place));
        }
        Ok(())
    }
}

/// Calls `take` with the position of each id and its term, `None` if it has none. Terms of other shards are fetched in
/// rounds of about a mebibyte.
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
        // As many as would fit if they were as long as these, but at most four times as many, in case they are longer.
        let fit = FETCHED * now.len() / bytes.max(1);
        many = fit.clamp(1, MANY).min(many * 4);
    }
}

/// Work of comparing two short terms, in the unit of [`worked`].
const EACH: usize = 64;
/// Work per byte of comparing two long terms, since long numbers are brought to one scale.
const ORDER_WORK: usize = 8;
/// Granularity of memory charges in bytes.
const STEP: usize = 1 << 16;

/// Sorts by an order that may fail (the deadline is checked while long terms are compared): a stable bottom-up merge
/// sort.
pub(crate) fn sorted<T>(
    items: Vec<T>,
    mut order: impl FnMut(&T, &T) -> Result<Ordering>,
) -> Result<Vec<T>> {
    let mut from: Vec<u32> = (0..items.len() as u32).collect();
    let mut to = from.clone();
    let mut width = 1;
    while width < items.len() {
        for start in (0..items.len()).step_by(2 * width) {
            let middle = items.len().min(start + width);
            let end = items.len().min(start + 2 * width);
            let (mut a, mut b) = (start, middle);
            if b < end && order(&items[from[b - 1] as usize], &items[from[b] as usize])?.is_le() {
                to[start..end].copy_from_slice(&from[start..end]);
                continue;
            }
            for place in &mut to[start..end] {
                let takes_first = b >= end
                    || (a < middle
                        && order(&items[from[a] as usize], &items[from[b] as usize])?.is_le());
                let next = if takes_first { &mut a } else { &mut b };
                *place = from[*next];
                *next += 1;
            }
        }
        std::mem::swap(&mut from, &mut to);
        width *= 2;
    }
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    Ok(from
        .iter()
        .filter_map(|&at| items[at as usize].take())
        .collect())
}

fn pack(class: u8, rank: u32, on: bool, place: u64) -> u64 {
    u64::from(class) << 56 | (u64::from(rank) * 2 + u64::from(on)) << PLACE_BITS | place
}

/// The order of ORDER BY between two ids, for MIN and MAX.
#[derive(Default)]
pub(crate) struct IdOrder {
    /// Cached keys of terms, if one of the compared terms was not in the base.
    known: FxHashMap<u32, Added<'static>>,
    /// Bytes of the keys.
    bytes: usize,
}

/// Number of cached keys, and of their bytes, from which on the cache is cleared.
const PLACES: usize = 1 << 14;
const PLACES_BYTES: usize = 1 << 18;

impl IdOrder {
    /// Order of two bound ids. For two terms of the base, this reads only two ranks.
    ///
    /// # Errors
    /// Those of [`worked`].
    pub fn compare(&mut self, ctx: &EvalContext<'_>, a: u32, b: u32) -> Result<Ordering> {
        if let Some(d) = ctx.vocabulary.ranks_of(a.max(b)) {
            let (a, b) = (d.sort_key(VertexId(a)), d.sort_key(VertexId(b)));
            if !(a.is_triple() && b.is_triple() || a.is_derived() || b.is_derived()) {
                return Ok(a.packed().cmp(&b.packed()));
            }
        }
        if self.known.len() >= PLACES || self.bytes >= PLACES_BYTES {
            // Keep the best term so far, which will probably be compared again.
            self.known.retain(|&id, _| id == b);
            self.bytes = self.known.values().map(Added::bytes).sum();
        }
        for id in [a, b] {
            if let Entry::Vacant(entry) = self.known.entry(id) {
                let term = added_term(ctx, id);
                worked(8 * term.len())?;
                let added = entry.insert(Added::new(ctx.vocabulary.ranks(), term.into()));
                self.bytes += added.bytes();
            }
        }
        let (Some(a), Some(b)) = (self.known.get(&a), self.known.get(&b)) else {
            return Ok(Ordering::Equal);
        };
        worked(a.bytes().min(b.bytes()))?;
        Ok(a.order(b))
    }
}

/// A term that the base does not have, as a sort key: its position between the base's terms, and its content.
pub(crate) struct Added<'b> {
    /// Class and rank of the first base term that is not before it.
    key: SortKey,
    /// True if that base term has an equal value.
    equal: bool,
    by: By<'b>,
}

/// The content by which terms at the same position between the base's terms are compared.
enum By<'b> {
    Number(Number),
    Instant(i128),
    Duration(DurationKey),
    Bytes(Cow<'b, [u8]>),
    /// The parts of a triple term in order. A part that is a triple term itself is replaced by a marker and its own
    /// parts.
    Triple(Vec<Added<'static>>),
}

/// The parts of a triple term, as in [`By::Triple`].
fn leaves(bytes: &[u8]) -> Vec<Added<'static>> {
    let mut out = vec![];
    let mut left = vec![bytes];
    while let Some(bytes) = left.pop() {
        let inner = match term::parts(bytes) {
            Some(Parts::Triple(parts)) => parts,
            _ => {
                out.push(Added::new(None, bytes.into()).into_owned());
                continue;
            }
        };
        left.extend(inner.into_iter().rev());
        // A marker for a triple term, which is followed by its parts.
        let (key, equal) = SortKey::alone(&[term::TRIPLE]);
        let by = By::Bytes(Cow::Borrowed(&[]));
        out.push(Added { key, equal, by });
    }
    out
}

impl<'b> Added<'b> {
    /// The position of a term between the terms with these ranks; `bytes` are its canonical bytes. Without ranks, terms
    /// are compared by their content only.
    pub fn new(ranks: Option<&Dictionary>, bytes: Cow<'b, [u8]>) -> Self {
        let is_triple = bytes.first() == Some(&term::TRIPLE) && bytes.len() > 1;
        let (key, equal) = match ranks {
            Some(d) if !is_triple => d.place(&bytes),
            _ => SortKey::alone(&bytes),
        };
        let by = match value(&bytes) {
            Some(Value::Number(n)) => By::Number(n),
            Some(Value::Temporal(t)) => By::Instant(t.instant()),
            Some(Value::Duration(d)) => By::Duration(d.key()),
            Some(Value::String(s)) if bytes.first() == Some(&term::TYPED) => {
                By::Bytes([&[term::STRING], s.as_bytes()].concat().into())
            }
            _ if is_triple => By::Triple(leaves(&bytes)),
            _ => By::Bytes(bytes),
        };
        Self { key, equal, by }
    }

    /// Approximate bytes of heap memory.
    fn bytes(&self) -> usize {
        match &self.by {
            By::Bytes(Cow::Owned(b)) => b.capacity(),
            By::Triple(parts) => {
                let each = parts.iter().map(|p| match &p.by {
                    By::Bytes(b) => b.len(),
                    _ => 0,
                });
                parts.capacity() * size_of::<Added<'_>>() + each.sum::<usize>()
            }
            By::Number(n) => n.bytes(),
            _ => 0,
        }
    }

    /// The same key with its own copy of the bytes.
    pub fn into_owned(self) -> Added<'static> {
        let Self { key, equal, by } = self;
        let by = match by {
            By::Number(n) => By::Number(n),
            By::Instant(t) => By::Instant(t),
            By::Duration(d) => By::Duration(d),
            By::Bytes(b) => By::Bytes(Cow::Owned(b.into_owned())),
            By::Triple(parts) => By::Triple(parts),
        };
        Added { key, equal, by }
    }

    /// The order of ORDER BY between two terms whose positions were determined with the same ranks.
    pub fn order(&self, other: &Added<'_>) -> Ordering {
        (self.key, self.equal)
            .cmp(&(other.key, other.equal))
            .then_with(|| {
                // Two values that equal the same base term are equal.
                if self.equal {
                    return Ordering::Equal;
                }
                match (&self.by, &other.by) {
                    (By::Number(a), By::Number(b)) => a.total_order(b),
                    (By::Instant(a), By::Instant(b)) => a.cmp(b),
                    (By::Duration(a), By::Duration(b)) => a.cmp(b),
                    (By::Bytes(a), By::Bytes(b)) => a.cmp(b),
                    // The parts are not `By::Triple` themselves, so this does not recurse further.
                    (By::Triple(a), By::Triple(b)) => {
                        let mut each = a.iter().zip(b).map(|(a, b)| a.order(b));
                        each.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
                    }
                    _ => Ordering::Equal,
                }
            })
    }
}
