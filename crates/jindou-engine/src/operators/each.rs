//! Apply with a dependent part that must see all its rows, such as one with GROUP BY or LIMIT. The part runs once for
//! each distinct combination of the outer values that it reads. Its rows are kept, as far as memory allows, for later
//! outer rows with the same combination.

use super::apply::{Attach, alone, alone_of};
use super::stage::{NewWorker, NextStages, StageSpec, StageWorker, hand_all, hand_on};
use crate::batch::{Batch, OperatorCharge, View};
use crate::eval::EvalContext;
use crate::execute::Exec;
use crate::explore::{Flow, Halt, QueryContext};
use crate::key_table::KeyTable;
use crate::row_buffer::RowBuffer;
use jindou_model::{Error, Holder, Result};
use jindou_plan::{ApplyKind, Operator, Slot};
use std::sync::atomic::AtomicBool;

/// The values of an outer row that a dependent part reads, with their slots.
pub(crate) struct OuterRow {
    pub slots: Vec<Slot>,
    pub values: Vec<u32>,
}

/// Specification of an [`Each`] stage.
pub(crate) struct EachSpec<'a> {
    pub kind: ApplyKind,
    pub inner: &'a Operator,
    /// The inner operator's node number.
    pub node: usize,
    pub exec: Exec<'a>,
    pub outer: Vec<Slot>,
    pub output: Vec<Slot>,
    /// Outer slots that the inner part reads, with their columns.
    pub reads: Vec<(Slot, usize)>,
    pub booleans: [u32; 2],
}

/// The result of running the inner part for a combination of outer values.
enum InnerResult {
    /// The part did not run, or its result was dropped to free memory.
    No,
    /// True if there is a row; its content is not needed.
    Any(bool),
    Rows(RowBuffer, Attach),
}

impl StageSpec for EachSpec<'_> {
    fn work<'w>(&'w self, _input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        Ok(Box::new(Each::new(self, ctx)))
    }
}

struct Each<'a> {
    spec: &'a EachSpec<'a>,
    keys: KeyTable,
    /// Result for each combination of outer values, by its number in `keys`.
    known: Vec<InnerResult>,
    numbers: Vec<u32>,
    matched: Vec<u8>,
    out: Batch,
    index: Vec<u32>,
    kept: Vec<u8>,
}

impl<'a> Each<'a> {
    fn new(spec: &'a EachSpec<'a>, ctx: &QueryContext<'_>) -> Self {
        Self {
            keys: KeyTable::new(
                spec.reads.len(),
                0,
                OperatorCharge::for_holder(Holder::Correlated, ctx.budget),
            ),
            known: vec![],
            numbers: vec![],
            matched: vec![],
            out: Batch::new(spec.output.len(), ctx.budget),
            index: vec![],
            kept: vec![],
            spec,
        }
    }

    /// Runs the inner part for a combination. If memory is short, drops the results for other combinations and tries
    /// again.
    fn run_remembering(&mut self, ctx: &QueryContext<'_>, number: u32) -> Result<InnerResult> {
        match self.run_once(ctx, number) {
            Err(Error::Limit(_))
                if self
                    .known
                    .iter()
                    .any(|k| matches!(k, InnerResult::Rows(..))) =>
            {
                self.known.iter_mut().for_each(|k| *k = InnerResult::No);
                self.run_once(ctx, number)
            }
            other => other,
        }
    }

    fn run_once(&self, ctx: &QueryContext<'_>, number: u32) -> Result<InnerResult> {
        let spec = self.spec;
        let outer = OuterRow {
            slots: spec.reads.iter().map(|r| r.0).collect(),
            values: self.keys.key(number).to_vec(),
        };
        let stop = AtomicBool::new(false);
        let exec = Exec {
            // A GPU or another server is not worth the transfer for one row at a time.
            offload: None,
            ctx: QueryContext {
                threads: 1,
                heavy: false,
                eval: EvalContext {
                    stop: &stop,
                    ..ctx.eval
                },
                ..*ctx
            },
            nodes: spec.exec.nodes,
            profile: spec.exec.profile,
            outer: Some(&outer),
        };
        let flow = match spec.kind {
            ApplyKind::Inner | ApplyKind::Left => exec
                .held(spec.inner, spec.node, Holder::Correlated)
                .map(|(held, slots)| {
                    let attach = Attach::new(&spec.outer, &slots, &spec.output, &[]);
                    InnerResult::Rows(held, attach)
                }),
            ApplyKind::Semi | ApplyKind::Anti | ApplyKind::Mark(_) => {
                exec.any(spec.inner, spec.node).map(InnerResult::Any)
            }
        };
        flow.map_err(|halt| match halt {
            Halt::Failed(e) => e,
            Halt::Stop => unreachable!("only a part's own end stops it"),
        })
    }
}

impl StageWorker for Each<'_> {
    fn batch(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        let spec = self.spec;
        let columns: Vec<&[u32]> = spec.reads.iter().map(|r| rows.column(r.1)).collect();
        let mut numbers = std::mem::take(&mut self.numbers);
        self.keys.insert(&columns, rows.rows, &mut numbers)?;
        self.known.resize_with(self.keys.len(), || InnerResult::No);
        self.matched.clear();
        self.matched.resize(rows.rows, 0);
        for (row, &n) in numbers.iter().enumerate() {
            if matches!(self.known.get(n as usize), Some(InnerResult::No) | None) {
                ctx.check()?;
                let known = self.run_remembering(ctx, n)?;
                if let Some(k) = self.known.get_mut(n as usize) {
                    *k = known;
                }
            }
            match self.known.get(n as usize) {
                Some(InnerResult::Any(any)) => self.matched[row] = u8::from(*any),
                Some(InnerResult::Rows(held, attach)) => {
                    let (out, kept, index) = (&mut self.out, &mut self.kept, &mut self.index);
                    let matched = &mut self.matched[row];
                    each_part(held, ctx, |part| {
                        index.clear();
                        index.resize(part.rows, row as u32);
                        attach.append(out, rows, index, part, kept)?;
                        *matched |= u8::from(kept.contains(&1));
                        hand_on(out, ctx, rest)
                    })?;
                }
                Some(InnerResult::No) | None => {}
            }
        }
        self.numbers = numbers;
        let mut index = std::mem::take(&mut self.index);
        alone_of(spec.kind, &self.matched, &mut index);
        let mark = Some((&self.matched[..], spec.booleans))
            .filter(|_| matches!(spec.kind, ApplyKind::Mark(_)));
        alone(&mut self.out, rows, &index, spec.outer.len(), mark)?;
        self.index = index;
        hand_on(&mut self.out, ctx, rest)
    }

    fn finish(&mut self, _run: &QueryContext<'_>, rest: &mut NextStages<'_, '_, '_>) -> Flow {
        hand_all(&mut self.out, rest)
    }

    fn clear(&mut self) {
        self.out.rows = 0;
    }
}

/// Calls `f` with all rows; at most one batch at a time.
fn each_part(
    held: &RowBuffer,
    ctx: &QueryContext<'_>,
    mut f: impl FnMut(View<'_>) -> Flow,
) -> Flow {
    held.each(|view| {
        if !view.columns.is_empty() {
            return f(view);
        }
        let mut left = view.rows;
        while left > 0 {
            let rows = left.min(ctx.batch_rows);
            left -= rows;
            ctx.check()?;
            f(View { columns: &[], rows })?;
        }
        Ok(())
    })
}
