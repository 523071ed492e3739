//! Values by id: kinds, ranks, bounds of comparisons, keys for ORDER BY.

use super::Dictionary;
use crate::build::number_of;
use crate::value::{
    Comparison, DOUBLE_TAG, FLOAT_TAG, NAN_RANK, NO_LEX, NO_RANK, NumericBounds, TEMPORAL_GROUPS,
    ValueGroup, partition,
};
use jindou_model::VertexId;
use jindou_model::memory::prefetch_at;
use jindou_model::term::{self, BLANK, IRI, LANG, NUMERIC_TAGS, STRING, TRIPLE, TYPED};
use jindou_values::{
    Duration, Number, NumericKind, Temporal, TemporalKind, Value, derived_intervals,
};
use std::cmp::Ordering;
use std::ops::Range;

/// Sort key of ORDER BY: first the class, then the rank within it. Blank nodes < IRIs < literals < triple terms, as
/// SPARQL requires; among literals numbers come first (NaN last of them), then strings, language-tagged strings (by
/// tag, then text), booleans, each date and time datatype, durations, and all others by datatype and lexical form.
/// Equal values have equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortKey {
    /// The class; 0 for an unbound variable, which sorts first.
    pub class: u8,
    /// The rank within the class.
    pub rank: u32,
}

impl SortKey {
    /// As [`Dictionary::place`] in a dictionary without terms: the class decides, except for the few values that have
    /// the same rank in every dictionary.
    #[must_use]
    pub fn alone(bytes: &[u8]) -> (Self, bool) {
        let key = |class, rank, known| (Self { class, rank }, known);
        match jindou_values::value(bytes) {
            Some(Value::Number(n)) if n.to_f64().is_nan() => key(class::NUMBER, NAN_RANK, true),
            Some(Value::Number(_)) => key(class::NUMBER, 0, false),
            Some(Value::Boolean(b)) => key(class::BOOLEAN, b.into(), true),
            Some(Value::Temporal(t)) => key(class::TEMPORAL + t.kind() as u8, 0, false),
            Some(Value::Duration(_)) => key(class::DURATION, 0, false),
            Some(Value::String(_)) => key(class::STRING, 0, false),
            _ => key(class_of(bytes.first()), 0, false),
        }
    }

    /// True for triple terms, whose rank follows their bytes: ORDER BY compares their components instead.
    #[must_use]
    pub fn is_triple(self) -> bool {
        self.class == class::TRIPLE
    }

    /// True for durations.
    #[must_use]
    pub fn is_duration(self) -> bool {
        self.class == class::DURATION
    }

    /// True for a literal that may be of a [`jindou_values::DerivedType`]: it has no rank, and ORDER BY sorts it by its
    /// value.
    #[must_use]
    pub fn is_derived(self) -> bool {
        self.class == class::DERIVED
    }

    /// The key as a single number with the same order.
    #[must_use]
    pub fn packed(self) -> u64 {
        u64::from(self.class) << 32 | u64::from(self.rank)
    }
}

/// The kind of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// Blank node.
    Blank,
    /// IRI.
    Iri,
    /// Literal of any datatype.
    Literal,
    /// RDF 1.2 triple term.
    Triple,
}

/// Classes of [`SortKey`].
mod class {
    pub(super) const BLANK: u8 = 1;
    pub(super) const IRI: u8 = 2;
    pub(super) const NUMBER: u8 = 3;
    pub(super) const STRING: u8 = 4;
    pub(super) const LANG: u8 = 5;
    pub(super) const BOOLEAN: u8 = 6;
    /// The first of the eight classes of date and time datatypes.
    pub(super) const TEMPORAL: u8 = 7;
    pub(super) const DURATION: u8 = TEMPORAL + super::TEMPORAL_GROUPS;
    pub(super) const OTHER: u8 = DURATION + 1;
    pub(super) const TRIPLE: u8 = OTHER + 1;
    /// Marks literals that are sorted by value; not a class of the order.
    pub(super) const DERIVED: u8 = TRIPLE + 1;
}

