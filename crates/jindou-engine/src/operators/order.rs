//! ORDER BY: rows with a key of 64 bits a sort column, made from value ranks; no string is read while sorting.
//!
//! Key of a base term: class (8 bits), rank × 2 + 1 (33 bits), 0 (23 bits). Terms that the base does not
//! have fall between two ranks: rank of the next greater one × 2 (or the same rank, if one is equal), and then
//! their place among each other. Unbound is 0, before everything. Descending keys are complemented.

use super::BATCH;
use crate::batch::{Batch, Charge, View};
use crate::explore::{Flow, Run};
use crate::filter::{added_term, dictionary};
use jindou_dictionary::value::{Group, TemporalKey};
use jindou_dictionary::{Comparison, Dictionary, Number, SortKey};
use jindou_model::term::{self, Parts};
use jindou_model::{FIRST_QUERY_ID, FIRST_TAIL_ID, MemoryBudget, Result, VertexId};
use jindou_plan::Slot;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::hash_map::Entry;

/// A top-k buffer is cut when it holds this many times k rows, at least [`LEAST`].
const SLACK: usize = 4;
const LEAST: usize = 4096;

pub(crate) struct Sorter {
    /// (column, descending); slots that are never bound sort nothing.
    by: Vec<(usize, bool)>,
    width: usize,
    /// Rows that a slice above can show.
    most: Option<u64>,
    /// `width` a row.
    ids: Vec<u32>,
    rows: usize,
    charge: Charge,
    budget: MemoryBudget,
    /// Rows of inputs without columns.
    bare: u64,
    buffer: Vec<u32>,
}

impl Sorter {
    pub fn new(by: &[(Slot, bool)], layout: &[Slot], most: Option<u64>, run: &Run<'_>) -> Self {
        Self {
            by: by
                .iter()
                .filter_map(|(s, d)| Some((layout.iter().position(|l| l == s)?, *d)))
                .collect(),
            width: layout.len(),
            most,
            ids: vec![],
            rows: 0,
            charge: Charge::of("ORDER BY", run.budget),
            budget: run.budget.clone(),
            bare: 0,
            buffer: vec![],
        }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.charge.bytes()
    }

    /// Keeps the rows (row after row).
    pub fn add(&mut self, run: &Run<'_>, rows: View<'_>) -> Result<()> {
        if self.width == 0 {
            self.bare += rows.rows as u64;
            return Ok(());
        }
        self.reserve(rows.rows)?;
        let at = self.ids.len();
        self.ids.resize(at + rows.rows * self.width, 0);
        let out = &mut self.ids[at..];
        for c in 0..self.width {
            for (row, &v) in out.chunks_exact_mut(self.width).zip(rows.column(c)) {
                row[c] = v;
            }
        }
        self.rows += rows.rows;
        if let Some(most) = self.most
            && let Ok(most) = usize::try_from(most)
            && self.rows >= most.saturating_mul(SLACK).max(LEAST)
        {
            self.cut(run, most)?;
        }
        Ok(())
    }

    fn reserve(&mut self, more: usize) -> Result<()> {
        let want = (self.rows + more) * self.width;
        if want > self.ids.capacity() {
            let room = want.max(self.ids.capacity() * 2);
            // Old and new live together while rows move.
            self.charge.set((room + self.ids.capacity()) * 4)?;
            self.ids.reserve_exact(room - self.ids.len());
            self.charge.set(self.ids.capacity() * 4)?;
        }
        Ok(())
    }

    /// Keeps the `most` first rows in sort order.
    fn cut(&mut self, run: &Run<'_>, most: usize) -> Result<()> {
        let mut order = self.order(run)?;
        order.cut(most);
        self.buffer.clear();
        for &(_, row) in &order.rows {
            let at = row as usize * self.width;
            self.buffer
                .extend_from_slice(&self.ids[at..at + self.width]);
        }
        self.ids.clear();
        self.ids.extend_from_slice(&self.buffer);
        self.rows = order.rows.len();
        Ok(())
    }

