//! The held side of a hash join: its rows in memory, with indexes.
//!
//! Keys that may be unbound (*optional* keys) divide the held rows into *classes*, one for each set of bound keys. A
//! row of the streaming side is looked up in each class by the keys that are bound in **both** rows. For each such set
//! of keys the class has an index, built when it is first needed, so any mix of bound and unbound keys is matched
//! exactly. If all keys are always bound, there is one class with one index, whose rows are stored in the order of
//! their keys.

use super::partners::MatchTerms;
use crate::batch::{OperatorCharge, View};
use crate::explore::{Flow, QueryContext};
use crate::key_table::{KeyTable, NONE};
use crate::row_buffer::RowBuffer;
use crate::tree::SlotLayout;
use jindou_model::memory::huge_zeroed;
use jindou_model::sync;
use jindou_model::{Error, Holder, MemoryBudget, Resource, Result};
use jindou_plan::{Condition, JoinKind, Match, MatchBy, Relation, Slot, operator};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};

/// Largest number of optional keys, since each needs a bit.
const MOST_UNSURE: usize = 64;

/// The columns of a key: a slot of both sides, or two slots that must match.
#[derive(Clone, Copy)]
pub(crate) struct JoinColumns {
    pub left: usize,
    /// Column in the held rows.
    pub right: usize,
}

/// The keys of an index: its alternative, if any, and the bits of its optional keys.
pub(crate) type IndexKeys = (Option<usize>, u64);

/// A key of which at least one among several must match.
#[derive(Clone, Copy)]
pub(crate) struct KeyAlternative {
    pub key: JoinColumns,
    /// True if the key matches by value: it is looked up by all held terms that are equal to the row's term.
    pub by_value: bool,
}

/// Layout of a join: columns of the streamed rows, of the held rows, and of the output.
pub(crate) struct JoinShape<'a> {
    pub kind: JoinKind,
    /// Slots of the output: those of the left side, then those that only the right side has.
    pub output: Vec<Slot>,
    pub left_width: usize,
    /// Keys that are bound in every row of both sides (*sure* keys), then comparisons whose held column is bound in
    /// every row. If the other side of a comparison is unbound in a row, the row has no partner.
    pub sure: Vec<JoinColumns>,
    /// How the last keys of `sure` are compared: those that match by value rather than by id.
    pub by_value: Vec<MatchBy>,
    /// Pairs of order comparisons with the same held column, which together select a range: the position of the first
    /// one in `by_value`, the relation of the second one, and its left column.
    pub bounds: Vec<(usize, Relation, usize)>,
    /// Alternative keys, of which at least one must match unless there are none. They may be unbound on either side.
    pub either: Vec<KeyAlternative>,
    /// Columns that must be bound in held rows; other rows are dropped.
    needed: Vec<usize>,
    /// True if one side lacks a column that must match, so that there are no pairs.
    pub never: bool,
    /// Optional keys: those that may be unbound in some row of either side.
    pub unsure: Vec<JoinColumns>,
    /// Columns of the held rows that are appended to those of the left side.
    pub added: Vec<usize>,
    pub condition: Option<&'a Condition>,
    /// Slots of the left side, then those that only the right side has; for the condition.
    pub both: Vec<Slot>,
}

