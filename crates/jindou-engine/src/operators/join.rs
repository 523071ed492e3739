//! Joins: the right side is run and held, then batches of the left side are looked up in it.

use super::join_table::{Class, Index, JoinTable, Shape, masks_of};
use super::partners::Expansion;
use super::stage::{Rest, Spec, Work, hand_all, hand_on};
use crate::batch::{Batch, View, pick};
use crate::compile::Builder;
use crate::explore::{Flow, Halt, Run};
use crate::filter::Filters;
use crate::key_table::NONE;
use crate::row_buffer::RowBuffer;
use crate::tree::with;
use jindou_model::{Holder, Result};
use jindou_plan::{JoinKind, Slot, operator};
use jindou_store::segment::prefetch;
use std::sync::Arc;

/// Keys between fetching the bounds of a key's rows and reading them.
const AHEAD: usize = 16;

struct Probe<'a> {
    table: &'a JoinTable<'a>,
    condition: Option<Filters<'a>>,
    out: Batch,
    /// By row of the batch: it has a partner.
    matched: Vec<u8>,
    lookup: Lookup,
    expansion: Expansion,
    /// Row and place of each pair that is being written.
    left: Vec<u32>,
    right: Vec<u32>,
    /// By mask of bound keys of the streaming side: the rows that have it.
    masks: Vec<u64>,
    kinds: Vec<u64>,
    rows: Vec<u32>,
    index: Vec<u32>,
    /// Indexes that were asked for, by class and keys.
    known: Vec<(usize, u64, Arc<Index>)>,
}

#[derive(Default)]
struct Lookup {
    hashes: Vec<u64>,
    found: Vec<u32>,
    /// Key columns of a part of the batch.
    keys: Vec<Vec<u32>>,
}

impl<'a> Builder<'_, 'a> {
    pub(super) fn join(&mut self, op: &'a operator::Join, node: usize) -> Result<Vec<Slot>, Halt> {
        let operator::Join {
            kind,
            left,
            right,
            on,
            condition,
            matches,
        } = op;
        let (kind, left_node) = (*kind, node + 1);
        let right_node = self.exec.nodes.after(left_node);
        let (held, right_slots) = self.exec.held(right, right_node, Holder::HashJoin)?;
        if held.rows() == 0 {
            match kind {
                JoinKind::Inner => {
                    // No rows: nothing of the left side needs to run.
                    let left = left.layout(self.outer_slots());
                    return Ok(with(left, right_slots));
                }
                JoinKind::Semi => return Ok(left.layout(self.outer_slots())),
                JoinKind::Left | JoinKind::Anti | JoinKind::Minus => {}
            }
        }
        let made = (self.leaves.len(), self.links.len());
        let left_slots = self.op(left, left_node)?;
        let condition = condition.as_ref();
        let shape = Shape::new(kind, &left_slots, &right_slots, on, matches, condition)?;
        let output = shape.output.clone();
        let held = if shape.never {
            if matches!(kind, JoinKind::Inner | JoinKind::Semi) {
                self.forget(made);
                return Ok(output);
            }
            RowBuffer::new(right_slots.len(), &self.exec.run, Holder::HashJoin)
        } else {
            held
        };
        if self.open.is_empty() {
            return Ok(output);
        }
        let table = JoinTable::build(shape, held, &self.exec.run)?;
        self.exec.holds(node, table.bytes());
        self.link(table, &left_slots, node);
        Ok(output)
    }
}

impl Spec for JoinTable<'_> {
    fn work<'w>(&'w self, _input: &'w [Slot], run: &Run<'w>) -> Result<Box<dyn Work + 'w>> {
        Ok(Box::new(Probe::new(self, run)?))
    }
}