/// The class of a term that is not ordered by a literal's value, by its tag.
fn class_of(tag: Option<&u8>) -> u8 {
    match tag {
        Some(&BLANK) => class::BLANK,
        Some(&IRI) => class::IRI,
        Some(&STRING) => class::STRING,
        Some(&LANG) => class::LANG,
        Some(&TRIPLE) => class::TRIPLE,
        _ => class::OTHER,
    }
}

impl Dictionary {
    /// The tag of a term (`jindou_model::term`). One cache miss.
    #[must_use]
    pub fn tag(&self, id: VertexId) -> Option<u8> {
        self.tag_ranges().tag_of(self.lex(id)?)
    }

    /// The kind of a term.
    #[must_use]
    pub fn kind(&self, id: VertexId) -> Option<TermKind> {
        Some(match self.tag(id)? {
            BLANK => TermKind::Blank,
            IRI => TermKind::Iri,
            TRIPLE => TermKind::Triple,
            _ => TermKind::Literal,
        })
    }

    /// The rank of a lex index within its [`ValueGroup`]; [`NO_RANK`] for terms without a value.
    #[inline]
    #[must_use]
    pub fn value_rank(&self, lex: u32) -> u32 {
        if !self.coded.contains(&lex) {
            return NO_RANK;
        }
        let ranks: &[u32] = self.file.array(&self.ranks);
        ranks
            .get((lex - self.coded.start) as usize)
            .copied()
            .unwrap_or(NO_RANK)
    }

    /// The ranks of all literals that have one, and the lex index of the first.
    pub(crate) fn rank_column(&self) -> (&[u32], u32) {
        (self.file.array(&self.ranks), self.coded.start)
    }

    /// The group to which a term's rank belongs; `None` for terms without ranks.
    #[must_use]
    pub fn value_group(&self, id: VertexId) -> Option<ValueGroup> {
        ValueGroup::of_tag(self.tag(id)?)
    }

    /// The key for ORDER BY. Two cache misses at most; no string is read.
    #[must_use]
    pub fn sort_key(&self, id: VertexId) -> SortKey {
        let key = |class, rank| SortKey { class, rank };
        let Some(lex) = self.lex(id) else {
            return key(0, 0);
        };
        let Some(tag) = self.tag_ranges().tag_of(lex) else {
            return key(0, 0);
        };
        if let Some(group) = ValueGroup::of_tag(tag) {
            let rank = self.value_rank(lex);
            if rank == NO_RANK {
                return key(class::OTHER, lex);
            }
            return match group {
                ValueGroup::Numeric => key(class::NUMBER, rank),
                ValueGroup::Boolean => key(class::BOOLEAN, rank),
                ValueGroup::Temporal(place) => key(class::TEMPORAL + place, rank),
                ValueGroup::Duration => key(class::DURATION, rank),
            };
        }
        let class = match class_of(Some(&tag)) {
            class::OTHER if self.is_derived(lex) => class::DERIVED,
            class => class,
        };
        key(class, lex)
    }

    /// True if ORDER BY cannot sort a term by its rank: triple terms, and literals that may be of a
    /// [`jindou_values::DerivedType`].
    #[must_use]
    pub fn is_ordered_by_value(&self, id: VertexId) -> bool {
        self.lex(id)
            .is_some_and(|lex| self.tag_range(TRIPLE).contains(&lex) || self.is_derived(lex))
    }

    /// True if the dictionary has terms that ORDER BY cannot sort by rank.
    #[must_use]
    pub fn has_terms_ordered_by_value(&self) -> bool {
        !self.tag_range(TRIPLE).is_empty() || self.derived().iter().any(|r| !r.is_empty())
    }