    /// Adds another worker's rows.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        self.bare += other.bare;
        self.reserve(other.rows)?;
        self.ids.extend_from_slice(&other.ids);
        self.rows += other.rows;
        Ok(())
    }

    /// Rows with their keys, in no order.
    fn order(&self, run: &Run<'_>) -> Result<Order> {
        let mut charge = Charge::of("ORDER BY", &self.budget);
        let more = self.by.len().saturating_sub(1);
        charge.set(self.rows * (16 + more * 8))?;
        let mut keys = Keys::new(run);
        for (column, _) in &self.by {
            let ids = self.ids.iter().skip(*column).step_by(self.width);
            keys.place_added(run, ids.copied().filter(|&v| v >= FIRST_TAIL_ID));
        }
        let key = |row: usize, by: &(usize, bool)| {
            let id = self.ids.get(row * self.width + by.0).copied().unwrap_or(0);
            let k = keys.key(id);
            if by.1 { !k } else { k }
        };
        let mut rows = Vec::with_capacity(self.rows);
        let mut rest = Vec::with_capacity(self.rows * more);
        for row in 0..self.rows {
            if row % 65_536 == 0 {
                run.check()?;
            }
            rows.push((self.by.first().map_or(0, |by| key(row, by)), row as u32));
            rest.extend(
                self.by
                    .get(1..)
                    .unwrap_or(&[])
                    .iter()
                    .map(|by| key(row, by)),
            );
        }
        Ok(Order {
            rows,
            rest,
            more,
            _charge: charge,
        })
    }

    /// Gives all rows in order.
    pub fn give(&mut self, run: &Run<'_>, to: &mut dyn FnMut(View<'_>) -> Flow) -> Flow {
        if self.width == 0 {
            let rows = usize::try_from(self.bare).unwrap_or(usize::MAX);
            return to(View { columns: &[], rows });
        }
        if u32::try_from(self.rows).is_err() {
            return Err(
                jindou_model::Error::Limit("ORDER BY takes at most 4 billion rows".into()).into(),
            );
        }
        if let Some(most) = self.most.and_then(|m| usize::try_from(m).ok())
            && most < self.rows
        {
            self.cut(run, most)?;
        }
        let mut order = self.order(run)?;
        order.sort();
        run.check()?;
        let mut out = Batch::new(self.width, &self.budget);
        out.ensure(BATCH.min(self.rows))?;
        for part in order.rows.chunks(BATCH) {
            run.check()?;
            for (i, &(_, row)) in part.iter().enumerate() {
                let at = row as usize * self.width;
                for (c, column) in out.columns.iter_mut().enumerate() {
                    column[i] = self.ids[at + c];
                }
            }
            out.rows = part.len();
            to(out.view())?;
        }
        Ok(())
    }
}

/// Rows by their keys.
struct Order {
    /// First key, row.
    rows: Vec<(u64, u32)>,
    /// The other keys, `more` a row, in row order.
    rest: Vec<u64>,
    more: usize,
    _charge: Charge,
}

impl Order {
    fn sort(&mut self) {
        let (rest, more) = (&self.rest, self.more);
        if more == 0 {
            self.rows.sort_unstable();
        } else {
            self.rows.sort_unstable_by(|a, b| compare(rest, more, a, b));
        }
    }

    /// Leaves the first `most` rows, in no order.
    fn cut(&mut self, most: usize) {
        let (rest, more) = (&self.rest, self.more);
        if most < self.rows.len() {
            self.rows
                .select_nth_unstable_by(most, |a, b| compare(rest, more, a, b));
            self.rows.truncate(most);
        }
    }
}

#[inline]
fn compare(rest: &[u64], more: usize, a: &(u64, u32), b: &(u64, u32)) -> Ordering {
    let keys = |row: u32| {
        rest.get(row as usize * more..(row as usize + 1) * more)
            .unwrap_or(&[])
    };
    a.0.cmp(&b.0)
        .then_with(|| keys(a.1).cmp(keys(b.1)))
        .then_with(|| a.1.cmp(&b.1))
}

/// Sort keys of ids.
struct Keys<'r> {
    dictionary: &'r Dictionary,
    /// Of terms that the base does not have.
    added: FxHashMap<u32, u64>,
}

impl<'r> Keys<'r> {
    fn new(run: &Run<'r>) -> Self {
        Self {
            dictionary: dictionary(run.snapshot),
            added: FxHashMap::default(),
        }
    }

    #[inline]
    fn key(&self, id: u32) -> u64 {
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
    fn place_added(&mut self, run: &Run<'_>, ids: impl Iterator<Item = u32>) {
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
                place = (place + 1).min((1 << 23) - 1);
            }
            last = Some(term);
            let place = if term.equal { 0 } else { place };
            self.added
                .insert(*id, pack(term.class, term.rank, term.equal, place));
        }
    }
}

fn pack(class: u8, rank: u32, on: bool, place: u64) -> u64 {
    u64::from(class) << 56 | (u64::from(rank) * 2 + u64::from(on)) << 23 | place
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