impl<'a> Probe<'a> {
    fn new(table: &'a JoinTable<'a>, run: &Run<'a>) -> Result<Self> {
        let shape = &table.shape;
        let condition = match shape.condition {
            Some(c) => Some(Filters::new(std::slice::from_ref(c), &shape.both, run)?),
            None => None,
        };
        // With a condition, pairs are written out first, and a last column tells the left row.
        let width = match condition {
            Some(_) => shape.both.len() + 1,
            None => shape.output.len(),
        };
        Ok(Self {
            table,
            condition,
            out: Batch::new(width, run.budget),
            matched: vec![],
            lookup: Lookup::default(),
            expansion: Expansion::new(shape, run),
            left: vec![],
            right: vec![],
            masks: vec![],
            kinds: vec![],
            rows: vec![],
            index: vec![],
            known: vec![],
        })
    }

    /// Looks up the rows of each mask in each class, by the keys that are bound on both sides.
    fn by_mask(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        kinds: &[u64],
        rest: &mut Rest<'_, '_, '_>,
    ) -> Flow {
        let table = self.table;
        for &kind in kinds {
            let mut part = std::mem::take(&mut self.rows);
            part.clear();
            part.extend(
                (0u32..)
                    .zip(&self.masks)
                    .filter(|m| *m.1 == kind)
                    .map(|m| m.0),
            );
            let some = (kinds.len() > 1).then_some(&part[..]);
            let mut flow = Ok(());
            for (at, class) in table.classes.iter().enumerate() {
                let mask = kind & class.mask;
                // MINUS wants a shared variable that is bound on both sides.
                if table.shape.kind == JoinKind::Minus && mask == 0 && table.shape.sure.is_empty() {
                    continue;
                }
                flow = self
                    .index(run, at, mask)
                    .map_err(Into::into)
                    .and_then(|index| self.class(run, rows, class, &index, mask, some, rest));
                if flow.is_err() {
                    break;
                }
            }
            self.rows = part;
            flow?;
        }
        Ok(())
    }

    fn index(&mut self, run: &Run<'_>, class: usize, mask: u64) -> Result<Arc<Index>> {
        if let Some(k) = self.known.iter().find(|k| k.0 == class && k.1 == mask) {
            return Ok(Arc::clone(&k.2));
        }
        let index = self.table.index(run, &self.table.classes[class], mask)?;
        self.known.push((class, mask, Arc::clone(&index)));
        Ok(index)
    }

