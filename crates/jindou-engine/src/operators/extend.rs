//! BIND, and the selection of columns.

use super::stage::{NewWorker, NextStages, StageSpec, StageStats, StageWorker};
use crate::batch::{Batch, View};
use crate::compile::PipelineBuilder;
use crate::explore::{Consumer, Flow, Halt, QueryContext, StepStats};
use crate::tree::{SlotLayout, SlotList};
use crate::values::Evaluator;
use jindou_model::Result;
use jindou_plan::{GeneralExpression, Operator, Slot, operator};
use std::time::{Duration, Instant};

/// Consecutive BINDs in the order of evaluation, as one stage, so that the input rows are copied once.
struct ExtendSpec<'a> {
    values: Vec<(&'a GeneralExpression, usize)>,
    /// The slots of the input, and the added ones.
    slots: Vec<Slot>,
}

/// For each output column, the input column.
struct ProjectSpec(Vec<usize>);

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn extend(
        &mut self,
        op: &'a operator::Extend,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let mut chain = vec![];
        let (mut op, mut at) = (op, node);
        let below = loop {
            // The ORDER BY above evaluates the others itself.
            if !op.is_computed_above {
                chain.push((op, at));
            }
            at += 1;
            match &*op.input {
                Operator::Extend(next) => op = next,
                below => break below,
            }
        };
        let mut slots = self.op(below, at)?;
        let mut there = SlotList::of_all(slots.iter().copied());
        let mut values = vec![];
        for (op, node) in chain.into_iter().rev() {
            if there.position_of(op.to).is_some() {
                self.extended(&mut values, &slots);
                slots = self.without(op.to, slots, node);
                there = SlotList::of_all(slots.iter().copied());
            }
            values.push((&op.value, node));
            slots.push(op.to);
            there.add(op.to);
        }
        self.extended(&mut values, &slots);
        Ok(slots)
    }

    /// Adds the stage that computes the collected values, which are the last of `slots`.
    fn extended(&mut self, values: &mut Vec<(&'a GeneralExpression, usize)>, slots: &[Slot]) {
        let Some(&(_, node)) = values.last() else {
            return;
        };
        let values = std::mem::take(values);
        let input = &slots[..slots.len() - values.len()];
        let slots = slots.to_vec();
        self.link(ExtendSpec { values, slots }, input, node);
    }

    /// Drops the column of a slot that is about to be bound. Rows may have such a column although it is unbound in all
    /// of them (a GROUP BY of a slot that is never bound).
    pub(super) fn without(&mut self, slot: Slot, slots: Vec<Slot>, node: usize) -> Vec<Slot> {
        if !slots.contains(&slot) {
            return slots;
        }
        let columns = (0..slots.len())
            .filter(|&c| slots.get(c) != Some(&slot))
            .collect();
        self.link(ProjectSpec(columns), &slots, node);
        slots.into_iter().filter(|s| *s != slot).collect()
    }
}

impl StageSpec for ExtendSpec<'_> {
    fn work<'w>(&'w self, input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        Ok(Box::new(ExtendStage::new(self, input.len(), ctx)?))
    }
}

impl StageWorker for ExtendStage {
    fn batch(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        let before = self.elsewhere();
        self.rows(ctx, rows)?;
        if ctx.profile {
            rest.spent_for_another(self.elsewhere() - before);
        }
        rest.batch(self.out.view())
    }

    fn inside(&self, each: &mut dyn FnMut(usize, &StageStats, &[StepStats])) {
        for column in &self.columns {
            if let Some((node, stats)) = &column.own {
                each(*node, stats, &[]);
            }
        }
    }
}

impl StageSpec for ProjectSpec {
    fn work<'w>(&'w self, _input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        Ok(Box::new(Project::new(&self.0, ctx)))
    }
}

impl StageWorker for Project {
    fn batch(
        &mut self,
        _run: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        rest.batch(self.rows(rows)?)
    }
}

/// A column that the stage adds.
struct ExtendedColumn {
    evaluator: Evaluator,
    /// The number and counts of this BIND's node; `None` for the last BIND, whose counts are the stage's.
    own: Option<(usize, StageStats)>,
}

/// Appends columns with the values of expressions.
struct ExtendStage {
    /// Number of input columns.
    width: usize,
    columns: Vec<ExtendedColumn>,
    out: Batch,
}

impl ExtendStage {
    fn new(spec: &ExtendSpec<'_>, width: usize, ctx: &QueryContext<'_>) -> Result<Self> {
        let layout = SlotLayout::new(&spec.slots);
        let last = spec.values.len().saturating_sub(1);
        let mut columns = Vec::with_capacity(spec.values.len());
        for (i, (value, node)) in spec.values.iter().enumerate() {
            ctx.check()?;
            columns.push(ExtendedColumn {
                evaluator: Evaluator::new(value, &layout.first(width + i), ctx)?,
                own: (i < last).then(|| (*node, StageStats::default())),
            });
        }
        Ok(Self {
            width,
            columns,
            out: Batch::new(spec.slots.len(), ctx.budget),
        })
    }

    /// Time spent for BINDs other than the last one, which has the stage's node.
    fn elsewhere(&self) -> Duration {
        let own = self.columns.iter().filter_map(|c| c.own.as_ref());
        own.map(|(_, stats)| stats.time).sum()
    }

    fn rows(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        self.out.ensure(rows.rows)?;
        self.out.rows = rows.rows;
        for (c, column) in self.out.columns.iter_mut().take(self.width).enumerate() {
            column[..rows.rows].copy_from_slice(rows.column(c));
        }
        for (i, column) in self.columns.iter_mut().enumerate() {
            let clock = ctx.profile.then(Instant::now);
            let (there, new) = self.out.columns.split_at_mut(self.width + i);
            let there = View {
                columns: there,
                rows: rows.rows,
            };
            if let Some(new) = new.first_mut() {
                column.evaluator.column(ctx, there, &mut new[..rows.rows])?;
            }
            let Some((node, stats)) = &mut column.own else {
                continue;
            };
            let time = clock.map_or(Duration::ZERO, |c| c.elapsed());
            stats.rows_in += rows.rows as u64;
            stats.rows_out += rows.rows as u64;
            stats.time += time;
            if let Some(live) = ctx.live.and_then(|l| l.node(*node)) {
                live.counts().add(rows.rows, rows.rows, time);
            }
        }
        Ok(())
    }
}

/// Passes on some columns of the rows.
struct Project {
    columns: Vec<usize>,
    out: Batch,
}

impl Project {
    fn new(columns: &[usize], ctx: &QueryContext<'_>) -> Self {
        Self {
            columns: columns.to_vec(),
            out: Batch::new(columns.len(), ctx.budget),
        }
    }

    fn rows(&mut self, rows: View<'_>) -> Result<View<'_>> {
        self.out.ensure(rows.rows)?;
        self.out.rows = rows.rows;
        for (out, from) in self.out.columns.iter_mut().zip(&self.columns) {
            out[..rows.rows].copy_from_slice(rows.column(*from));
        }
        Ok(self.out.view())
    }
}