impl<'a> JoinShape<'a> {
    /// # Errors
    /// `Limit` for more than 64 keys that may be unbound.
    pub fn new(op: &'a operator::Join, left: &[Slot], right: &[Slot]) -> Result<Self> {
        let operator::Join {
            kind,
            on,
            condition,
            matches,
            either,
            ..
        } = op;
        let (kind, condition) = (*kind, condition.as_ref());
        let (mut sure, mut unsure, mut added) = (vec![], vec![], vec![]);
        let mut both = left.to_vec();
        let left_layout = SlotLayout::new(left);
        let keys: Vec<Slot> = on.iter().map(|k| k.slot).collect();
        let keys = SlotLayout::new(&keys);
        for (r, slot) in right.iter().enumerate() {
            let Some(l) = left_layout.position_of(*slot) else {
                added.push(r);
                both.push(*slot);
                continue;
            };
            let key = JoinColumns { left: l, right: r };
            match keys.position_of(*slot).and_then(|k| on.get(k)) {
                Some(k) if k.left_bound && k.right_bound => sure.push(key),
                _ => unsure.push(key),
            }
        }
        if unsure.len() > MOST_UNSURE {
            return Err(Error::limit(
                Resource::Form,
                format!(
                    "hash join: more than {MOST_UNSURE} shared variables may be unbound; bind some of them"
                ),
            ));
        }
        let mut never = false;
        let (mut valued, mut by_value, mut needed) = (Vec::<JoinColumns>::new(), vec![], vec![]);
        let mut bounds = vec![];
        let key_of = |m: &Match| {
            let of = |slots: &[Slot], slot| slots.iter().position(|s| *s == slot);
            Some(JoinColumns {
                left: of(left, m.left)?,
                right: of(right, m.right)?,
            })
        };
        for m in matches {
            let Some(key) = key_of(m) else {
                never = true;
                continue;
            };
            let (l, r) = (key.left, key.right);
            needed.push(r);
            let is_order = |by: &MatchBy| matches!(by, MatchBy::Order(_));
            let sorted =
                (valued.iter().zip(&by_value)).position(|(k, by)| k.right == r && is_order(by));
            if m.by == MatchBy::Term {
                sure.push(key);
            } else if let (MatchBy::Order(relation), Some(at)) = (m.by, sorted) {
                bounds.push((at, relation, l));
            } else {
                valued.push(key);
                by_value.push(m.by);
            }
        }
        sure.append(&mut valued);
        let alternatives: Vec<KeyAlternative> = either
            .iter()
            .filter_map(|m| {
                Some(KeyAlternative {
                    key: key_of(m)?,
                    by_value: m.by == MatchBy::Value,
                })
            })
            .collect();
        never |= alternatives.is_empty() && !either.is_empty();
        let output = match kind {
            JoinKind::Inner | JoinKind::Left => both.clone(),
            JoinKind::Semi | JoinKind::Anti | JoinKind::Minus => left.to_vec(),
            JoinKind::Mark(to) => left.iter().copied().chain([to]).collect(),
        };
        Ok(Self {
            kind,
            output,
            left_width: left.len(),
            sure,
            by_value,
            bounds,
            either: alternatives,
            needed,
            never,
            unsure,
            added,
            condition,
            both,
        })
    }

    /// Position in `sure` of the first key that matches by value.
    pub fn first_value(&self) -> usize {
        self.sure.len().saturating_sub(self.by_value.len())
    }
}

/// An index of a class by some of its columns.
pub(crate) struct JoinIndex {
    /// The number of each key.
    pub keys: KeyTable,
    /// The rows of key `n` have the positions `starts[n]..starts[n + 1]`. Empty if every key has one row, at position
    /// `n`.
    starts: Vec<u32>,
    /// The row at each position; empty if the rows are stored in this order.
    order: Vec<u32>,
    charge: OperatorCharge,
}

impl JoinIndex {
    /// The range of positions of a key's rows.
    #[inline]
    pub fn places(&self, number: u32) -> (u32, u32) {
        match self.starts.get(number as usize..) {
            Some([from, to, ..]) => (*from, *to),
            _ => (number, number + 1),
        }
    }

    /// The array that [`Self::places`] reads, to prefetch it.
    #[inline]
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    #[inline]
    pub fn row(&self, place: u32) -> u32 {
        if self.order.is_empty() {
            place
        } else {
            self.order[place as usize]
        }
    }

    pub fn in_order(&self) -> bool {
        self.order.is_empty()
    }
}

/// The held rows in which the same optional keys are bound.
pub(crate) struct BoundClass {
    /// Bits of the bound optional keys.
    pub mask: u64,
    pub columns: Vec<Vec<u32>>,
    pub rows: usize,
    /// Index by all keys that are bound in the class.
    main: Arc<JoinIndex>,
    /// Indexes by an alternative, or by fewer of the optional keys.
    others: Mutex<FxHashMap<IndexKeys, Arc<JoinIndex>>>,
    charge: OperatorCharge,
}

pub(crate) struct JoinTable<'a> {
    pub shape: JoinShape<'a>,
    pub classes: Vec<BoundClass>,
    /// Held terms of each key that matches by value.
    pub terms: Vec<MatchTerms>,
    /// Held terms of each alternative that matches by value; `None` for one that matches by id.
    pub either: Vec<Option<MatchTerms>>,
    /// Ids of `false` and `true`, for `JoinKind::Mark`.
    pub booleans: [u32; 2],
    budget: MemoryBudget,
}