    /// Matches rows (`some` of the batch, or all) with a class.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, all of it the batch's state"
    )]
    fn class(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        class: &Class,
        index: &Index,
        mask: u64,
        some: Option<&[u32]>,
        rest: &mut Rest<'_, '_, '_>,
    ) -> Flow {
        let table = self.table;
        if table.shape.kind == JoinKind::Minus && mask == 0 && table.shape.sure.is_empty() {
            return Ok(());
        }
        if table.terms.is_empty() {
            self.lookup.find(table, index, rows, mask, some, &[]);
            return self.found(run, rows, class, index, some, rest);
        }
        let values = table.shape.sure.iter().skip(table.shape.first_value());
        let columns: Vec<usize> = values.map(|k| k.left).collect();
        let all_pairs = matches!(table.shape.kind, JoinKind::Inner | JoinKind::Left);
        let mut expansion = std::mem::take(&mut self.expansion);
        expansion.begin();
        let mut flow = Ok(());
        while flow.is_ok() {
            let matched = &self.matched;
            // Of rows whose partner is not given, one is enough.
            let done = |row: u32| !all_pairs && matched.get(row as usize) == Some(&1);
            let bounds = &table.shape.bounds;
            match expansion.fill(run, &table.terms, &columns, bounds, rows, some, done) {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) => {
                    flow = Err(e.into());
                    break;
                }
            }
            flow = run.check().map_err(Into::into).and_then(|()| {
                let some = Some(&expansion.rows[..]);
                self.lookup
                    .find(table, index, rows, mask, some, &expansion.terms);
                self.found(run, rows, class, index, some, rest)
            });
        }
        self.expansion = expansion;
        flow
    }

    /// Notes the rows (`some` of the batch, or all) whose keys were found, and writes their pairs.
    fn found(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        class: &Class,
        index: &Index,
        some: Option<&[u32]>,
        rest: &mut Rest<'_, '_, '_>,
    ) -> Flow {
        let pairs = matches!(self.table.shape.kind, JoinKind::Inner | JoinKind::Left);
        if self.condition.is_none() {
            match some {
                None => {
                    for (m, &n) in self.matched.iter_mut().zip(&self.lookup.found) {
                        *m |= u8::from(n != NONE);
                    }
                }
                Some(some) => {
                    for (&row, &n) in some.iter().zip(&self.lookup.found) {
                        if let Some(m) = self.matched.get_mut(row as usize) {
                            *m |= u8::from(n != NONE);
                        }
                    }
                }
            }
            if !pairs {
                return Ok(());
            }
        }
        let found = std::mem::take(&mut self.lookup.found);
        let flow = self.pairs(run, rows, class, index, some, &found, pairs, rest);
        self.lookup.found = found;
        flow
    }

    /// Writes the pairs of rows that were found, in blocks.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, all of it the batch's state"
    )]
    fn pairs(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        class: &Class,
        index: &Index,
        some: Option<&[u32]>,
        found: &[u32],
        all_pairs: bool,
        rest: &mut Rest<'_, '_, '_>,
    ) -> Flow {
        let block = run.batch_rows;
        self.left.clear();
        self.right.clear();
        for (i, &n) in found.iter().enumerate() {
            if let Some(&ahead) = found.get(i + AHEAD) {
                prefetch(index.starts(), ahead as usize);
            }
            if n == NONE {
                continue;
            }
            let row = match some {
                Some(some) => some.get(i).copied().unwrap_or(0),
                None => i as u32,
            };
            let (mut place, end) = index.places(n);
            while place < end {
                // Of rows whose partner is not given, one is enough.
                if !all_pairs && self.matched.get(row as usize) == Some(&1) {
                    break;
                }
                let room = block - self.left.len();
                let take = room.min((end - place) as usize);
                self.left.resize(self.left.len() + take, row);
                self.right.extend(place..place + take as u32);
                place += take as u32;
                if self.left.len() == block {
                    self.write(run, rows, class, index, all_pairs)?;
                    hand_on(&mut self.out, run, rest)?;
                }
            }
        }
        self.write(run, rows, class, index, all_pairs)?;
        hand_on(&mut self.out, run, rest)
    }

    /// Appends the pairs collected so far to the output, those on which the condition is true.
    fn write(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        class: &Class,
        index: &Index,
        all_pairs: bool,
    ) -> Result<()> {
        let shape = &self.table.shape;
        let (from, n) = (self.out.rows, self.left.len());
        if n == 0 {
            return Ok(());
        }
        if !index.in_order() {
            for place in &mut self.right {
                *place = index.row(*place);
            }
        }
        self.out.ensure((from + n).next_power_of_two())?;
        let left_width = shape.left_width.min(self.out.columns.len());
        let (left, added) = self.out.columns.split_at_mut(left_width);
        for (c, column) in left.iter_mut().enumerate() {
            pick(rows.column(c), &self.left, &mut column[from..from + n]);
        }
        // The result takes the value of the side that has one.
        for key in &shape.unsure {
            if let (Some(column), Some(values)) =
                (left.get_mut(key.left), class.columns.get(key.right))
            {
                for (o, &row) in column[from..from + n].iter_mut().zip(&self.right) {
                    if *o == 0 {
                        *o = values.get(row as usize).copied().unwrap_or(0);
                    }
                }
            }
        }
        for (column, &c) in added.iter_mut().zip(&shape.added) {
            let values = class.columns.get(c).map_or(&[][..], Vec::as_slice);
            pick(values, &self.right, &mut column[from..from + n]);
        }
        self.out.rows = from + n;
        if let Some(condition) = &mut self.condition {
            if let Some(numbers) = self.out.columns.last_mut() {
                numbers[from..from + n].copy_from_slice(&self.left);
            }
            condition.apply(run, &mut self.out, from)?;
            if let Some(numbers) = self.out.columns.last() {
                for &row in &numbers[from..self.out.rows] {
                    if let Some(m) = self.matched.get_mut(row as usize) {
                        *m = 1;
                    }
                }
            }
            if !all_pairs {
                self.out.rows = from;
            }
        }
        self.left.clear();
        self.right.clear();
        Ok(())
    }

    /// Rows that are given, or not, because of what was found.
    fn rest_of_batch(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        rest: &mut Rest<'_, '_, '_>,
    ) -> Flow {
        let want = match self.table.shape.kind {
            JoinKind::Inner => return Ok(()),
            JoinKind::Semi => 1,
            JoinKind::Left | JoinKind::Anti | JoinKind::Minus => 0,
        };
        self.index.clear();
        self.index.extend(
            (0u32..)
                .zip(&self.matched)
                .filter(|m| *m.1 == want)
                .map(|m| m.0),
        );
        let (from, n) = (self.out.rows, self.index.len());
        if n == 0 {
            return Ok(());
        }
        self.out.ensure((from + n).next_power_of_two())?;
        for (c, column) in self.out.columns.iter_mut().enumerate() {
            let column = &mut column[from..from + n];
            if c < self.table.shape.left_width {
                crate::batch::gather(rows.column(c), &self.index, column);
            } else {
                column.fill(0);
            }
        }
        self.out.rows = from + n;
        hand_on(&mut self.out, run, rest)
    }
}