    fn is_derived(&self, lex: u32) -> bool {
        self.derived().iter().any(|r| r.contains(&lex))
    }

    /// The lex indexes of literals that may be of derived types, one interval per type. Computed at the first call:
    /// O(log n).
    fn derived(&self) -> &[Range<u32>; 3] {
        self.derived.get_or_init(|| {
            let all = self.tag_range(TYPED);
            if all.is_empty() {
                return [const { 0..0 }; 3];
            }
            derived_intervals().map(|[from, to]| {
                let at = |bytes: &[u8]| {
                    let lex = self.strings().lower_bound(bytes);
                    lex.clamp(all.start, all.end)
                };
                at(&from)..at(&to)
            })
        })
    }

    /// The rank of a number; `None` for other terms and for ill-typed literals; [`NAN_RANK`] for NaN. Ranks order
    /// numbers by exact value. SPARQL rounds numbers of different [`NumericKind`] before it compares them: for these,
    /// compare [`Dictionary::numeric_value`] (or use [`Dictionary::numeric_bounds`] for a constant).
    #[inline]
    #[must_use]
    pub fn numeric_rank(&self, id: VertexId) -> Option<u32> {
        let rank = self.value_rank(self.numeric_lex(id)?);
        (rank != NO_RANK).then_some(rank)
    }

    /// Appends the numeric rank of every id; [`NO_RANK`] if the term is not a number, [`NAN_RANK`] for NaN.
    pub fn numeric_rank_many(&self, ids: &[u32], out: &mut Vec<u32>) {
        self.rank_many(ids, self.tag_span(NUMERIC_TAGS), out);
    }

    /// Appends the rank of every id whose lex index is in `range`, which holds the terms of one group; [`NO_RANK`] for
    /// others.
    pub fn rank_many(&self, ids: &[u32], range: Range<u32>, out: &mut Vec<u32>) {
        let from = out.len();
        self.lex_many(ids, out);
        let ranks: &[u32] = self.file.array(&self.ranks);
        let base = self.coded.start;
        let place = |lex: u32| {
            if lex != NO_LEX && range.contains(&lex) {
                lex.wrapping_sub(base) as usize
            } else {
                usize::MAX
            }
        };
        for i in from..out.len() {
            if let Some(&ahead) = out.get(i + 16) {
                prefetch_at(ranks, place(ahead));
            }
            out[i] = ranks.get(place(out[i])).copied().unwrap_or(NO_RANK);
        }
    }

    /// The kind of a numeric term, which determines its comparisons; `None` for other terms.
    #[must_use]
    pub fn numeric_kind(&self, id: VertexId) -> Option<NumericKind> {
        NumericKind::of_tag(self.tag(id)?)
    }

    /// The value of a numeric literal, read from its lexical form; `None` for other terms and ill-typed literals.
    #[must_use]
    pub fn numeric_value(&self, id: VertexId) -> Option<Number> {
        self.number_at(self.numeric_lex(id)?)
    }

    #[inline]
    fn numeric_lex(&self, id: VertexId) -> Option<u32> {
        let lex = self.lex(id)?;
        self.tag_span(NUMERIC_TAGS).contains(&lex).then_some(lex)
    }

    fn number_at(&self, lex: u32) -> Option<Number> {
        let mut term = Vec::with_capacity(32);
        if !self.strings().term(lex, &mut term) {
            return None;
        }
        number_of(&term)
    }

    /// The double nearest to the number with this rank; `None` if no number has it.
    #[inline]
    #[must_use]
    pub fn numeric_f64(&self, rank: u32) -> Option<f64> {
        self.numbers().get(rank as usize).copied()
    }

    fn numbers(&self) -> &[f64] {
        self.file.array(&self.numbers)
    }

    /// Parses the lexical form of one of the numbers that have this rank.
    fn exact_number(&self, rank: u32) -> Option<Number> {
        let lexes: &[u32] = self.file.array(&self.number_lex);
        self.number_at(*lexes.get(rank as usize)?)
    }

