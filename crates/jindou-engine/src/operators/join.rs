//! Hash joins: the right side is run and buffered (*held*), then batches of the left side are looked up in it.

use super::alternatives::Alternatives;
use super::join_table::{BoundClass, IndexKeys, JoinIndex, JoinShape, JoinTable, masks_of};
use super::partners::{MatchTerms, PartnerRows};
use super::stage::{NewWorker, NextStages, StageSpec, StageWorker, hand_all, hand_on};
use crate::batch::{Batch, View, pick};
use crate::compile::PipelineBuilder;
use crate::explore::{Flow, Halt, QueryContext};
use crate::filter::ConditionList;
use crate::key_table::NONE;
use crate::row_buffer::RowBuffer;
use crate::tree::with;
use jindou_graph::segment::prefetch;
use jindou_model::{Holder, Result};
use jindou_plan::{JoinKind, Relation, Slot, operator};
use std::sync::Arc;

/// How many keys ahead the positions of a key's rows are prefetched.
const AHEAD: usize = 16;

struct JoinProbe<'a> {
    table: &'a JoinTable<'a>,
    condition: Option<ConditionList<'a>>,
    out: Batch,
    /// For each row of the batch, whether it has a partner.
    matched: Vec<u8>,
    lookup: JoinLookup,
    expansion: PartnerRows,
    alternatives: Alternatives,
    /// The pairs that are being written: row of the batch, and held row (at first its position in the index).
    left: Vec<u32>,
    right: Vec<u32>,
    /// For each row of the batch, a mask of the optional keys that are bound. `kinds` has the distinct masks; `rows`,
    /// the rows with one of them.
    masks: Vec<u64>,
    kinds: Vec<u64>,
    rows: Vec<u32>,
    index: Vec<u32>,
    /// Indexes used so far, with their class and keys.
    known: Vec<(usize, IndexKeys, Arc<JoinIndex>)>,
}

/// Rows of a batch that are looked up in one class of held rows.
#[derive(Clone, Copy)]
struct ClassLookup<'x> {
    rows: View<'x>,
    /// Numbers of the rows; `None` for all rows of the batch.
    some: Option<&'x [u32]>,
    class: &'x BoundClass,
    alternative: Option<usize>,
    /// The optional keys by which the rows are looked up.
    mask: u64,
}

/// Keys that are looked up by value: first the held terms that match are found, then the rows with these terms.
#[derive(Clone, Copy)]
struct ValueLookup<'x> {
    terms: &'x [MatchTerms],
    columns: &'x [usize],
    bounds: &'x [(usize, Relation, usize)],
}

#[derive(Default)]
struct JoinLookup {
    hashes: Vec<u64>,
    found: Vec<u32>,
    /// Key columns of the rows that are looked up, if those are not the whole batch.
    keys: Vec<Vec<u32>>,
}

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn join(&mut self, op: &'a operator::Join, node: usize) -> Result<Vec<Slot>, Halt> {
        let (left, right) = (&*op.left, &*op.right);
        let (kind, left_node) = (op.kind, node + 1);
        let right_node = self.exec.nodes.after(left_node);
        let (held, right_slots) = self.exec.held(right, right_node, Holder::HashJoin)?;
        if held.rows() == 0 {
            match kind {
                JoinKind::Inner => {
                    // There are no rows, so the left side need not run.
                    let left = left.layout(self.outer_slots());
                    return Ok(with(left, right_slots));
                }
                JoinKind::Semi => return Ok(left.layout(self.outer_slots())),
                JoinKind::Left | JoinKind::Anti | JoinKind::Minus | JoinKind::Mark(_) => {}
            }
        }
        let made = (self.leaves.len(), self.links.len());
        let mut left_slots = self.op(left, left_node)?;
        let mut booleans = [0; 2];
        if let JoinKind::Mark(to) = kind {
            left_slots = self.without(to, left_slots, node);
            booleans = [self.boolean("false")?, self.boolean("true")?];
        }
        let shape = JoinShape::new(op, &left_slots, &right_slots)?;
        let output = shape.output.clone();
        let held = if shape.never {
            if matches!(kind, JoinKind::Inner | JoinKind::Semi) {
                self.forget(made);
                return Ok(output);
            }
            RowBuffer::new(right_slots.len(), &self.exec.ctx, Holder::HashJoin)
        } else {
            held
        };
        if self.open.is_empty() {
            return Ok(output);
        }
        let table = JoinTable::build(shape, held, booleans, &self.exec.ctx)?;
        self.exec.holds(node, table.bytes());
        self.link(table, &left_slots, node);
        Ok(output)
    }
}