impl Work for Probe<'_> {
    fn batch(&mut self, run: &Run<'_>, rows: View<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        run.check()?;
        let table = self.table;
        self.matched.clear();
        self.matched.resize(rows.rows, 0);
        if table.shape.unsure.is_empty() {
            if let Some(class) = table.classes.first() {
                let index = self.index(run, 0, 0)?;
                self.class(run, rows, class, &index, 0, None, rest)?;
            }
        } else {
            let bound = table.shape.unsure.iter().map(|k| rows.column(k.left));
            masks_of(bound, rows.rows, &mut self.masks);
            let mut kinds = std::mem::take(&mut self.kinds);
            kinds.clear();
            kinds.extend_from_slice(&self.masks);
            kinds.sort_unstable();
            kinds.dedup();
            let flow = self.by_mask(run, rows, &kinds, rest);
            self.kinds = kinds;
            flow?;
        }
        self.rest_of_batch(run, rows, rest)
    }

    fn finish(&mut self, _run: &Run<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        hand_all(&mut self.out, rest)
    }

    fn clear(&mut self) {
        self.out.rows = 0;
    }
}

impl Lookup {
    /// `found` becomes the key numbers of the rows (`some` of the batch, or all); `terms` are those of keys by value.
    fn find(
        &mut self,
        table: &JoinTable<'_>,
        index: &Index,
        rows: View<'_>,
        mask: u64,
        some: Option<&[u32]>,
        terms: &[Vec<u32>],
    ) {
        /// A join rarely has more keys; then a list is made.
        const FEW: usize = 8;
        let mut few: [&[u32]; FEW] = [&[]; FEW];
        let many: Vec<&[u32]>;
        let width = table.keys(mask).count();
        let n = some.map_or(rows.rows, <[u32]>::len);
        let first = table.shape.first_value();
        let by_value = |i: usize| terms.get(i.checked_sub(first)?);
        if let Some(some) = some {
            self.keys.resize(width.max(self.keys.len()), vec![]);
            for (i, (key, column)) in table.keys(mask).zip(&mut self.keys).enumerate() {
                if by_value(i).is_some() {
                    continue;
                }
                let from = rows.column(key.left);
                column.clear();
                column.extend(
                    some.iter()
                        .map(|&i| from.get(i as usize).copied().unwrap_or(0)),
                );
            }
        }
        let keys = &self.keys;
        let column = |(i, left): (usize, usize)| match some {
            _ if by_value(i).is_some() => by_value(i).map_or(&[][..], Vec::as_slice),
            Some(_) => keys.get(i).map_or(&[][..], Vec::as_slice),
            None => rows.column(left),
        };
        let columns = table.keys(mask).map(|k| k.left).enumerate().map(column);
        let columns: &[&[u32]] = if width <= FEW {
            for (f, c) in few.iter_mut().zip(columns) {
                *f = c;
            }
            &few[..width]
        } else {
            many = columns.collect();
            &many
        };
        index
            .keys
            .find(columns, n, &mut self.hashes, &mut self.found);
    }
}