    /// The ranks of the numbers `n` for which `n ∘ bound` is true. Empty if the bound is NaN. O(log n): some tens of
    /// nanoseconds, and some reads of strings if there are numbers with the same nearest double as the bound.
    #[must_use]
    pub fn numeric_bounds(&self, comparison: Comparison, bound: &Number) -> NumericBounds {
        let numbers = self.numbers();
        let n = numbers.len() as u32;
        let rounded = bound.to_f64();
        if rounded.is_nan() {
            return NumericBounds::default();
        }
        let at = |rank: u32| numbers.get(rank as usize).copied().unwrap_or(f64::INFINITY);
        let order = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or(Ordering::Less);
        let by_double = |b: f64| comparison.interval(n, |rank| order(at(rank), b));
        let exact = match bound.kind() {
            NumericKind::Exact => self.exact_interval(comparison, bound, rounded),
            NumericKind::Double => by_double(rounded),
            NumericKind::Float => {
                comparison.interval(n, |rank| order(f64::from(self.as_float(rank)), rounded))
            }
        };
        let double = by_double(rounded);
        // SPARQL compares a float with a double as doubles, and with any other number as floats.
        let float = match bound.kind() {
            NumericKind::Exact => by_double(f64::from(bound.to_f32())),
            _ => double.clone(),
        };
        let mut bounds = NumericBounds {
            exact,
            float,
            double,
        };
        // The range of a kind without literals is copied from a kind that has some.
        let doubles = !self.tag_range(DOUBLE_TAG).is_empty();
        let floats = !self.tag_range(FLOAT_TAG).is_empty();
        let all = self.tag_span(NUMERIC_TAGS).len();
        let exacts = all > self.tag_range(DOUBLE_TAG).len() + self.tag_range(FLOAT_TAG).len();
        if !exacts {
            bounds.exact = if doubles {
                bounds.double.clone()
            } else {
                bounds.float.clone()
            };
        }
        if !doubles {
            bounds.double = if exacts {
                bounds.exact.clone()
            } else {
                bounds.float.clone()
            };
        }
        if !floats {
            bounds.float = bounds.double.clone();
        }
        bounds
    }

    /// The float nearest to the exact number with this rank.
    fn as_float(&self, rank: u32) -> f32 {
        let near = self.numeric_f64(rank).unwrap_or(f64::INFINITY);
        let float = near as f32;
        // Rounding to double and then to float may round to the wrong neighbour, close to the middle between two
        // floats.
        if near.next_up() as f32 == float && near.next_down() as f32 == float {
            return float;
        }
        self.exact_number(rank).map_or(float, |n| n.to_f32())
    }

    /// The ranks for which the comparison holds by exact values. `rounded` is the double nearest to the bound.
    fn exact_interval(&self, comparison: Comparison, bound: &Number, rounded: f64) -> Range<u32> {
        let numbers = self.numbers();
        let n = numbers.len() as u32;
        let at = |rank: u32| numbers.get(rank as usize).copied().unwrap_or(f64::INFINITY);
        // Digits are compared only for ranks with the same nearest double as the bound.
        let first = partition(0, n, |r| at(r) < rounded);
        let last = partition(first, n, |r| at(r) <= rounded);
        comparison.interval(n, |rank| {
            if rank < first {
                return Ordering::Less;
            }
            if rank >= last {
                return Ordering::Greater;
            }
            let here = self.exact_number(rank);
            here.map_or(Ordering::Greater, |here| here.total_order(bound))
        })
    }

    /// The ranks of the values `v` of `bound`'s datatype for which `v ∘ bound` is true. O(log n).
    #[must_use]
    pub fn temporal_bounds(&self, comparison: Comparison, bound: Temporal) -> Range<u32> {
        let instants = self.instants(bound.kind());
        let bound = bound.instant();
        comparison.interval(instants.len() as u32, |i| {
            instants
                .get(i as usize)
                .map_or(Ordering::Greater, |v| v.cmp(&bound))
        })
    }