impl<'a> JoinTable<'a> {
    /// Builds the table from the rows of the right side.
    pub fn build(
        shape: JoinShape<'a>,
        held: RowBuffer,
        booleans: [u32; 2],
        ctx: &QueryContext<'_>,
    ) -> Result<Self> {
        let budget = ctx.budget.clone();
        let held = bound(held, &shape.needed, ctx)?;
        let mut terms = Vec::new();
        for (key, by) in shape
            .sure
            .iter()
            .skip(shape.first_value())
            .zip(&shape.by_value)
        {
            terms.push(MatchTerms::new(&held, key.right, *by, ctx)?);
        }
        let mut either = Vec::new();
        for a in &shape.either {
            either.push(match a.by_value {
                true => Some(MatchTerms::new(&held, a.key.right, MatchBy::Value, ctx)?),
                false => None,
            });
        }
        let mut classes = Vec::new();
        if shape.unsure.is_empty() {
            classes.push(BoundClass::new(&shape, 0, held, ctx)?);
        } else {
            for (mask, part) in split(&shape, held, ctx)? {
                classes.push(BoundClass::new(&shape, mask, part, ctx)?);
            }
        }
        Ok(Self {
            shape,
            classes,
            terms,
            either,
            booleans,
            budget,
        })
    }

    /// Bytes held, except those of indexes that are built later.
    pub fn bytes(&self) -> u64 {
        let tables = self
            .classes
            .iter()
            .map(|c| c.charge.bytes() + c.main.keys.bytes() + c.main.charge.bytes());
        let terms = self.terms.iter().chain(self.either.iter().flatten());
        tables.sum::<u64>() + terms.map(MatchTerms::held).sum::<u64>()
    }

    /// The keys of an index, in the order of its columns: the sure keys, the alternative, the optional keys of `mask`.
    pub fn keys(&self, alternative: Option<usize>, mask: u64) -> impl Iterator<Item = JoinColumns> {
        keys(&self.shape, alternative, mask)
    }

    /// The index of a class by the sure keys, an alternative and the optional keys of `mask`, which must be bound in
    /// the class. Built when it is first requested.
    pub fn index(
        &self,
        ctx: &QueryContext<'_>,
        class: &BoundClass,
        alternative: Option<usize>,
        mask: u64,
    ) -> Result<Arc<JoinIndex>> {
        if alternative.is_none() && mask == class.mask {
            return Ok(Arc::clone(&class.main));
        }
        let mut others = sync::lock(&class.others);
        if let Some(index) = others.get(&(alternative, mask)) {
            return Ok(Arc::clone(index));
        }
        let columns: Vec<&[u32]> = keys(&self.shape, alternative, mask)
            // A class of no rows has no columns.
            .map(|k| class.columns.get(k.right).map_or(&[][..], Vec::as_slice))
            .collect();
        let mut numbering = Numbering::new(columns.len(), class.rows, &self.budget)?;
        if let [column] = columns[..] {
            numbering.span(std::iter::once(column))?;
        }
        for from in (0..class.rows).step_by(ctx.batch_rows) {
            ctx.check()?;
            let to = class.rows.min(from + ctx.batch_rows);
            let part: Vec<&[u32]> = columns.iter().map(|c| &c[from..to]).collect();
            numbering.add(&part, to - from)?;
        }
        let (mut index, place_of_row) = numbering.finish()?;
        let bytes = index.charge.bytes() as usize + class.rows * 4;
        index.charge.set(bytes)?;
        let mut order = vec![0; class.rows];
        for (row, &place) in (0u32..).zip(&place_of_row) {
            if let Some(o) = order.get_mut(place as usize) {
                *o = row;
            }
        }
        index.order = order;
        let index = Arc::new(index);
        others.insert((alternative, mask), Arc::clone(&index));
        Ok(index)
    }
}

fn keys<'s>(
    shape: &'s JoinShape<'_>,
    alternative: Option<usize>,
    mask: u64,
) -> impl Iterator<Item = JoinColumns> + 's {
    let unsure = shape
        .unsure
        .iter()
        .enumerate()
        .filter(move |(i, _)| mask >> i & 1 == 1)
        .map(|(_, k)| *k);
    let one = alternative.and_then(|a| shape.either.get(a));
    let sure = shape.sure.iter().copied();
    sure.chain(one.map(|a| a.key)).chain(unsure)
}