impl StageSpec for JoinTable<'_> {
    fn work<'w>(&'w self, _input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        Ok(Box::new(JoinProbe::new(self, ctx)?))
    }
}

impl<'a> JoinProbe<'a> {
    fn new(table: &'a JoinTable<'a>, ctx: &QueryContext<'a>) -> Result<Self> {
        let shape = &table.shape;
        let condition = match shape.condition {
            Some(c) => Some(ConditionList::new(
                std::slice::from_ref(c),
                &shape.both,
                ctx,
            )?),
            None => None,
        };
        // If there is a condition, it is applied to the written pairs. A last column then has the number of the left
        // row.
        let width = match condition {
            Some(_) => shape.both.len() + 1,
            None => shape.output.len(),
        };
        Ok(Self {
            table,
            condition,
            out: Batch::new(width, ctx.budget),
            matched: vec![],
            lookup: JoinLookup::default(),
            expansion: PartnerRows::new(shape, ctx),
            alternatives: Alternatives::new(shape, ctx),
            left: vec![],
            right: vec![],
            masks: vec![],
            kinds: vec![],
            rows: vec![],
            index: vec![],
            known: vec![],
        })
    }

    /// Groups the rows by their mask of bound keys, one of `kinds`. Looks up each group in each class of held rows, by
    /// the keys that are bound on both sides.
    fn by_mask(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        kinds: &[u64],
        rest: &mut NextStages<'_, '_, '_>,
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
                flow = self.in_class(ctx, rows, at, mask, some, rest);
                if flow.is_err() {
                    break;
                }
            }
            self.rows = part;
            flow?;
        }
        Ok(())
    }

    fn index(
        &mut self,
        ctx: &QueryContext<'_>,
        class: usize,
        alternative: Option<usize>,
        mask: u64,
    ) -> Result<Arc<JoinIndex>> {
        let keys = (alternative, mask);
        if let Some(k) = self.known.iter().find(|k| k.0 == class && k.1 == keys) {
            return Ok(Arc::clone(&k.2));
        }
        let of = &self.table.classes[class];
        let index = self.table.index(ctx, of, alternative, mask)?;
        self.known.push((class, keys, Arc::clone(&index)));
        Ok(index)
    }

    /// Looks up rows (`some` of the batch, or all) in one class.
    fn in_class(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        at: usize,
        mask: u64,
        some: Option<&[u32]>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        let table = self.table;
        let Some(class) = table.classes.get(at) else {
            return Ok(());
        };
        // MINUS only removes a row that shares a bound variable with the other side.
        if table.shape.kind == JoinKind::Minus && mask == 0 && table.shape.sure.is_empty() {
            return Ok(());
        }
        let part = ClassLookup {
            rows,
            some,
            class,
            alternative: None,
            mask,
        };
        if table.shape.either.is_empty() {
            let index = self.index(ctx, at, None, mask)?;
            let values = table.shape.sure.iter().skip(table.shape.first_value());
            let columns: Vec<usize> = values.map(|k| k.left).collect();
            let values = ValueLookup {
                terms: &table.terms,
                columns: &columns,
                bounds: &table.shape.bounds,
            };
            let mut expansion = std::mem::take(&mut self.expansion);
            let flow = self.matches(ctx, part, &index, values, &mut expansion, rest);
            self.expansion = expansion;
            return flow;
        }
        let all_pairs = table.shape.kind.gives_pairs();
        let mut numbers = std::mem::take(&mut self.alternatives.rows);
        let mut flow = Ok(());
        for (n, (one, terms)) in table.shape.either.iter().zip(&table.either).enumerate() {
            let column = rows.column(one.key.left);
            let matched = &self.matched;
            let is_open = |row: &u32| {
                let at = *row as usize;
                column.get(at).is_some_and(|id| *id != 0)
                    && (all_pairs || matched.get(at) != Some(&1))
            };
            numbers.clear();
            match some {
                Some(some) => numbers.extend(some.iter().copied().filter(is_open)),
                None => numbers.extend((0..rows.rows as u32).filter(is_open)),
            }
            if numbers.is_empty() {
                continue;
            }
            let part = ClassLookup {
                some: Some(&numbers),
                alternative: Some(n),
                ..part
            };
            let values = ValueLookup {
                terms: terms.as_slice(),
                columns: &[one.key.left],
                bounds: &[],
            };
            let mut expansion = self.alternatives.take(n);
            flow = self
                .index(ctx, at, Some(n), mask)
                .map_err(Into::into)
                .and_then(|index| self.matches(ctx, part, &index, values, &mut expansion, rest));
            self.alternatives.put(n, expansion);
            if flow.is_err() {
                break;
            }
        }
        self.alternatives.rows = numbers;
        flow
    }

    /// Looks up rows in an index. Keys that match by value are first replaced by the held terms that they match.
    fn matches(
        &mut self,
        ctx: &QueryContext<'_>,
        part: ClassLookup<'_>,
        index: &JoinIndex,
        values: ValueLookup<'_>,
        expansion: &mut PartnerRows,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        let table = self.table;
        if values.terms.is_empty() {
            self.lookup.find(table, index, part, &[]);
            return self.found(ctx, part, index, rest);
        }
        let all_pairs = table.shape.kind.gives_pairs();
        let ValueLookup {
            terms,
            columns,
            bounds,
        } = values;
        expansion.begin();
        loop {
            let matched = &self.matched;
            // If the partner is not output, one per row is enough.
            let done = |row: u32| !all_pairs && matched.get(row as usize) == Some(&1);
            if !expansion.fill(ctx, terms, columns, bounds, part.rows, part.some, done)? {
                return Ok(());
            }
            ctx.check()?;
            let part = ClassLookup {
                some: Some(&expansion.rows),
                ..part
            };
            self.lookup.find(table, index, part, &expansion.terms);
            self.found(ctx, part, index, rest)?;
        }
    }

    /// Marks the rows (`some` of the batch, or all) whose keys were found as matched, and writes their pairs if needed.
    fn found(
        &mut self,
        ctx: &QueryContext<'_>,
        part: ClassLookup<'_>,
        index: &JoinIndex,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        if self.condition.is_none() {
            match part.some {
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
            if !self.table.shape.kind.gives_pairs() {
                return Ok(());
            }
        }
        let found = std::mem::take(&mut self.lookup.found);
        let flow = self.pairs(ctx, part, index, &found, rest);
        self.lookup.found = found;
        flow
    }

    /// Writes the pairs of each row and the held rows with its key, in blocks.
    fn pairs(
        &mut self,
        ctx: &QueryContext<'_>,
        part: ClassLookup<'_>,
        index: &JoinIndex,
        found: &[u32],
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        let block = ctx.batch_rows;
        let all_pairs = self.table.shape.kind.gives_pairs();
        self.left.clear();
        self.right.clear();
        for (i, &n) in found.iter().enumerate() {
            if let Some(&ahead) = found.get(i + AHEAD) {
                prefetch(index.starts(), ahead as usize);
            }
            if n == NONE {
                continue;
            }
            let row = match part.some {
                Some(some) => some[i],
                None => i as u32,
            };
            let (mut place, end) = index.places(n);
            while place < end {
                // If the partner is not output, one per row is enough.
                if !all_pairs && self.matched.get(row as usize) == Some(&1) {
                    break;
                }
                let room = block - self.left.len();
                let take = room.min((end - place) as usize);
                self.left.resize(self.left.len() + take, row);
                self.right.extend(place..place + take as u32);
                place += take as u32;
                if self.left.len() == block {
                    self.write(ctx, part, index)?;
                    hand_on(&mut self.out, ctx, rest)?;
                }
            }
        }
        self.write(ctx, part, index)?;
        hand_on(&mut self.out, ctx, rest)
    }

    /// Appends the collected pairs to the output, and removes those for which the condition is not true.
    fn write(
        &mut self,
        ctx: &QueryContext<'_>,
        part: ClassLookup<'_>,
        index: &JoinIndex,
    ) -> Result<()> {
        let ClassLookup { rows, class, .. } = part;
        let shape = &self.table.shape;
        let all_pairs = shape.kind.gives_pairs();
        if !index.in_order() {
            for place in &mut self.right {
                *place = index.row(*place);
            }
        }
        if let (Some(n), true) = (part.alternative, all_pairs) {
            let pairs = (&mut self.left, &mut self.right);
            self.alternatives
                .new_pairs(ctx, self.table, n, (rows, class), pairs)?;
        }
        let (from, n) = (self.out.rows, self.left.len());
        if n == 0 {
            return Ok(());
        }
        self.out.ensure((from + n).next_power_of_two())?;
        let left_width = shape.left_width.min(self.out.columns.len());
        let (left, added) = self.out.columns.split_at_mut(left_width);
        for (c, column) in left.iter_mut().enumerate() {
            pick(rows.column(c), &self.left, &mut column[from..from + n]);
        }
        // If the left row's value is unbound, the result has the held row's.
        for key in &shape.unsure {
            if let (Some(column), Some(values)) =
                (left.get_mut(key.left), class.columns.get(key.right))
            {
                for (o, &row) in column[from..from + n].iter_mut().zip(&self.right) {
                    if *o == 0 {
                        *o = values[row as usize];
                    }
                }
            }
        }
        for (column, &c) in added.iter_mut().zip(&shape.added) {
            pick(&class.columns[c], &self.right, &mut column[from..from + n]);
        }
        self.out.rows = from + n;
        if let Some(condition) = &mut self.condition {
            if let Some(numbers) = self.out.columns.last_mut() {
                numbers[from..from + n].copy_from_slice(&self.left);
            }
            condition.apply(ctx, &mut self.out, from)?;
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

    /// Outputs rows of the batch without partners' columns: those with, without or with either, as the kind of join
    /// requires.
    fn rest_of_batch(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        let shape = &self.table.shape;
        let want = match shape.kind {
            JoinKind::Inner => return Ok(()),
            JoinKind::Semi => Some(1),
            JoinKind::Left | JoinKind::Anti | JoinKind::Minus => Some(0),
            JoinKind::Mark(_) => None,
        };
        self.index.clear();
        self.index.extend(
            (0u32..)
                .zip(&self.matched)
                .filter(|m| want.is_none_or(|w| *m.1 == w))
                .map(|m| m.0),
        );
        let (from, n) = (self.out.rows, self.index.len());
        if n == 0 {
            return Ok(());
        }
        self.out.ensure((from + n).next_power_of_two())?;
        for (c, column) in self.out.columns.iter_mut().enumerate() {
            let column = &mut column[from..from + n];
            if c < shape.left_width {
                crate::batch::gather(rows.column(c), &self.index, column);
            } else if want.is_none() && c == shape.left_width {
                let [no, yes] = self.table.booleans;
                for (o, &m) in column.iter_mut().zip(&self.matched) {
                    *o = if m == 1 { yes } else { no };
                }
            } else {
                column.fill(0);
            }
        }
        self.out.rows = from + n;
        hand_on(&mut self.out, ctx, rest)
    }
}

impl StageWorker for JoinProbe<'_> {
    fn batch(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        ctx.check()?;
        let table = self.table;
        self.matched.clear();
        self.matched.resize(rows.rows, 0);
        if table.shape.unsure.is_empty() {
            self.in_class(ctx, rows, 0, 0, None, rest)?;
        } else {
            let bound = table.shape.unsure.iter().map(|k| rows.column(k.left));
            masks_of(bound, rows.rows, &mut self.masks);
            let mut kinds = std::mem::take(&mut self.kinds);
            kinds.clear();
            kinds.extend_from_slice(&self.masks);
            kinds.sort_unstable();
            kinds.dedup();
            let flow = self.by_mask(ctx, rows, &kinds, rest);
            self.kinds = kinds;
            flow?;
        }
        self.rest_of_batch(ctx, rows, rest)
    }

    fn finish(&mut self, _run: &QueryContext<'_>, rest: &mut NextStages<'_, '_, '_>) -> Flow {
        hand_all(&mut self.out, rest)
    }

    fn clear(&mut self) {
        self.out.rows = 0;
    }
}

impl JoinLookup {
    /// Sets `found` to the number of each row's key in the index. `terms` has the held terms of keys that match by
    /// value.
    fn find(
        &mut self,
        table: &JoinTable<'_>,
        index: &JoinIndex,
        part: ClassLookup<'_>,
        terms: &[Vec<u32>],
    ) {
        /// A join rarely has more keys than this; then a vector is allocated.
        const FEW: usize = 8;
        let mut few: [&[u32]; FEW] = [&[]; FEW];
        let many: Vec<&[u32]>;
        let ClassLookup { rows, some, .. } = part;
        let all_keys = || table.keys(part.alternative, part.mask);
        let width = all_keys().count();
        let n = some.map_or(rows.rows, <[u32]>::len);
        // Order of the key columns: sure keys, then keys that match by value or the alternative, then optional keys.
        let first = table.shape.first_value();
        let by_value = |i: usize| terms.get(i.checked_sub(first)?);
        if let Some(some) = some {
            self.keys.resize(width.max(self.keys.len()), vec![]);
            for (i, (key, column)) in all_keys().zip(&mut self.keys).enumerate() {
                if by_value(i).is_some() {
                    continue;
                }
                let from = rows.column(key.left);
                column.clear();
                column.extend(some.iter().map(|&i| from[i as usize]));
            }
        }
        let keys = &self.keys;
        let column = |(i, left): (usize, usize)| match (by_value(i), some) {
            (Some(ids), _) => ids.as_slice(),
            (None, Some(_)) => &keys[i],
            (None, None) => rows.column(left),
        };
        let columns = all_keys().map(|k| k.left).enumerate().map(column);
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