    fn instants(&self, kind: TemporalKind) -> &[i128] {
        match self.instants.get(kind as usize) {
            Some(range) => self.file.array(range),
            None => &[],
        }
    }

    /// The instant for a date's or time's rank (`Temporal::instant`); `None` if no such literal has it.
    #[inline]
    #[must_use]
    pub fn instant(&self, kind: TemporalKind, rank: u32) -> Option<i128> {
        self.instants(kind).get(rank as usize).copied()
    }

    /// Position of a term among the terms of the dictionary: the key of the first term that does not precede it, and
    /// true if that term has an equal value. For terms of the dictionary, their own key. Takes canonical bytes; O(log
    /// n) reads.
    #[must_use]
    pub fn place(&self, bytes: &[u8]) -> (SortKey, bool) {
        let key = |class, rank| SortKey { class, rank };
        let among = |class, range: Range<u32>| (key(class, range.start), !range.is_empty());
        match jindou_values::value(bytes) {
            Some(Value::Number(n)) if n.to_f64().is_nan() => (key(class::NUMBER, NAN_RANK), true),
            Some(Value::Number(n)) => {
                let equal = self.exact_interval(Comparison::Equal, &n, n.to_f64());
                among(class::NUMBER, equal)
            }
            Some(Value::Boolean(b)) => (key(class::BOOLEAN, b.into()), true),
            Some(Value::Temporal(t)) => among(
                class::TEMPORAL + t.kind() as u8,
                self.temporal_bounds(Comparison::Equal, t),
            ),
            Some(Value::Duration(d)) => {
                let lexes: &[u32] = self.file.array(&self.duration_lex);
                let bound = d.key();
                let equal = Comparison::Equal.interval(lexes.len() as u32, |rank| {
                    let here = lexes
                        .get(rank as usize)
                        .and_then(|&lex| self.duration_at(lex));
                    here.map_or(Ordering::Greater, |d| d.key().cmp(&bound))
                });
                among(class::DURATION, equal)
            }
            Some(Value::String(s)) => {
                among(class::STRING, self.string_bounds(Comparison::Equal, s))
            }
            _ => {
                let class = class_of(bytes.first());
                let lex = self.strings().lower_bound(bytes);
                (key(class, lex), self.strings().is(lex, bytes))
            }
        }
    }

    fn duration_at(&self, lex: u32) -> Option<Duration> {
        let mut bytes = Vec::with_capacity(32);
        if !self.strings().term(lex, &mut bytes) {
            return None;
        }
        match term::parts(&bytes)? {
            term::Parts::Coded(lexical, tag) => Duration::parse(tag, lexical),
            _ => None,
        }
    }

    /// The lex indexes of the simple strings `s` for which `s ∘ bound` is true, by code point. Reads O(log n) first
    /// terms of blocks.
    #[must_use]
    pub fn string_bounds(&self, comparison: Comparison, lexical: &str) -> Range<u32> {
        let all = self.tag_range(STRING);
        let mut bytes = Vec::with_capacity(lexical.len() + 1);
        bytes.push(STRING);
        bytes.extend_from_slice(lexical.as_bytes());
        let at = self.strings().lower_bound(&bytes).clamp(all.start, all.end);
        let behind = at + u32::from(at < all.end && self.strings().is(at, &bytes));
        match comparison {
            Comparison::Less => all.start..at,
            Comparison::LessOrEqual => all.start..behind,
            Comparison::Equal => at..behind,
            Comparison::GreaterOrEqual => at..all.end,
            Comparison::Greater => behind..all.end,
        }
    }

    /// True if a rank stands for NaN.
    #[must_use]
    pub fn is_nan(rank: u32) -> bool {
        rank == NAN_RANK
    }
}