/// The held rows in which these columns are bound.
fn bound(held: RowBuffer, columns: &[usize], ctx: &QueryContext<'_>) -> Result<RowBuffer> {
    let lacks = |view: View<'_>| columns.iter().any(|&c| view.column(c).contains(&0));
    if !held.chunks().iter().any(|c| lacks(c.view())) {
        return Ok(held);
    }
    let width = held.chunks().first().map_or(0, |c| c.view().columns.len());
    let mut out = RowBuffer::new(width, ctx, Holder::HashJoin);
    let mut kept: Vec<Vec<u32>> = vec![vec![]; width];
    for chunk in held.chunks() {
        ctx.check()?;
        let view = chunk.view();
        kept.iter_mut().for_each(Vec::clear);
        for row in 0..view.rows {
            let cell = |c: usize| view.column(c)[row];
            if columns.iter().all(|&c| cell(c) != 0) {
                for (c, column) in kept.iter_mut().enumerate() {
                    column.push(cell(c));
                }
            }
        }
        out.push(View {
            rows: kept.first().map_or(0, Vec::len),
            columns: &kept,
        })?;
    }
    Ok(out)
}

/// Divides the held rows by the set of optional keys that are bound.
fn split(
    shape: &JoinShape<'_>,
    held: RowBuffer,
    ctx: &QueryContext<'_>,
) -> Result<Vec<(u64, RowBuffer)>> {
    let mut parts: Vec<(u64, RowBuffer)> = Vec::new();
    let (mut masks, mut index, mut seen) = (vec![], vec![], vec![]);
    let mut columns: Vec<Vec<u32>> = Vec::new();
    for chunk in held.chunks() {
        ctx.check()?;
        let rows = chunk.view();
        let bound = shape.unsure.iter().map(|k| rows.column(k.right));
        masks_of(bound, rows.rows, &mut masks);
        seen.clear();
        seen.extend_from_slice(&masks);
        seen.sort_unstable();
        seen.dedup();
        for &mask in &seen {
            let at = match parts.iter().position(|p| p.0 == mask) {
                Some(at) => at,
                None => {
                    parts.push((
                        mask,
                        RowBuffer::new(rows.columns.len(), ctx, Holder::HashJoin),
                    ));
                    parts.len() - 1
                }
            };
            index.clear();
            index.extend((0u32..).zip(&masks).filter(|m| *m.1 == mask).map(|m| m.0));
            columns.resize(rows.columns.len(), vec![]);
            for (c, column) in columns.iter_mut().enumerate() {
                let from = rows.column(c);
                column.clear();
                column.extend(index.iter().map(|&i| from[i as usize]));
            }
            let view = View {
                columns: &columns,
                rows: index.len(),
            };
            if let Some(p) = parts.get_mut(at) {
                p.1.push(view)?;
            }
        }
    }
    Ok(parts)
}

/// Sets `out` to a mask for each row: bit `i` if it is bound in the `i`-th column.
pub(crate) fn masks_of<'c>(
    columns: impl Iterator<Item = &'c [u32]>,
    rows: usize,
    out: &mut Vec<u64>,
) {
    out.clear();
    out.resize(rows, 0);
    for (i, column) in columns.enumerate() {
        for (m, &v) in out.iter_mut().zip(column) {
            *m |= u64::from(v != 0) << i;
        }
    }
}

impl BoundClass {
    fn new(
        shape: &JoinShape<'_>,
        mask: u64,
        held: RowBuffer,
        ctx: &QueryContext<'_>,
    ) -> Result<Self> {
        let rows = usize::try_from(held.rows())
            .ok()
            .filter(|r| u32::try_from(*r).is_ok_and(|r| r < NONE))
            .ok_or_else(|| {
                Error::limit(
                    Resource::Numbers,
                    "hash join: the held side has more than 4 billion rows",
                )
            })?;
        let width = held.chunks().first().map_or(0, |c| c.view().columns.len());
        let right: Vec<usize> = keys(shape, None, mask).map(|k| k.right).collect();
        let mut numbering = Numbering::new(right.len(), rows, ctx.budget)?;
        if let [column] = right[..] {
            numbering.span(held.chunks().iter().map(|c| c.view().column(column)))?;
        }
        held_flow(held.each(|view| {
            ctx.check()?;
            let columns: Vec<&[u32]> = right.iter().map(|&c| view.column(c)).collect();
            Ok(numbering.add(&columns, view.rows)?)
        }))?;
        let (index, place_of_row) = numbering.finish()?;
        let mut charge = OperatorCharge::for_holder(Holder::HashJoin, ctx.budget);
        charge.set(rows * width * 4)?;
        let mut columns: Vec<Vec<u32>> = (0..width).map(|_| huge_zeroed(rows)).collect();
        let mut from = 0;
        for chunk in held.chunks() {
            let view = chunk.view();
            let places = &place_of_row[from..from + view.rows];
            for (c, column) in columns.iter_mut().enumerate() {
                for (&v, &place) in view.column(c).iter().zip(places) {
                    if let Some(o) = column.get_mut(place as usize) {
                        *o = v;
                    }
                }
            }
            from += view.rows;
        }
        Ok(Self {
            mask,
            columns,
            rows,
            main: Arc::new(index),
            others: Mutex::default(),
            charge,
        })
    }
}

fn held_flow(flow: Flow) -> Result<()> {
    match flow {
        Err(crate::explore::Halt::Failed(e)) => Err(e),
        _ => Ok(()),
    }
}

/// Builds an index: numbers the keys of the rows, then sorts the rows by key number.
struct Numbering {
    keys: KeyTable,
    /// Key number of each row.
    of_row: Vec<u32>,
    scratch: Vec<u32>,
    charge: OperatorCharge,
}

impl Numbering {
    fn new(width: usize, rows: usize, budget: &MemoryBudget) -> Result<Self> {
        let mut charge = OperatorCharge::for_holder(Holder::HashJoin, budget);
        // For `of_row`, and at the end `starts`.
        charge.set(rows * 8)?;
        Ok(Self {
            keys: KeyTable::new(
                width,
                0,
                OperatorCharge::for_holder(Holder::HashJoin, budget),
            ),
            of_row: Vec::with_capacity(rows),
            scratch: vec![],
            charge,
        })
    }

    /// If the ids of a single key column are close together, lets the key table use an array instead of hashing.
    fn span<'c>(&mut self, parts: impl Iterator<Item = &'c [u32]>) -> Result<()> {
        let (mut first, mut last, mut rows) = (u32::MAX, 0, 0usize);
        for part in parts {
            rows += part.len();
            for &v in part {
                first = first.min(v);
                last = last.max(v);
            }
        }
        if first <= last && (last - first) as usize <= rows.saturating_mul(4) {
            self.keys.lay_out(first, last)?;
        }
        Ok(())
    }

    fn add(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        self.keys.insert(columns, rows, &mut self.scratch)?;
        self.of_row.extend_from_slice(&self.scratch);
        Ok(())
    }

    /// Returns the index, and the position of each row.
    fn finish(mut self) -> Result<(JoinIndex, Vec<u32>)> {
        let keys = self.keys.len();
        if keys == self.of_row.len() {
            // Every row has a key of its own, so key numbers are positions.
            self.charge.set(0)?;
            let index = JoinIndex {
                keys: self.keys,
                starts: vec![],
                order: vec![],
                charge: self.charge,
            };
            return Ok((index, self.of_row));
        }
        let mut starts: Vec<u32> = huge_zeroed(keys + 1);
        for &n in &self.of_row {
            starts[n as usize + 1] += 1;
        }
        let mut sum = 0;
        for s in &mut starts {
            sum += *s;
            *s = sum;
        }
        // `starts[n]` advances to the start of the next key while positions are assigned.
        for n in &mut self.of_row {
            let place = &mut starts[*n as usize];
            *n = *place;
            *place += 1;
        }
        starts.rotate_right(1);
        if let Some(s) = starts.first_mut() {
            *s = 0;
        }
        self.charge.set(starts.len() * 4)?;
        let index = JoinIndex {
            keys: self.keys,
            starts,
            order: vec![],
            charge: self.charge,
        };
        Ok((index, self.of_row))
    }
}
